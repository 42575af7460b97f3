(** Theorem 7.1: specification and implementation of a well-formed program with allocatable dependencies are bisimilar.
    Programs, data, control, guards and trip counts are arbitrary; nothing says that engines agree on trip counts. *)
From Coq Require Import Arith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program Machine Registers Owed Retirement.

Section Main.
Variable m : machine.
Notation P := (program_of m).
Variable keeps_trip : loop -> bool.
Hypothesis W : well_formed P.
Hypothesis AL : Allocatable P (deps m).
(** trip counters may be left out where no mask reads them *)
Hypothesis KT : forall l, tripped m l -> keeps_trip l = true.

Definition invariant (sh : shared m) H R sema r : Prop := forall e,
  counted m keeps_trip e (conts m sh e) (H e) (r e) /\
  exists done, ordered m e (conts m sh e) (in_flight m sh e) (entries (H e)) R sema done.

(** Equal data, control, continuations and pipelines; registers and semaphores as the history says. *)
Definition related (s : spec m) (t : impl m) : Prop :=
  s_shared m s = i_shared m t /\
  invariant (s_shared m s) (s_hist m s) (s_retired m s) (i_sema m t) (i_regs m t).

(** A wait passes exactly when its dependency is satisfied. *)
Theorem wait_exact : forall sh H R sema r e x i rest fs, invariant sh H R sema r ->
  conts m sh e = (x, Instr i :: rest) :: fs -> forall d, In d (deps m i) ->
  (satisfied m (H e) R d <-> passes m sema (r e) d).
Proof.
  intros sh H R sema r e x i rest fs IV Fe d Hd.
  destruct (IV e) as [C _]. rewrite Fe in C. assert (G := c_good _ _ _ _ _ _ C).
  assert (IB : In (Instr i) (body P e x)).
  { eapply suffix_in; [eapply good_suffix; [exact G | left; reflexivity] | left; reflexivity]. }
  destruct (wf_instr _ W _ _ _ IB) as [<- Ee].
  destruct (AL i d Hd) as [(US & IP & SG) A]. subst e.
  assert (KTd : forall l, reads_trip m d l -> keeps_trip l = true) by (intros; apply KT; exists i, d; auto).
  destruct (IV (engine_of P (producer d))) as [_ [done O]].
  destruct (sema_decodes m W _ _ _ _ _ _ _ (producer d) O eq_refl IP SG) as (n & j & Hj & Es & ER & HK).
  unfold passes, wait_value, satisfied. rewrite Es.
  destruct (mask_exact m W keeps_trip _ _ _ _ _ d C US A KTd) as [[-> X]|[-> X]].
  - unfold threshold. rewrite Nat.mul_0_l, Nat.mul_0_r. split; [lia | auto].
  - rewrite Nat.mul_1_l, decode, (owed_exact m W keeps_trip _ _ _ _ _ d C US A KTd X), ER by assumption. tauto.
Qed.
Lemma waits_exact : forall sh H R sema r e x i rest fs, invariant sh H R sema r ->
  conts m sh e = (x, Instr i :: rest) :: fs ->
  (Forall (satisfied m (H e) R) (deps m i) <-> Forall (passes m sema (r e)) (deps m i)).
Proof.
  intros. rewrite !Forall_forall. split; intros F d Hd; specialize (F d Hd);
  apply (wait_exact _ _ _ _ _ _ _ _ _ _ H0 H1 d Hd); assumption.
Qed.

Lemma upd_same : forall A (f : nat -> A) e v, upd f e v e = v.
Proof. intros. unfold upd. rewrite Nat.eqb_refl. reflexivity. Qed.
Lemma upd_other : forall A (f : nat -> A) e v e', e' <> e -> upd f e v e' = f e'.
Proof. intros. unfold upd. rewrite (proj2 (Nat.eqb_neq _ _) H). reflexivity. Qed.

Theorem start_related : forall d c, related (spec_start m d c) (impl_start m d c).
Proof.
  intros d c. split; [reflexivity|]. intro e. simpl.
  assert (C : forall l, entries hist_start l = if l =? top then 1 else 0) by (intro l; destruct l; reflexivity).
  assert (Z : forall S n Q, Q <> top -> hist_start S n Q = 0).
  { intros. unfold hist_start. rewrite (proj2 (Nat.eqb_neq Q top)), andb_false_r by assumption. reflexivity. }
  split.
  - constructor.
    + constructor. exists []. reflexivity.
    + reflexivity.
    + intros S n Q Hn. rewrite C in Hn. unfold hist_start. destruct (S =? top); [|reflexivity].
      destruct (Nat.eqb_spec n 1); [lia | reflexivity].
    + intros S Q U. rewrite !C. destruct (Nat.eqb_spec S top) as [->|N].
      * simpl. unfold hist_start. simpl. destruct Q; reflexivity.
      * simpl. destruct (Nat.eqb_spec Q top) as [->|]; [|reflexivity]. inversion U; subst; congruence.
    + intros S n Hn. rewrite C in Hn. destruct (Nat.eqb_spec S top) as [->|]; [|lia].
      assert (n = 1) by lia. subst. reflexivity.
    + intros S [<-|[]]. reflexivity.
    + intros S [<-|[]]. unfold trip. simpl. rewrite (wf_parent_top _ W). reflexivity.
    + intros S rest [E|[]] B Q HB U. injection E as <- <-. apply Z. intros ->.
      destruct (wf_child _ W e top B) as [BT _]; [apply children_tail; assumption|]. inversion U; congruence.
    + intros S a b rest [E|[]] B Q HB _ U. injection E as <- E. apply Z. intros ->.
      assert (HC : In B (children (body P e top))) by (rewrite E; apply (in_or_app [a; b] (children rest)); auto).
      destruct (wf_child _ W e top B HC) as [BT _]. inversion U; congruence.
    + intros S Q n NT U Hn. assert (NQ : Q <> top) by (intros ->; inversion U; congruence). rewrite C in Hn.
      destruct (parent P S =? top); [|assert (n = 0) by lia; subst; reflexivity].
      destruct n as [|[|n]]; [reflexivity | simpl; rewrite !Z by assumption; reflexivity | lia].
    + intro l. rewrite C. unfold value. reflexivity.
    + intros l _. unfold value, trip. rewrite C. destruct (Nat.eqb_spec l top) as [->|N];
      [rewrite (wf_parent_top _ W); reflexivity | rewrite Z by assumption; reflexivity].
    + intros S k Q U Hk. simpl. rewrite C. destruct (S =? top); replace (_ - k) with 0 by lia; reflexivity.
    + intros S k Q U Hk. simpl. rewrite C. destruct (Nat.eqb_spec S top) as [->|N]; [|reflexivity].
      assert (T : trip m hist_start top = 1) by (unfold trip; rewrite (wf_parent_top _ W); reflexivity).
      rewrite T, Nat.min_r by assumption. reflexivity.
  - exists []. constructor; simpl; try tauto.
    + intros l rest [E|[]]. injection E as <- <-. rewrite C. simpl. exists []. split; reflexivity.
    + intros l N. rewrite C. destruct (Nat.eqb_spec l top) as [->|]; [exfalso; apply N; auto | reflexivity].
Qed.

Lemma entered_child : forall g s l, entered g s = Some l -> In l (child s) /\ forall i, s <> Instr i.
Proof.
  intros g [i|l'|a b] l E; simpl in E; try discriminate.
  - destruct (g l'); inversion E; subst. split; [left; reflexivity | discriminate].
  - inversion E. destruct (g a); subst; simpl; split; auto; discriminate.
Qed.

Lemma step_keeps : forall s t a sh', related s t -> shared_step m (s_shared m s) a sh' ->
  related (spec_update m a sh' s) (impl_update m keeps_trip a sh' t).
Proof.
  intros [sh H R] [sh2 sema r] a sh' [E IV] ST. simpl in *. subst sh2.
  assert (EN : forall e i b, in_flight m sh e = (i, true) :: b -> engine_of P i = e).
  { intros e i b Eq. destruct (IV e) as [_ [done O]]. apply (o_engine _ _ _ _ _ _ _ _ O). rewrite Eq.
    apply in_or_app; right; left; reflexivity. }
  destruct ST; (split; [reflexivity|]); intro e0; simpl; specialize (IV e0); simpl in IV; destruct IV as [C [done O]];
  (destruct (Nat.eq_dec e0 e) as [->|N]; [rewrite ?upd_same | rewrite ?upd_other by assumption; eauto]);
  try (rewrite H0 in C, O).
  - destruct (entered_child _ _ _ H1) as [HC NI]. split.
    + apply counted_enter; assumption.
    + exists done. eapply ordered_counts; [|eapply ordered_enter; eauto; eapply enter_good; eauto].
      intro l'. cbv beta. eapply enter_entries; eauto.
  - split; [eapply counted_next; eauto | exists done; eapply ordered_next; eauto; discriminate].
  - split; [eapply counted_back; eauto|]. exists done. eapply ordered_back; eauto.
    + assert (G := c_good _ _ _ _ _ _ C). inversion G; subst. intros i ->. contradiction.
    + apply (c_active _ _ _ _ _ _ C). left. reflexivity.
  - split; [eapply counted_next; eauto|]. exists done. eapply ordered_issue; eauto. exact (c_good _ _ _ _ _ _ C).
  - rewrite H0 in O. split; [assumption | exists done; eapply ordered_commit; eauto].
  - rewrite H0 in O. split; [assumption | exists (done ++ [i]); eapply ordered_retire; eauto].
  - split; [assumption | exists done]. apply ordered_elsewhere; [assumption|].
    intro E. apply N. rewrite <- E. eapply EN. exact H0.
Qed.

Theorem forward : forall s t a s', related s t -> spec_step m s a s' ->
  exists t', impl_step m keeps_trip t a t' /\ related s' t'.
Proof.
  intros s t a s' RL ST. inversion ST as [s0 a0 sh' CS EN]; subst. eexists. split.
  - constructor.
    + rewrite <- (proj1 RL). exact CS.
    + intros e i ->. inversion CS; subst. destruct RL as [E IV].
      eapply waits_exact; [exact IV | rewrite <- H; simpl; eassumption | apply EN; reflexivity].
  - apply step_keeps; assumption.
Qed.
Theorem backward : forall s t a t', related s t -> impl_step m keeps_trip t a t' ->
  exists s', spec_step m s a s' /\ related s' t'.
Proof.
  intros s t a t' RL ST. inversion ST as [t0 a0 sh' CS EN]; subst. rewrite <- (proj1 RL) in CS. eexists. split.
  - constructor; [exact CS|].
    intros e i ->. inversion CS; subst. destruct RL as [E IV].
    eapply waits_exact; [exact IV | rewrite <- H; simpl; eassumption | apply EN; reflexivity].
  - apply step_keeps; assumption.
Qed.
End Main.
