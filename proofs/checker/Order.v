(** Instructions of an engine retire in the order in which they issue: what a semaphore says of its producers.

    What issues in one block of a stream makes rounds: in any prefix of a run, some whole rounds and the beginning of one
    more. So the value of a semaphore that one block signals says how often each instruction of the block has retired.
    Where it becomes 0, at a barrier, that is so of what retired since; what did before is told by what the barrier comes
    behind. *)
From Coq Require Import ZArith List Bool Lia PArith Relations.
From Checker Require Import Language States.
Import ListNotations.
Local Open Scope Z_scope.

(** What of a history can have retired, in the order in which it issues. *)
Fixpoint issues (t : trace) : retired :=
  match t with
  | [] => []
  | Entered _ :: t => issues t
  | Issued i g _ :: t => issues t ++ [Done i g]
  | Met _ ss :: t => issues t ++ [Reset ss]
  end.

Lemma issues_app d t : issues (d ++ t) = issues t ++ issues d.
Proof.
  induction d as [|[l|i g ws|b ss] d IH]; cbn [app issues]; [now rewrite app_nil_r|exact IH| |]; now rewrite IH, app_assoc.
Qed.

Definition belongs (g : group) (x : label * option semaphore) : bool :=
  has_label (fst x) g || match snd x with Some s => has_signal s g | None => false end.
Fixpoint those (g : group) (r : retired) : group :=
  match r with
  | [] => []
  | Done i a :: r => (if belongs g (i, a) then [(i, a)] else []) ++ those g r
  | Reset _ :: r => those g r
  end.

Lemma those_app g u v : those g (u ++ v) = those g u ++ those g v.
Proof. induction u as [|[i a|ss] u IH]; cbn [app those]; [reflexivity| |exact IH]. now rewrite IH, app_assoc. Qed.

Fixpoint times (n : nat) (g : group) : group := match n with O => [] | S n => g ++ times n g end.

Lemma times_add n m g : times (n + m) g = times n g ++ times m g.
Proof. induction n as [|n IH]; simpl; [reflexivity|]. now rewrite IH, app_assoc. Qed.

(** What a stream issues of a group: always the same, or whole rounds. *)
Inductive pattern := Word (w : group) | Rounds.

Definition same_item (x y : label * option semaphore) : bool :=
  Pos.eqb (fst x) (fst y)
  && match snd x, snd y with Some s, Some s' => Pos.eqb s s' | None, None => true | _, _ => false end.
Fixpoint same_word (u v : group) : bool :=
  match u, v with [], [] => true | x :: u, y :: v => same_item x y && same_word u v | _, _ => false end.

Lemma same_word_sound u v : same_word u v = true -> u = v.
Proof.
  revert v; induction u as [|[x a] u IH]; intros [|[y b] v]; simpl; try discriminate; [auto|].
  intros H. apply andb_true_iff in H as [H H2]. unfold same_item in H; cbn [fst snd] in H.
  apply andb_true_iff in H as [H1 H3]. apply Pos.eqb_eq in H1 as ->. rewrite (IH _ H2). f_equal. f_equal.
  destruct a, b; try discriminate; [|reflexivity]. apply Pos.eqb_eq in H3. congruence.
Qed.

Definition whole (g : group) (p : pattern) : bool :=
  match p with Word [] => true | Word w => same_word w g | Rounds => true end.
Definition rounds_of (g : group) (p q : pattern) : option pattern :=
  if whole g p && whole g q then Some Rounds else None.

(** [cut]: the barriers at which the semaphores of the group become 0, always between rounds. *)
Fixpoint pattern_of {form} (cut : barrier -> bool) (g : group) (s : stream form) : option pattern :=
  match s with
  | Skip | Let _ _ | Wait _ _ | Enter _ | Assume _ _ => Some (Word [])
  | Meet b _ => Some (if cut b then Rounds else Word [])
  | Issue i a => Some (Word (if belongs g (i, a) then [(i, a)] else []))
  | Seq a b =>
      match pattern_of cut g a, pattern_of cut g b with
      | Some (Word u), Some (Word v) => Some (Word (u ++ v))
      | Some p, Some q => rounds_of g p q
      | _, _ => None
      end
  | Choice a b =>
      match pattern_of cut g a, pattern_of cut g b with
      | Some (Word u as p), Some (Word v as q) => if same_word u v then Some (Word u) else rounds_of g p q
      | Some p, Some q => rounds_of g p q
      | _, _ => None
      end
  | Loop _ b =>
      match pattern_of cut g b with
      | Some (Word []) => Some (Word [])
      | Some p => rounds_of g p p
      | None => None
      end
  end.

Definition matches (g : group) (p : pattern) (w : group) : Prop :=
  match p with Word u => w = u | Rounds => exists n, w = times n g end.

Lemma whole_sound g p w : whole g p = true -> matches g p w -> exists n, w = times n g.
Proof.
  destruct p as [[|x u]|]; simpl; intros H M; [subst; now exists O| |exact M].
  apply (same_word_sound (x :: u)) in H. subst. exists 1%nat. simpl. now rewrite app_nil_r.
Qed.

Lemma rounds_of_sound g p q r : rounds_of g p q = Some r -> r = Rounds /\ whole g p = true /\ whole g q = true.
Proof.
  unfold rounds_of. destruct (whole g p); [|discriminate]. destruct (whole g q); [|discriminate].
  intros E; injection E as <-; auto.
Qed.

Section Patterns.
Context {form : Type}.
Variables (cut : barrier -> bool) (g : group).

Fixpoint uncut (d : trace) : Prop :=
  match d with [] => True | Met b _ :: d => cut b = false /\ uncut d | _ :: d => uncut d end.
(** At each cut, whole rounds. *)
Fixpoint cut_whole (d : trace) : Prop :=
  match d with
  | [] => True
  | Met b _ :: d => (cut b = true -> exists n, those g (issues d) = times n g) /\ cut_whole d
  | _ :: d => cut_whole d
  end.

Lemma uncut_app d e : uncut (d ++ e) <-> uncut d /\ uncut e.
Proof. induction d as [|[| |] d IH]; cbn [app uncut]; tauto. Qed.
Lemma uncut_whole d : uncut d -> cut_whole d.
Proof. induction d as [|[| |] d IH]; cbn [uncut cut_whole]; intros H; auto. destruct H as [H1 H2]. split; [congruence|auto]. Qed.
Lemma cut_whole_app d e n : those g (issues e) = times n g -> cut_whole e -> cut_whole d -> cut_whole (d ++ e).
Proof.
  intros N E. induction d as [|[| |b ss] d IH]; cbn [app cut_whole]; auto. intros [D1 D2]. split; [|auto].
  intros Cb. destruct (D1 Cb) as [m M]. exists (n + m)%nat. rewrite issues_app, those_app, N, M. symmetry. apply times_add.
Qed.
Lemma cut_whole_suffix d e : cut_whole (d ++ e) -> cut_whole e.
Proof. induction d as [|[| |] d IH]; cbn [app cut_whole]; tauto. Qed.

(** What a pattern says of what a stream adds to a history. *)
Definition goes_round (p : pattern) (d : trace) : Prop :=
  matches g p (those g (issues d)) /\ match p with Word _ => uncut d | Rounds => cut_whole d end.

Lemma whole_round p d : whole g p = true -> goes_round p d ->
  exists n, those g (issues d) = times n g /\ cut_whole d.
Proof.
  intros W [M Q]. destruct (whole_sound _ _ _ W M) as [n E]. exists n. split; [exact E|]. destruct p; auto using uncut_whole.
Qed.

Lemma rounds_together p q r d e : rounds_of g p q = Some r -> goes_round p d -> goes_round q e -> goes_round r (e ++ d).
Proof.
  intros H D E. destruct (rounds_of_sound _ _ _ _ H) as (-> & W1 & W2).
  destruct (whole_round _ _ W1 D) as (n & N & D'). destruct (whole_round _ _ W2 E) as (m & M & E'). split.
  - exists (n + m)%nat. rewrite issues_app, those_app, N, M. symmetry. apply times_add.
  - eauto using cut_whole_app.
Qed.

Lemma either_round p q r d : rounds_of g p q = Some r -> goes_round p d \/ goes_round q d -> goes_round r d.
Proof.
  intros H D. destruct (rounds_of_sound _ _ _ _ H) as (-> & W1 & W2).
  assert (X : exists n, those g (issues d) = times n g /\ cut_whole d) by (destruct D; eauto using whole_round).
  destruct X as (n & N & X). split; [exists n; exact N|exact X].
Qed.

Lemma pattern_sound (s : stream form) : forall p x y, pattern_of cut g s = Some p -> run s x y ->
  exists d, history y = d ++ history x /\ goes_round p d.
Proof.
  induction s; intros p u v E R; cbn [pattern_of run] in *.
  - injection E as <-. subst. exists []. repeat split.
  - destruct R as (z & R1 & R2).
    destruct (pattern_of cut g s1) as [p1|]; [|discriminate].
    destruct (pattern_of cut g s2) as [p2|]; [|destruct p1; discriminate].
    destruct (IHs1 _ _ _ eq_refl R1) as (d1 & H1 & M1). destruct (IHs2 _ _ _ eq_refl R2) as (d2 & H2 & M2).
    exists (d2 ++ d1). split; [rewrite H2, H1; apply app_assoc|].
    destruct p1 as [w1|], p2 as [w2|]; try exact (rounds_together _ _ _ _ _ E M1 M2). injection E as <-.
    destruct M1 as [M1 Q1], M2 as [M2 Q2]. split; [|apply uncut_app; auto]. simpl in *.
    rewrite issues_app, those_app. congruence.
  - injection E as <-. destruct R as (z & _ & ->). exists []. repeat split.
  - injection E as <-. subst. exists []. repeat split.
  - injection E as <-. subst. exists [Issued i signal (waits u)]. split; [reflexivity|]. split; [|exact I].
    cbn [issues app those matches]. destruct (belongs g (i, signal)); reflexivity.
  - injection E as <-. subst. exists [Entered l]. repeat split.
  - injection E as <-. destruct R as [-> _]. exists []. repeat split.
  - injection E as <-. subst. exists [Met b ss]. split; [reflexivity|]. destruct (cut b) eqn:Cb.
    + split; [exists O; reflexivity|]. split; [|exact I]. intros _. exists O. reflexivity.
    + split; [reflexivity|]. split; [exact Cb|exact I].
  - destruct (pattern_of cut g s1) as [p1|]; [|discriminate].
    destruct (pattern_of cut g s2) as [p2|]; [|destruct p1; discriminate].
    assert (Y : exists d, history v = d ++ history u /\ (goes_round p1 d \/ goes_round p2 d)).
    { destruct R as [R|R]; [destruct (IHs1 _ _ _ eq_refl R) as (d & ? & ?)|destruct (IHs2 _ _ _ eq_refl R) as (d & ? & ?)];
        exists d; auto. }
    destruct Y as (d & H & M). exists d. split; [exact H|].
    destruct p1 as [w1|], p2 as [w2|]; try exact (either_round _ _ _ _ E M).
    destruct (same_word w1 w2) eqn:S; [|exact (either_round _ _ _ _ E M)]. injection E as <-.
    apply same_word_sound in S as ->. tauto.
  - destruct (pattern_of cut g s) as [p1|]; [|discriminate].
    assert (Empty : p1 = Word [] -> exists d, history v = d ++ history u /\ goes_round (Word []) d).
    { intros ->. clear E. induction R as [a|a b c R1 R2 IH]; [exists []; repeat split|].
      destruct (IHs _ _ _ eq_refl R1) as (d1 & H1 & M1 & Q1). destruct IH as (d2 & H2 & M2 & Q2).
      exists (d2 ++ d1). split; [rewrite H2, H1; apply app_assoc|]. split; [|apply uncut_app; auto].
      simpl in *. now rewrite issues_app, those_app, M1, M2. }
    assert (Some_ : rounds_of g p1 p1 = Some p -> exists d, history v = d ++ history u /\ goes_round p d).
    { intros E'. destruct (rounds_of_sound _ _ _ _ E') as (-> & W & _). clear Empty E.
      induction R as [a|a b c R1 R2 IH]; [exists []; split; [reflexivity|]; split; [now exists O|exact I]|].
      destruct (IHs _ _ _ eq_refl R1) as (d1 & H1 & M1). destruct IH as (d2 & H2 & M2).
      exists (d2 ++ d1). split; [rewrite H2, H1; apply app_assoc|].
      assert (Q : goes_round Rounds d1) by exact (either_round _ _ _ _ E' (or_introl M1)).
      apply (rounds_together Rounds Rounds Rounds d1 d2); auto. }
    destruct p1 as [[|w ws]|]; auto. injection E as <-. apply Empty; reflexivity.
Qed.
End Patterns.

(** A prefix of rounds. *)
Lemma prefix_of_times g n : (0 < length g)%nat -> forall u v, times n g = u ++ v ->
  exists m j, (j < length g)%nat /\ u = times m g ++ firstn j g.
Proof.
  intros L. induction n as [|n IH]; intros u v E; simpl in E.
  - symmetry in E. apply app_eq_nil in E as [-> _]. exists O, O. now split.
  - destruct (le_lt_dec (length g) (length u)) as [Le|Lt].
    + assert (U : u = g ++ skipn (length g) u).
      { rewrite <- (firstn_skipn (length g) u) at 1. f_equal.
        assert (F : firstn (length g) (g ++ times n g) = firstn (length g) (u ++ v)) by (f_equal; exact E).
        rewrite !firstn_app, firstn_all, Nat.sub_diag in F. replace (length g - length u)%nat with O in F by lia.
        simpl in F. rewrite !app_nil_r in F. now symmetry. }
      rewrite U in E. rewrite <- app_assoc in E. apply app_inv_head in E.
      destruct (IH _ _ E) as (m & j & Hj & X). exists (S m), j. split; [exact Hj|]. rewrite U, X. simpl. now rewrite app_assoc.
    + exists O, (length u). split; [exact Lt|]. simpl.
      assert (F : firstn (length u) (g ++ times n g) = firstn (length u) (u ++ v)) by (f_equal; exact E).
      rewrite !firstn_app, firstn_all, Nat.sub_diag in F. replace (length u - length g)%nat with O in F by lia.
      simpl in F. rewrite !app_nil_r in F. auto.
Qed.

Lemma times_cancel g : (0 < length g)%nat -> forall n m v, times n g ++ v = times m g -> exists k, v = times k g.
Proof.
  intros L. induction n as [|n IH]; intros m v E; simpl in E; [exists m; exact E|]. destruct m as [|m]; simpl in E.
  - destruct g; [simpl in L; lia|discriminate].
  - rewrite <- app_assoc in E. apply app_inv_head in E. eauto.
Qed.

(** ** Counts *)

Lemma labelled_app i u v : labelled i (u ++ v) = labelled i u + labelled i v.
Proof. unfold labelled. induction u; cbn [app fold_right] in *; lia. Qed.
Lemma signalled_app s u v : signalled s (u ++ v) = signalled s u + signalled s v.
Proof. unfold signalled. induction u; cbn [app fold_right] in *; lia. Qed.
Lemma labelled_times i n g : labelled i (times n g) = Z.of_nat n * labelled i g.
Proof. induction n as [|n IH]; [reflexivity|]. cbn [times]. rewrite labelled_app, IH. lia. Qed.
Lemma signalled_times s n g : signalled s (times n g) = Z.of_nat n * signalled s g.
Proof. induction n as [|n IH]; [reflexivity|]. cbn [times]. rewrite signalled_app, IH. lia. Qed.

Lemma retirements_app i u v : retirements i (u ++ v) = retirements i u + retirements i v.
Proof. unfold retirements. induction u; cbn [app fold_right] in *; lia. Qed.

Lemma retirements_those i g r : has_label i g = true -> retirements i r = labelled i (those g r).
Proof.
  intros H. unfold retirements, labelled. induction r as [|[i' a|ss] r IH]; cbn [those fold_right]; [reflexivity| |exact IH].
  destruct (belongs g (i', a)) eqn:B; cbn [app fold_right fst]; rewrite IH; [reflexivity|].
  unfold belongs in B; cbn [fst snd] in B. apply orb_false_iff in B as [B _].
  destruct (Pos.eqb_spec i' i); [congruence|reflexivity].
Qed.

Lemma issues_of_retirements i t : issues_of i t = retirements i (issues t).
Proof.
  induction t as [|[l|i' g ws|b ss] t IH]; cbn [issues_of issues]; try reflexivity; auto;
    rewrite retirements_app; unfold retirements at 2; cbn [fold_right]; lia.
Qed.

(** No semaphore [s] becomes 0. *)
Definition unreset (s : semaphore) (r : retired) : Prop := forall ss, In (Reset ss) r -> among s ss = false.

Lemma value_those s g r : has_signal s g = true -> forall v, unreset s r ->
  fold_left (advance s) r v = v + signalled s (those g r).
Proof.
  intros H. unfold signalled. induction r as [|[i a|ss] r IH]; intros v U; cbn [fold_left those]; [simpl; lia| |].
  - rewrite IH by (intros ss I; apply U; now right). destruct (belongs g (i, a)) eqn:B; cbn [app fold_right snd advance].
    + destruct a as [s'|]; [destruct (Pos.eqb s' s)|]; lia.
    + unfold belongs in B; cbn [fst snd] in B. apply orb_false_iff in B as [_ B]. destruct a as [s'|]; [|lia].
      destruct (Pos.eqb_spec s' s) as [->|]; [congruence|lia].
  - cbn [advance]. rewrite (U ss (or_introl eq_refl)). apply IH. intros ss' I. apply U. now right.
Qed.
