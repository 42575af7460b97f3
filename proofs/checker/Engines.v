(** All engines together: what has retired by the time that an instruction issues.

    A place of an engine is what it has done, and what of that has retired: all from before it last met others, and a
    prefix of what it issued since. *)
From Coq Require Import ZArith List Bool Lia PArith.
From Checker Require Import Language States Order.
Import ListNotations.
Local Open Scope Z_scope.

Definition place : Type := trace * retired.

Definition retires (p : place) : Prop :=
  exists rest, issues (fst p) = snd p ++ rest /\ forall ss, ~ In (Reset ss) rest.

(** The barriers that a stream comes to, and what becomes 0 there. *)
Fixpoint meets_of {form} (s : stream form) : list (barrier * list semaphore) :=
  match s with
  | Meet b ss => [(b, ss)]
  | Seq a b | Choice a b => meets_of a ++ meets_of b
  | Loop _ b => meets_of b
  | _ => []
  end.

Lemma meets_of_sound {form} (s : stream form) : forall x y, run s x y ->
  exists d, history y = d ++ history x /\ forall b ss, In (Met b ss) d -> In (b, ss) (meets_of s).
Proof.
  induction s; intros p q R; cbn [run meets_of] in *.
  - subst. exists []. split; [reflexivity|]. intros ? ? [].
  - destruct R as (z & R1 & R2). destruct (IHs1 _ _ R1) as (d1 & H1 & M1). destruct (IHs2 _ _ R2) as (d2 & H2 & M2).
    exists (d2 ++ d1). split; [rewrite H2, H1; apply app_assoc|]. intros b ss I. apply in_or_app.
    apply in_app_or in I as [I|I]; auto.
  - destruct R as (v & _ & ->). exists []. split; [reflexivity|]. intros ? ? [].
  - subst. exists []. split; [reflexivity|]. intros ? ? [].
  - subst. eexists [_]. split; [reflexivity|]. intros ? ? [|[]]; discriminate.
  - subst. eexists [_]. split; [reflexivity|]. intros ? ? [|[]]; discriminate.
  - destruct R as [-> _]. exists []. split; [reflexivity|]. intros ? ? [].
  - subst. eexists [_]. split; [reflexivity|]. intros ? ? [E|[]]. injection E as <- <-. now left.
  - destruct R as [R|R]; [destruct (IHs1 _ _ R) as (d & H & M)|destruct (IHs2 _ _ R) as (d & H & M)];
      exists d; (split; [exact H|]); intros b ss I; apply in_or_app; auto.
  - induction R as [a|a b c R1 R2 IH]; [exists []; split; [reflexivity|]; intros ? ? []|].
    destruct (IHs _ _ R1) as (d1 & H1 & M1). destruct IH as (d2 & H2 & M2).
    exists (d2 ++ d1). split; [rewrite H2, H1; apply app_assoc|]. intros b' ss I. apply in_app_or in I as [I|I]; auto.
Qed.

Lemma reset_issues t ss : In (Reset ss) (issues t) -> exists b, In (Met b ss) t.
Proof.
  induction t as [|[l|i g ws|b ss'] t IH]; cbn [issues]; intros I.
  - destruct I.
  - destruct (IH I) as [b H]. exists b. now right.
  - apply in_app_or in I as [I|[I|[]]]; [|discriminate]. destruct (IH I) as [b H]. exists b. now right.
  - apply in_app_or in I as [I|[I|[]]]; [destruct (IH I) as [b' H]; exists b'; now right|].
    injection I as <-. exists b. now left.
Qed.

(** The same up to a reset: what has retired holds it, where what has not does not. *)
Lemma behind_reset u ss v r rest : u ++ Reset ss :: v = r ++ rest -> ~ In (Reset ss) rest ->
  exists r', r = u ++ Reset ss :: r' /\ v = r' ++ rest.
Proof.
  revert r; induction u as [|x u IH]; intros [|y r] E N; simpl in E.
  - exfalso. apply N. rewrite <- E. now left.
  - injection E as <- E. exists r. split; [reflexivity|exact E].
  - exfalso. apply N. rewrite <- E. right. apply in_or_app. right. now left.
  - injection E as <- E. destruct (IH _ E N) as (r' & -> & ->). exists r'. now split.
Qed.

Section Group.
Variables (g : group) (p : place_of_group).
Hypothesis some : (0 < length g)%nat.

Definition cut (b : barrier) : bool := match find b (snd p) with Some _ => true | None => false end.

Lemma base_uncut t : uncut cut t -> before_cut p t = 0.
Proof.
  unfold before_cut. induction t as [|[l|i h ws|b ss] t IH]; cbn [uncut base]; auto. intros [H1 H2]. unfold cut in H1.
  destruct (find b (snd p)); [discriminate|auto].
Qed.

(** The latest time that the semaphores became 0. *)
Lemma latest_cut t : uncut cut t \/ exists d b ss t' n,
  t = d ++ Met b ss :: t' /\ uncut cut d /\ find b (snd p) = Some n /\ before_cut p t = entries (fst p) t' + n.
Proof.
  unfold before_cut. induction t as [|e t IH]; [left; exact I|].
  assert (X : (forall b ss, e <> Met b ss) -> uncut cut (e :: t) \/ exists d b ss t' n,
    e :: t = d ++ Met b ss :: t' /\ uncut cut d /\ find b (snd p) = Some n
    /\ base (snd p) (fst p) (e :: t) = entries (fst p) t' + n).
  { intros N. destruct IH as [IH|(d & b & ss & t' & n & -> & U & F & B)].
    - left. destruct e; [exact IH|exact IH|]. now destruct (N b ss).
    - right. exists (e :: d), b, ss, t', n. split; [reflexivity|]. destruct e; [auto|auto|now destruct (N b0 ss0)]. }
  destruct e as [l|i h ws|b ss]; [apply X; discriminate|apply X; discriminate|]. clear X. cbn [uncut base].
  destruct (find b (snd p)) as [n|] eqn:F.
  - right. exists [], b, ss, t, n. repeat split; auto.
  - assert (Cb : cut b = false) by (unfold cut; now rewrite F).
    destruct IH as [IH|(d & b' & ss' & t' & n & -> & U & F' & B)]; [left; auto|].
    right. exists (Met b ss :: d), b', ss', t', n. split; [reflexivity|]. split; [split; [exact Cb|exact U]|]. auto.
Qed.

Definition zeroes (b : barrier) (ss : list semaphore) : Prop := forall s, has_signal s g = true -> among s ss = cut b.

Definition began (t : trace) (b : barrier) : Prop :=
  forall n, find b (snd p) = Some n ->
  match g with (i, _) :: _ => labelled i g = 1 /\ issues_of i t = entries (fst p) t + n | [] => True end.

(** What the engine that issues a group says of it, wherever it is. *)
Lemma issuer_in_order t later r n :
  those g (issues (later ++ t)) = times n g -> cut_whole cut g (later ++ t) ->
  (forall b ss, In (Met b ss) t -> zeroes b ss) ->
  (forall d b ss t', t = d ++ Met b ss :: t' -> began t' b) ->
  retires (t, r) -> in_order g (before_cut p t) r.
Proof.
  intros N W Z B (rest & E & Nr). cbn [fst snd] in E. apply cut_whole_suffix in W. rewrite issues_app, those_app in N.
  assert (Unreset : forall d t' r' rest', t = d ++ t' -> uncut cut d -> issues d = r' ++ rest' ->
    forall s, has_signal s g = true -> unreset s r').
  { intros d t' r' rest' Et U Ed s Hs ss I. assert (Id : In (Reset ss) (issues d)) by (rewrite Ed; apply in_or_app; auto).
    destruct (reset_issues _ _ Id) as [b Ib].
    rewrite (Z b ss) by (auto; rewrite Et; apply in_or_app; auto).
    apply in_split in Ib as (d1 & d2 & ->). apply uncut_app in U as [_ [U _]]. exact U. }
  destruct (latest_cut t) as [U|(d & b & ss & t' & c & -> & U & F & Eb)].
  - rewrite E, those_app, <- app_assoc in N. symmetry in N.
    destruct (prefix_of_times g n some _ _ N) as (m & j & Hj & X). exists (Z.of_nat m), j.
    split; [lia|]. split; [exact Hj|]. split.
    + intros s Hs. unfold value_of. rewrite (value_those s g r Hs) by (apply (Unreset t [] r rest); auto using app_nil_r).
      rewrite X, signalled_app, signalled_times. lia.
    + intros i Hi. rewrite (retirements_those i g) by exact Hi. rewrite X, labelled_app, labelled_times.
      rewrite (base_uncut t U). lia.
  - rewrite issues_app in E. cbn [issues] in E. rewrite <- app_assoc in E. cbn [app] in E.
    destruct (behind_reset _ _ _ _ _ E (Nr ss)) as (r' & -> & Ed).
    apply cut_whole_suffix in W. cbn [cut_whole] in W. destruct W as [W _].
    destruct (W ltac:(unfold cut; now rewrite F)) as [k K].
    rewrite issues_app in N. cbn [issues] in N. rewrite !those_app, K in N. cbn [those app] in N.
    rewrite app_nil_r, <- app_assoc in N.
    destruct (times_cancel g some _ _ _ N) as [q Q]. rewrite Ed, those_app, <- app_assoc in Q. symmetry in Q.
    destruct (prefix_of_times g q some _ _ Q) as (m & j & Hj & X). exists (Z.of_nat m), j.
    split; [lia|]. split; [exact Hj|].
    assert (Ek : before_cut p (d ++ Met b ss :: t') = Z.of_nat k).
    { rewrite Eb. specialize (B d b ss t' eq_refl c F). destruct g as [|[i a] g']; [simpl in some; lia|].
      destruct B as [B1 B2]. rewrite <- B2, issues_of_retirements.
      rewrite (retirements_those i ((i, a) :: g')) by (cbn [has_label existsb fst]; now rewrite Pos.eqb_refl).
      rewrite K, labelled_times, B1. lia. }
    split.
    + intros s Hs. unfold value_of. rewrite fold_left_app. cbn [fold_left advance].
      rewrite (Z b ss) by (auto; apply in_or_app; right; now left). unfold cut at 1. rewrite F.
      rewrite (value_those s g r' Hs) by (apply (Unreset d (Met b ss :: t') r' rest); auto).
      rewrite X, signalled_app, signalled_times. lia.
    + intros i Hi. rewrite (retirements_those i g) by exact Hi. rewrite those_app, K. cbn [those].
      rewrite labelled_app, labelled_times, X, labelled_app, labelled_times, Ek. lia.
Qed.

(** An engine that has nothing to do with a group. *)
Definition stranger (r : retired) : Prop := those g r = [] /\ forall s, has_signal s g = true -> unreset s r.

Lemma stranger_value r s v : stranger r -> has_signal s g = true -> fold_left (advance s) r v = v.
Proof. intros [N U] H. rewrite (value_those s g r H v (U s H)), N. cbn. lia. Qed.

Lemma strangers_around front r back n : stranger front -> stranger back -> in_order g n r -> in_order g n (front ++ r ++ back).
Proof.
  intros F B (m & j & Hm & Hj & Hs & Hi). exists m, j. split; [exact Hm|]. split; [exact Hj|]. split.
  - intros s H. unfold value_of. rewrite !fold_left_app, (stranger_value front), (stranger_value back) by auto. exact (Hs s H).
  - intros i H. rewrite !retirements_app, (retirements_those i g front), (retirements_those i g back) by exact H.
    destruct F as [-> _], B as [-> _]. cbn. rewrite Hi by exact H. lia.
Qed.

Lemma nobody_in_order r : stranger r -> in_order g 0 r.
Proof.
  intros [N U]. exists 0, O. split; [lia|]. split; [exact some|]. split.
  - intros s H. rewrite (stranger_value r s 0 (conj N U) H : value_of s r = 0). cbn. lia.
  - intros i H. rewrite (retirements_those i g) by exact H. rewrite N. cbn. lia.
Qed.

Lemma stranger_app r r' : stranger r -> stranger r' -> stranger (r ++ r').
Proof.
  intros [N U] [N' U']. split; [now rewrite those_app, N, N'|]. intros s H ss I. apply in_app_or in I as [I|I];
    [exact (U s H ss I)|exact (U' s H ss I)].
Qed.
End Group.
