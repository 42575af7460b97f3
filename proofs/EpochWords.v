(** What epochs bring. Traces and states are those of the specification, and of the implementation, whose engines only meet
    ([epoch_same_traces]). And the 32-bit theorem holds of programs that run for ever ([epoch_word_bisimulation]): the bound
    is on what the iterations between two meetings add, not on what the whole program does. *)
From Coq Require Import Arith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program Machine Registers Owed Retirement Bisimulation Corollaries Words Epochs.

Section EpochWords.
Variable m : machine.
Notation P := (program_of m).
Variable keeps_trip : loop -> bool.
Hypothesis W : well_formed P.
Hypothesis AL : Allocatable P (deps m).
Hypothesis KT : forall l, tripped m l -> keeps_trip l = true.
Variable number : nat.
Variable epochs : nat -> epoch.
Hypothesis EP : right_epochs m number epochs.
Notation met := (met m keeps_trip number epochs).
Notation agreeing := (agreeing m epochs).
Notation spec_meets := (spec_meets m number epochs).
Notation impl_meets := (impl_meets m keeps_trip number epochs).
Notation epoch_step := (epoch_step m keeps_trip number epochs).

(** ** Traces *)
Notation spec_begins d c := (spec_start m d c, no_counts).
Notation impl_begins d c := (impl_start m d c, no_counts).
(** Engines agree, wherever they meet, on how often they have entered what is reset. *)
Definition always_agree d c : Prop := forall w x b x', run spec_meets (spec_begins d c) w x -> spec_meets x b x' -> agreeing b x.

Lemma run_more : forall State Label (step : State -> Label -> State -> Prop) s w s1 a s2,
  run step s w s1 -> step s1 a s2 -> run step s (w ++ [a]) s2.
Proof. induction 1; intros; simpl; econstructor; eauto. constructor. Qed.

(** two systems that go together as long as the first is [fine] *)
Lemma runs_together : forall (A B Label : Type) (f : A -> Label -> A -> Prop) (g : B -> Label -> B -> Prop)
  (R : A -> B -> Prop) fine a0,
  (forall w a l a', run f a0 w a -> f a l a' -> fine a l) ->
  (forall w a b l b', run f a0 w a -> R a b -> g b l b' -> fine a l) ->
  (forall a b l a', R a b -> fine a l -> f a l a' -> exists b', g b l b' /\ R a' b') ->
  (forall a b l b', R a b -> fine a l -> g b l b' -> exists a', f a l a' /\ R a' b') ->
  forall b0 w, R a0 b0 ->
  (forall a, run f a0 w a -> exists b, run g b0 w b /\ R a b) /\ (forall b, run g b0 w b -> exists a, run f a0 w a /\ R a b).
Proof.
  intros A B Label f g R fine a0 F1 F2 FW BW b0 w R0.
  assert (H : forall w1 w0 a1 b1, run f a0 w0 a1 -> R a1 b1 ->
    (forall a, run f a1 w1 a -> exists b, run g b1 w1 b /\ R a b) /\ (forall b, run g b1 w1 b -> exists a, run f a1 w1 a /\ R a b)).
  { induction w1 as [|l w1 IH]; intros w0 a1 b1 RN RL; split; intros z H; inversion H; subst.
    - exists b1. split; [constructor | assumption].
    - exists a1. split; [constructor | assumption].
    - destruct (FW _ _ _ _ RL (F1 _ _ _ _ RN H3) H3) as (b' & G & RL').
      destruct (proj1 (IH _ _ _ (run_more _ _ _ _ _ _ _ _ RN H3) RL') z H5) as (b2 & X & Y).
      exists b2. split; [econstructor; eauto | assumption].
    - destruct (BW _ _ _ _ RL (F2 _ _ _ _ _ RN RL H3) H3) as (a' & G & RL').
      destruct (proj2 (IH _ _ _ (run_more _ _ _ _ _ _ _ _ RN G) RL') z H5) as (a2 & X & Y).
      exists a2. split; [econstructor; eauto | assumption]. }
  exact (H w [] a0 b0 (run_nil _ _) R0).
Qed.

Lemma meets_again : forall x y z k z', met x y -> snd z = snd x -> i_shared m (fst z) = s_shared m (fst x) ->
  impl_meets z (inr k) z' \/ epoch_step z (inr k) z' -> exists x', spec_meets x (inr k) x'.
Proof.
  intros [s n] y [v n'] k z' _ E1 E2 ST. simpl in E1, E2. subst n'. exists (s, begin_again epochs k n).
  assert (H : k < number /\ all_held m epochs (i_shared m) k (v, n)) by (destruct ST as [ST|ST]; inversion ST; auto).
  constructor; [tauto|]. destruct H as [_ H]. unfold all_held in *. simpl in *. rewrite <- E2. exact H.
Qed.

Theorem epoch_same_traces : forall d c w sh, always_agree d c ->
  ((exists x, run spec_meets (spec_begins d c) w x /\ s_shared m (fst x) = sh) <->
   (exists y, run epoch_step (impl_begins d c) w y /\ i_shared m (fst y) = sh)).
Proof.
  intros d c w sh AA. destruct (epoch_bisimulation m keeps_trip W AL KT number epochs EP) as (S0 & EQ & FW & BW).
  assert (F2 : forall w0 a b l b', run spec_meets (spec_begins d c) w0 a -> met a b -> epoch_step b l b' -> agreeing l a).
  { intros w0 a b [l|k] b' RN MT ST; [exact I|]. destruct (meets_again a b b k b' MT) as (x' & SM); auto.
    - destruct MT as (t & base & _ & _ & _ & _ & E). auto.
    - symmetry. auto.
    - exact (AA _ _ _ _ RN SM). }
  destruct (runs_together _ _ _ spec_meets epoch_step met (fun a l => agreeing l a) (spec_begins d c) AA F2
    (fun a b l a' H1 H2 H3 => FW a b l a' H1 H2 H3) (fun a b l b' H1 H2 H3 => BW a b l b' H1 H2 H3) (impl_begins d c)
      w (S0 d c)) as [A B].
  split.
  - intros (x & RN & <-). destruct (A x RN) as (y & RY & MT). exists y. split; [assumption | symmetry; auto].
  - intros (y & RN & <-). destruct (B y RN) as (x & RX & MT). exists x. split; [assumption | auto].
Qed.

(** The machine that meets and resets nothing does the same, whether engines agree or not. *)
Theorem meetings_same_traces : forall d c w sh,
  (exists x, run spec_meets (spec_begins d c) w x /\ s_shared m (fst x) = sh) <->
  (exists y, run impl_meets (impl_begins d c) w y /\ i_shared m (fst y) = sh).
Proof.
  intros d c w sh.
  set (R := fun (x : spec m * counts) (y : impl m * counts) => related m keeps_trip (fst x) (fst y) /\ snd x = snd y).
  assert (R0 : R (spec_begins d c) (impl_begins d c)) by (split; [apply start_related; assumption | reflexivity]).
  destruct (runs_together _ _ _ spec_meets impl_meets R (fun _ _ => True) (spec_begins d c)) with
    (b0 := impl_begins d c) (w := w) as [A B]; auto.
  - intros [s n] [t n'] l x' [RL E] _ ST. simpl in E, RL. subst n'. inversion ST as [s0 n0 a s' S1 FR|s0 n0 k K AH]; subst.
    + destruct (forward _ _ W AL KT _ _ _ _ RL S1) as (t' & S2 & RL'). exists (t', go_on epochs a n).
      split; [|split; auto]. constructor; [assumption | rewrite <- (proj1 RL); assumption].
    + exists (t, begin_again epochs k n). split; [|split; auto]. apply meeting_resets; [assumption|].
      unfold all_held in *. simpl in *. rewrite <- (proj1 RL). assumption.
  - intros [s n] [t n'] l y' [RL E] _ ST. simpl in E, RL. subst n'. inversion ST as [t0 n0 a t' S1 FR|t0 n0 k K AH]; subst.
    + destruct (backward _ _ W AL KT _ _ _ _ RL S1) as (s' & S2 & RL'). exists (s', go_on epochs a n).
      split; [|split; auto]. constructor; [assumption | rewrite (proj1 RL); assumption].
    + exists (s, begin_again epochs k n). split; [|split; auto]. apply meeting_resets; [assumption|].
      unfold all_held in *. simpl in *. rewrite (proj1 RL). assumption.
  - split.
    + intros (x & RN & <-). destruct (A x RN) as (y & RY & [[E _] _]). exists y. auto.
    + intros (y & RN & <-). destruct (B y RN) as (x & RX & [[E _] _]). exists x. auto.
Qed.
Theorem resets_unseen : forall d c w sh, always_agree d c ->
  ((exists y, run impl_meets (impl_begins d c) w y /\ i_shared m (fst y) = sh) <->
   (exists y, run epoch_step (impl_begins d c) w y /\ i_shared m (fst y) = sh)).
Proof. intros. rewrite <- meetings_same_traces. apply epoch_same_traces. assumption. Qed.

(** ** Words *)
Variable M : nat.
Hypothesis M_pos : 1 < M.
Definition epoch_word_step :=
  meeting m number epochs (word_step m keeps_trip M true) (i_shared m) (restart m epochs).

(** The bound. Of a producer that an epoch resets: N times the iterations of the epoch, times the entries of its loop in one
    of them at most, is below M. Of another: N times all entries of its loop. Trip counters hold the iterations of a run. *)
Definition added (s : spec m) (e : engine) (p : instr) : Prop := exists k most,
  k < number /\ parts (epochs k) e = true /\ resets (epochs k) (loop_of P p) = true /\
  (forall i, s_hist m s e (place (epochs k)) i (loop_of P p) <= most) /\
  N_of m p * (every (epochs k) * most) < M.
Definition epoch_fits (s : spec m) : Prop := forall c d, In d (deps m c) ->
  (forall e, e = engine_of P c \/ e = engine_of P (producer d) ->
    added s e (producer d) \/ N_of m (producer d) * entries (s_hist m s e) (loop_of P (producer d)) < M) /\
  (forall l, reads_trip m d l -> trip m (s_hist m s (engine_of P c)) l < M).

Definition word_met (x : spec m * counts) (z : impl m * counts) : Prop :=
  exists v, met x (v, snd z) /\ wraps m M v (fst z).

Lemma counter_fits : forall s n v c d e, met (s, n) (v, n) -> epoch_fits s -> In d (deps m c) ->
  e = engine_of P c \/ e = engine_of P (producer d) ->
  N_of m (producer d) * value (mono (i_regs m v e)) (loop_of P (producer d)) < M.
Proof.
  intros s n v c d e MT FT Hd He. destruct (proj1 (FT c d Hd) e He) as [(k & most & K & Pe & Rl & HM & HB)|HB].
  - destruct (epochs_keep_the_bound m keeps_trip number epochs EP s n v n k e _ 0 most MT K Pe Rl HM) as [A _].
    unfold value. rewrite (proj2 (Nat.eqb_neq _ top)).
    + eapply Nat.le_lt_trans; [|exact HB]. apply Nat.mul_le_mono_l. assumption.
    + intro E. rewrite E in Rl. apply (ep_place _ _ _ EP k K), (under_top m), (ep_inside _ _ _ EP k); assumption.
  - destruct MT as (t & base & RL & B & R & _). simpl in RL, R. destruct RL as [_ IV]. destruct (IV e) as [C _].
    assert (V := value_base m number epochs EP base t v e (loop_of P (producer d)) B R).
    rewrite (r_mono _ _ _ _ _ _ C) in V.
    eapply Nat.le_lt_trans; [|exact HB]. apply Nat.mul_le_mono_l. lia.
Qed.
Theorem epoch_word_wait_exact : forall s n v u e x i rest fs d, met (s, n) (v, n) -> wraps m M v u -> epoch_fits s ->
  conts m (s_shared m s) e = (x, Instr i :: rest) :: fs -> In d (deps m i) ->
  (word_passes m M true (i_sema m u) (i_regs m u e) d <-> passes m (i_sema m v) (i_regs m v e) d).
Proof.
  intros s n v u e x i rest fs d MT (_ & WS & WM & WT & WP & WB) FT F Hd. assert (CF := fun e => counter_fits s n v i d e MT FT Hd).
  destruct MT as (t & base & RL & B & R & _). simpl in RL, R.
  destruct (at_issue m keeps_trip W AL KT _ _ _ _ _ _ _ _ RL F Hd) as (EI & MB & OE & TE & _ & CE).
  assert (OB := owed_base m AL number epochs EP base t v e i d B R Hd EI).
  destruct (AL i d Hd) as [(_ & IP & SG) A]. assert (RL0 := RL). destruct RL as [_ IV].
  destruct (IV (engine_of P (producer d))) as [C [done O]].
  assert (SB := sema_bounded m _ _ _ _ _ _ _ (loop_of P (producer d)) (share P (producer d)) O (c_active _ _ _ _ _ _ C _)).
  destruct (sema_decodes m W _ _ _ _ _ _ _ (producer d) O eq_refl IP SG) as (_ & _ & _ & _ & _ & HK).
  assert (V := fun e' => value_base m number epochs EP base t v e' (loop_of P (producer d)) B R).
  destruct (IV e) as [Ce _]. assert (Ve := V e). rewrite (r_mono _ _ _ _ _ _ Ce) in Ve.
  assert (Vp := V (engine_of P (producer d))). rewrite (r_mono _ _ _ _ _ _ C) in Vp.
  assert (Be := CF e (or_introl (eq_sym EI))). assert (Bp := CF _ (or_intror eq_refl)).
  unfold word_passes, passes.
  assert (EW : word_mul M (mask m (i_regs m u e) d) (word_owed m M true (i_regs m u e) d) =
    mask m (i_regs m v e) d * owed m (i_regs m v e) d).
  { apply (word_owed_value m M M_pos true (i_regs m v e)); auto.
    - rewrite (mask_base m base t v e d R). exact MB.
    - eapply Nat.le_lt_trans; [|exact Be]. apply Nat.mul_le_mono_l. lia.
    - intros _ _. nia.
    - intros l Hl. assert (TM := proj2 (FT i d Hd) l Hl). rewrite EI, <- (proj1 (TE l Hl)) in TM.
      rewrite (trips_base m base t v) by assumption. exact TM.
    - discriminate.
    - intro N. destruct (CE N) as [L1 L2]. assert (UK := fun j => b_started _ _ _ _ R e (carrier d) j (loop_of P (producer d))).
      assert (A' : under P (carrier d) (loop_of P (producer d)) /\ 1 <= distance d) by (destruct A; try congruence; auto).
      rewrite !UK by (tauto || lia). nia. }
  unfold wait_value. rewrite (threshold_value m M M_pos true _ _ _ EW HK).
  - unfold reached. rewrite WS, Nat.mod_small; [tauto|]. rewrite (b_sema _ _ _ _ R) in SB.
    eapply Nat.le_lt_trans; [|exact Bp]. rewrite Vp, Nat.mul_add_distr_l in SB. unfold N_of. lia.
  - rewrite (mask_base m base t v e d R). assert (OW : owed m (i_regs m v e) d <=
    value (mono (i_regs m v e)) (loop_of P (producer d))) by lia.
    destruct MB as [-> | ->]; rewrite ?Nat.mul_0_l, ?Nat.mul_1_l; [lia | nia].
Qed.

Lemma epoch_word_waits : forall s n v u e i sh', met (s, n) (v, n) -> wraps m M v u -> epoch_fits s ->
  shared_step m (i_shared m v) (Issue e i) sh' ->
  (Forall (word_passes m M true (i_sema m u) (i_regs m u e)) (deps m i) <->
   Forall (passes m (i_sema m v) (i_regs m v e)) (deps m i)).
Proof.
  intros s n v u e i sh' MT WR FT CS. destruct (issue_at _ _ _ _ _ CS) as (x & rest & fs & F).
  assert (ES : s_shared m s = i_shared m v).
  { destruct MT as (t & base & [E _] & _ & R & _). simpl in E, R. rewrite E. apply (b_shared _ _ _ _ R). }
  rewrite <- ES in F.
  rewrite !Forall_forall. split; intros A d Hd; specialize (A d Hd);
  apply (epoch_word_wait_exact s n v u e x i rest fs d MT WR FT F Hd); assumption.
Qed.
Lemma wraps_restart : forall v u k, wraps m M v u -> wraps m M (restart m epochs k v) (restart m epochs k u).
Proof.
  intros v u k (E & WS & WM & WT & WP & WB). split; [assumption|]. simpl.
  split; [|split; [|split; [|split]]].
  - intros l e g. destruct (_ && _); [rewrite Nat.mod_0_l; lia | apply WS].
  - intros e l. destruct (parts _ e); [|apply WM]. simpl. destruct (resets _ l); [rewrite Nat.mod_0_l; lia | apply WM].
  - intros e l. destruct (parts _ e); apply WT.
  - intros e S k' Q. destruct (parts _ e); [|apply WP]. simpl. destruct (resets _ Q); [rewrite Nat.mod_0_l; lia | apply WP].
  - intros e S k' Q. destruct (parts _ e); [|apply WB]. simpl. destruct (resets _ Q); [rewrite Nat.mod_0_l; lia | apply WB].
Qed.

(** ** Theorem 7.1 in words, with epochs *)
Theorem epoch_word_bisimulation :
  (forall d c, word_met (spec_begins d c) (impl_begins d c)) /\
  (forall x z, word_met x z -> s_shared m (fst x) = i_shared m (fst z)) /\
  (forall x z b x', word_met x z -> agreeing b x -> epoch_fits (fst x) -> spec_meets x b x' ->
    exists z', epoch_word_step z b z' /\ word_met x' z') /\
  (forall x z b z', word_met x z -> agreeing b x -> epoch_fits (fst x) -> epoch_word_step z b z' ->
    exists x', spec_meets x b x' /\ word_met x' z').
Proof.
  destruct (epoch_bisimulation m keeps_trip W AL KT number epochs EP) as (S0 & EQ & FW & BW).
  split; [|split; [|split]].
  - intros d c. exists (impl_start m d c). split; [apply S0|].
    split; [reflexivity|]. simpl. rewrite Nat.mod_0_l by lia. repeat split; reflexivity.
  - intros x z (v & MT & [E _]). rewrite (EQ _ _ MT). exact E.
  - intros [s n] [u n'] b x' (v & MT & WR) AG FT ST. simpl in MT, WR, FT.
    assert (n = n') by (destruct MT as (t & base & _ & _ & _ & _ & E); exact E). subst n'.
    destruct (FW _ _ _ _ MT AG ST) as (y' & S1 & MT').
    inversion S1 as [v0 n0 a v' I1 FR|v0 n0 k K AH]; subst.
    + inversion I1 as [v0 a0 sh' CS EN]; subst. exists (word_update m keeps_trip M a sh' u, go_on epochs a n). split.
      * constructor; [|rewrite <- (proj1 WR); assumption]. constructor; [rewrite <- (proj1 WR); assumption|].
        intros e i ->. apply (epoch_word_waits s n v u e i sh' MT WR FT CS). auto.
      * eexists. split; [exact MT' | apply wraps_step; assumption].
    + exists (restart m epochs k u, begin_again epochs k n). split.
      * constructor; [assumption|]. unfold all_held in *. simpl in *. rewrite <- (proj1 WR). assumption.
      * eexists. split; [exact MT' | apply wraps_restart; assumption].
  - intros [s n] [u n'] b z' (v & MT & WR) AG FT ST. simpl in MT, WR, FT.
    assert (n = n') by (destruct MT as (t & base & _ & _ & _ & _ & E); exact E). subst n'.
    inversion ST as [u0 n0 a u' I1 FR|u0 n0 k K AH]; subst.
    + inversion I1 as [u0 a0 sh' CS EN]; subst. rewrite <- (proj1 WR) in CS, FR.
      assert (S1 : epoch_step (v, n) (inl a) (impl_update m keeps_trip a sh' v, go_on epochs a n)).
      { constructor; [|assumption]. constructor; [assumption|]. intros e i ->.
        apply (epoch_word_waits s n v u e i sh' MT WR FT CS). auto. }
      destruct (BW _ _ _ _ MT AG S1) as (x' & S2 & MT'). exists x'. split; [assumption|].
      eexists. split; [exact MT' | apply wraps_step; assumption].
    + assert (S1 : epoch_step (v, n) (inr k) (restart m epochs k v, begin_again epochs k n)).
      { constructor; [assumption|]. unfold all_held in *. simpl in *. rewrite (proj1 WR). assumption. }
      destruct (BW _ _ _ _ MT AG S1) as (x' & S2 & MT'). exists x'. split; [assumption|].
      eexists. split; [exact MT' | apply wraps_restart; assumption].
Qed.
End EpochWords.
