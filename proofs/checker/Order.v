(** Instructions of an engine retire in the order in which they issue: what a semaphore says of its producers.

    What issues in one block of a stream makes rounds: in any prefix of a run, some whole rounds and the beginning of one
    more. So the value of a semaphore that one block signals says how often each instruction of the block has retired. *)
From Coq Require Import ZArith List Bool Lia PArith Relations.
From Checker Require Import Language States.
Import ListNotations.
Local Open Scope Z_scope.

(** The instructions of a history, in the order in which they issue. *)
Fixpoint issues (t : trace) : retired :=
  match t with
  | [] => []
  | Issued i g _ :: t => issues t ++ [(i, g)]
  | Entered _ :: t => issues t
  end.

Lemma issues_app d t : issues (d ++ t) = issues t ++ issues d.
Proof.
  induction d as [|[l|i g ws] d IH]; cbn [app issues]; [now rewrite app_nil_r|exact IH|]. now rewrite IH, app_assoc.
Qed.

Definition belongs (g : group) (x : label * option semaphore) : bool :=
  has_label (fst x) g || match snd x with Some s => has_signal s g | None => false end.
Definition those (g : group) (r : retired) : retired := filter (belongs g) r.

Fixpoint times (n : nat) (g : group) : retired := match n with O => [] | S n => g ++ times n g end.

Lemma times_add n m g : times (n + m) g = times n g ++ times m g.
Proof. induction n as [|n IH]; simpl; [reflexivity|]. now rewrite IH, app_assoc. Qed.

(** What a stream issues of a group: always the same, or whole rounds. *)
Inductive pattern := Word (w : retired) | Rounds.

Definition same_item (x y : label * option semaphore) : bool :=
  Pos.eqb (fst x) (fst y)
  && match snd x, snd y with Some s, Some s' => Pos.eqb s s' | None, None => true | _, _ => false end.
Fixpoint same_word (u v : retired) : bool :=
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

Fixpoint pattern_of {form} (g : group) (s : stream form) : option pattern :=
  match s with
  | Skip | Let _ _ | Wait _ _ | Enter _ => Some (Word [])
  | Issue i a => Some (Word (if belongs g (i, a) then [(i, a)] else []))
  | Seq a b =>
      match pattern_of g a, pattern_of g b with
      | Some (Word u), Some (Word v) => Some (Word (u ++ v))
      | Some p, Some q => rounds_of g p q
      | _, _ => None
      end
  | Choice a b =>
      match pattern_of g a, pattern_of g b with
      | Some (Word u as p), Some (Word v as q) => if same_word u v then Some (Word u) else rounds_of g p q
      | Some p, Some q => rounds_of g p q
      | _, _ => None
      end
  | Loop _ b =>
      match pattern_of g b with
      | Some (Word []) => Some (Word [])
      | Some p => rounds_of g p p
      | None => None
      end
  end.

Definition matches (g : group) (p : pattern) (w : retired) : Prop :=
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

Lemma those_app g u v : those g (u ++ v) = those g u ++ those g v.
Proof. apply filter_app. Qed.

Lemma pattern_sound {form} (s : stream form) g : forall p x y, pattern_of g s = Some p -> run s x y ->
  exists d, history y = d ++ history x /\ matches g p (those g (issues d)).
Proof.
  induction s; intros p u v E R; cbn [pattern_of run] in *.
  - injection E as <-. subst. now exists [].
  - destruct R as (z & R1 & R2).
    destruct (pattern_of g s1) as [p1|]; [|discriminate].
    destruct (pattern_of g s2) as [p2|]; [|destruct p1; discriminate].
    destruct (IHs1 _ _ _ eq_refl R1) as (d1 & H1 & M1). destruct (IHs2 _ _ _ eq_refl R2) as (d2 & H2 & M2).
    exists (d2 ++ d1). split; [rewrite H2, H1; apply app_assoc|]. rewrite issues_app, those_app.
    assert (X : rounds_of g p1 p2 = Some p -> matches g p (those g (issues d1) ++ those g (issues d2))).
    { intros E'. destruct (rounds_of_sound _ _ _ _ E') as (-> & W1 & W2).
      destruct (whole_sound _ _ _ W1 M1) as [n ->]. destruct (whole_sound _ _ _ W2 M2) as [m ->].
      exists (n + m)%nat. symmetry. apply times_add. }
    destruct p1 as [w1|], p2 as [w2|]; try exact (X E). injection E as <-. simpl in *. congruence.
  - injection E as <-. destruct R as (z & _ & ->). now exists [].
  - injection E as <-. subst. now exists [].
  - injection E as <-. subst. exists [Issued i signal (waits u)]. split; [reflexivity|].
    cbn [issues app those filter matches]. destruct (belongs g (i, signal)); reflexivity.
  - injection E as <-. subst. exists [Entered l]. split; reflexivity.
  - destruct (pattern_of g s1) as [p1|]; [|discriminate].
    destruct (pattern_of g s2) as [p2|]; [|destruct p1; discriminate].
    assert (X : rounds_of g p1 p2 = Some p -> forall w, matches g p1 w \/ matches g p2 w -> matches g p w).
    { intros E' w M. destruct (rounds_of_sound _ _ _ _ E') as (-> & W1 & W2). destruct M as [M|M]; [exact (whole_sound _ _ _ W1 M)|exact (whole_sound _ _ _ W2 M)]. }
    assert (Y : exists d, history v = d ++ history u /\
      (matches g p1 (those g (issues d)) \/ matches g p2 (those g (issues d)))).
    { destruct R as [R|R]; [destruct (IHs1 _ _ _ eq_refl R) as (d & ? & ?)|destruct (IHs2 _ _ _ eq_refl R) as (d & ? & ?)];
        exists d; auto. }
    destruct Y as (d & H & M). exists d. split; [exact H|].
    destruct p1 as [w1|], p2 as [w2|]; try (apply (X E); exact M).
    destruct (same_word w1 w2) eqn:S; [|apply (X E); exact M]. injection E as <-. apply same_word_sound in S as ->.
    simpl in *. tauto.
  - destruct (pattern_of g s) as [p1|]; [|discriminate].
    assert (Empty : p1 = Word [] -> exists d, history v = d ++ history u /\ those g (issues d) = []).
    { intros ->. clear E. induction R as [a|a b c R1 R2 IH]; [now exists []|].
      destruct (IHs _ _ _ eq_refl R1) as (d1 & H1 & M1). destruct IH as (d2 & H2 & M2).
      exists (d2 ++ d1). split; [rewrite H2, H1; apply app_assoc|]. rewrite issues_app, those_app. simpl in M1.
      now rewrite M1, M2. }
    assert (Some_ : rounds_of g p1 p1 = Some p -> exists d, history v = d ++ history u /\ matches g p (those g (issues d))).
    { intros E'. destruct (rounds_of_sound _ _ _ _ E') as (-> & W & _). clear E E' Empty.
      induction R as [a|a b c R1 R2 IH]; [exists []; split; [reflexivity|now exists O]|].
      destruct (IHs _ _ _ eq_refl R1) as (d1 & H1 & M1). destruct IH as (d2 & H2 & [m M2]).
      destruct (whole_sound _ _ _ W M1) as [n M1'].
      exists (d2 ++ d1). split; [rewrite H2, H1; apply app_assoc|]. rewrite issues_app, those_app, M1', M2.
      exists (n + m)%nat. symmetry. apply times_add. }
    destruct p1 as [[|w ws]|]; auto. injection E as <-. apply Empty; reflexivity.
Qed.

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

Lemma those_prefix g u v n : (0 < length g)%nat -> those g (u ++ v) = times n g ->
  exists m j, (j < length g)%nat /\ those g u = times m g ++ firstn j g.
Proof. intros L E. rewrite those_app in E. symmetry in E. eauto using prefix_of_times. Qed.

Lemma value_of_app s u v : value_of s (u ++ v) = value_of s u + value_of s v.
Proof. unfold value_of. induction u; cbn [app fold_right] in *; lia. Qed.
Lemma retirements_app i u v : retirements i (u ++ v) = retirements i u + retirements i v.
Proof. unfold retirements. induction u; cbn [app fold_right] in *; lia. Qed.

Lemma value_of_those s g r : has_signal s g = true -> value_of s (those g r) = value_of s r.
Proof.
  intros H. unfold value_of, those. induction r as [|[i a] r IH]; cbn [filter fold_right]; [reflexivity|].
  destruct (belongs g (i, a)) eqn:B; cbn [fold_right]; rewrite IH; [reflexivity|].
  unfold belongs in B; cbn [fst snd] in B. apply orb_false_iff in B as [_ B]. unfold signals_of; cbn [snd].
  destruct a as [s'|]; [|reflexivity]. destruct (Pos.eqb_spec s' s); [congruence|reflexivity].
Qed.
Lemma retirements_those i g r : has_label i g = true -> retirements i (those g r) = retirements i r.
Proof.
  intros H. unfold retirements, those. induction r as [|[i' a] r IH]; cbn [filter fold_right]; [reflexivity|].
  destruct (belongs g (i', a)) eqn:B; cbn [fold_right]; rewrite IH; [reflexivity|].
  unfold belongs in B; cbn [fst snd] in B |- *. apply orb_false_iff in B as [B _].
  destruct (Pos.eqb_spec i' i); [congruence|reflexivity].
Qed.

Lemma value_of_times s n g : value_of s (times n g) = Z.of_nat n * value_of s g.
Proof. induction n as [|n IH]; [reflexivity|]. cbn [times]. rewrite value_of_app, IH. lia. Qed.
Lemma retirements_times i n g : retirements i (times n g) = Z.of_nat n * retirements i g.
Proof. induction n as [|n IH]; [reflexivity|]. cbn [times]. rewrite retirements_app, IH. lia. Qed.

(** ** All engines together *)

(** What each engine may have retired at some time, one after the other: a prefix of what it issues in a run. *)
Definition retired_prefix {form} (s : stream form) (r : retired) : Prop :=
  exists t rest, runs s t /\ issues t = r ++ rest.
Definition retirement {form} (ss : list (stream form)) (r : retired) : Prop :=
  exists rs, Forall2 retired_prefix ss rs /\ r = concat rs.

Definition issues_none {form} (g : group) (s : stream form) : bool :=
  match pattern_of g s with Some (Word []) => true | _ => false end.

(** Only one stream issues what belongs to a group, and that in rounds. *)
Fixpoint in_one {form} (g : group) (ss : list (stream form)) : bool :=
  match ss with
  | [] => true
  | s :: ss =>
      if issues_none g s then in_one g ss
      else match pattern_of g s with Some p => whole g p | None => false end && forallb (issues_none g) ss
  end.

Lemma issues_none_sound {form} g (s : stream form) r : issues_none g s = true -> retired_prefix s r -> those g r = [].
Proof.
  unfold issues_none. intros H (t & rest & (env & y & R & <-) & E).
  destruct (pattern_of g s) as [[[|]|]|] eqn:P; try discriminate.
  destruct (pattern_sound s g _ _ _ P R) as (d & Hd & M). cbn [history] in Hd. rewrite app_nil_r in Hd. subst d.
  cbn [matches] in M. rewrite E, those_app in M. now apply app_eq_nil in M.
Qed.

Theorem in_one_sound {form} g (ss : list (stream form)) r :
  (0 < length g)%nat -> in_one g ss = true -> retirement ss r -> in_order g r.
Proof.
  intros L H (rs & F & ->).
  assert (X : exists m j, (j < length g)%nat /\ those g (concat rs) = times m g ++ firstn j g).
  { induction F as [|s r ss rs Fs Fr IH]; [exists O, O; split; [exact L|reflexivity]|]. cbn [in_one concat] in *. rewrite those_app.
    destruct (issues_none g s) eqn:N; [rewrite (issues_none_sound g s r N Fs); exact (IH H)|].
    apply andb_true_iff in H as [H1 H2].
    assert (Rest : those g (concat rs) = []).
    { clear IH. induction Fr as [|s' r' ss rs Fs' Fr IH]; [reflexivity|]. cbn [concat forallb] in *. rewrite those_app.
      apply andb_true_iff in H2 as [H2 H3]. rewrite (issues_none_sound g s' r' H2 Fs'). exact (IH H3). }
    rewrite Rest, app_nil_r. destruct Fs as (t & rest & (env & y & R & <-) & E).
    destruct (pattern_of g s) as [p|] eqn:P; [|discriminate].
    destruct (pattern_sound s g _ _ _ P R) as (d & Hd & M). cbn [history] in Hd. rewrite app_nil_r in Hd. subst d.
    destruct (whole_sound _ _ _ H1 M) as [n Mn]. rewrite E in Mn. eauto using those_prefix. }
  destruct X as (m & j & Hj & X). exists (Z.of_nat m), j. split; [lia|]. split; [exact Hj|]. split.
  - intros s Hs. rewrite <- (value_of_those s g) by exact Hs. rewrite X, value_of_app, value_of_times. reflexivity.
  - intros i Hi. rewrite <- (retirements_those i g) by exact Hi. rewrite X, retirements_app, retirements_times. reflexivity.
Qed.
