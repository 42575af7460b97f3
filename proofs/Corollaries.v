(** What Theorem 7.1 brings (section 7.6): both systems have the same traces and the same data, no instruction issues
    too early, none is held longer than the dependencies ask, and where trip counts differ they block together (7.5). *)
From Coq Require Import Arith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program Machine Registers Retirement Bisimulation.

Inductive run {State Label} (step : State -> Label -> State -> Prop) : State -> list Label -> State -> Prop :=
| run_nil : forall s, run step s [] s
| run_cons : forall s a s1 w s2, step s a s1 -> run step s1 w s2 -> run step s (a :: w) s2.

Section Consequences.
Variable m : machine.
Variable keeps_trip : loop -> bool.
Hypothesis W : well_formed m.
Hypothesis AL : Allocatable m (deps m).
Hypothesis KT : forall l, tripped m l -> keeps_trip l = true.
Notation related := (related m keeps_trip).
Notation spec_step := (spec_step m).
Notation impl_step := (impl_step m keeps_trip).

(** Theorem 7.1 *)
Theorem bisimulation :
  (forall d c, related (spec_start m d c) (impl_start m d c)) /\
  (forall s t, related s t -> s_shared m s = i_shared m t) /\
  (forall s t a s', related s t -> spec_step s a s' -> exists t', impl_step t a t' /\ related s' t') /\
  (forall s t a t', related s t -> impl_step t a t' -> exists s', spec_step s a s' /\ related s' t').
Proof.
  split; [apply start_related; assumption|]. split; [intros s t [E _]; exact E|].
  split; [apply forward; assumption | apply backward; assumption].
Qed.

Lemma run_forward : forall w s t s', related s t -> run spec_step s w s' -> exists t', run impl_step t w t' /\ related s' t'.
Proof.
  induction w; intros s t s' RL RN; inversion RN as [|? ? u ? ? S1 R1]; subst.
  - exists t. split; [constructor | assumption].
  - destruct (forward _ _ W AL KT _ _ _ _ RL S1) as (t1 & A & B). destruct (IHw _ _ _ B R1) as (t2 & C & D).
    exists t2. split; [econstructor; eassumption | assumption].
Qed.
Lemma run_backward : forall w s t t', related s t -> run impl_step t w t' -> exists s', run spec_step s w s' /\ related s' t'.
Proof.
  induction w; intros s t t' RL RN; inversion RN as [|? ? u ? ? S1 R1]; subst.
  - exists s. split; [constructor | assumption].
  - destruct (backward _ _ W AL KT _ _ _ _ RL S1) as (s1 & A & B). destruct (IHw _ _ _ B R1) as (s2 & C & D).
    exists s2. split; [econstructor; eassumption | assumption].
Qed.

(** Equal traces, and with each the same states of data, control, continuations and pipelines. *)
Theorem same_traces : forall d c w sh,
  (exists s, run spec_step (spec_start m d c) w s /\ s_shared m s = sh) <->
  (exists t, run impl_step (impl_start m d c) w t /\ i_shared m t = sh).
Proof.
  intros. assert (R0 := start_related m keeps_trip W d c). split.
  - intros (s & RN & E). destruct (run_forward _ _ _ _ R0 RN) as (t & A & [B _]). exists t. split; congruence.
  - intros (t & RN & E). destruct (run_backward _ _ _ _ R0 RN) as (s & A & [B _]). exists s. split; congruence.
Qed.

(** Equal reachable states of the datapath. *)
Theorem same_data : forall d c x,
  (exists w s, run spec_step (spec_start m d c) w s /\ datapath m (s_shared m s) = x) <->
  (exists w t, run impl_step (impl_start m d c) w t /\ datapath m (i_shared m t) = x).
Proof.
  intros. split; intros (w & s & RN & E).
  - destruct (proj1 (same_traces d c w (s_shared m s))) as (t & A & B); [eauto|]. exists w, t. split; congruence.
  - destruct (proj2 (same_traces d c w (i_shared m s))) as (t & A & B); [eauto|]. exists w, t. split; congruence.
Qed.

(** Safety: whatever the implementation issues, after whatever trace, has its dependencies satisfied there. *)
Theorem safety : forall d c w t e i t', run impl_step (impl_start m d c) w t -> impl_step t (Issue e i) t' ->
  exists s, run spec_step (spec_start m d c) w s /\ s_shared m s = i_shared m t /\
    Forall (satisfied m (s_hist m s e) (s_retired m s)) (deps m i).
Proof.
  intros d c w t e i t' RN ST. destruct (run_backward _ _ _ _ (start_related m keeps_trip W d c) RN) as (s & A & B).
  exists s. split; [assumption|]. split; [exact (proj1 B)|].
  destruct (backward _ _ W AL KT _ _ _ _ B ST) as (s' & S1 & _). inversion S1; subst. auto.
Qed.

(** Liveness: after any trace of the specification, the implementation gets to the same state by it, and can do there
    whatever the specification can. *)
Theorem liveness : forall d c w s a s', run spec_step (spec_start m d c) w s -> spec_step s a s' ->
  exists t t', run impl_step (impl_start m d c) w t /\ i_shared m t = s_shared m s /\ impl_step t a t'.
Proof.
  intros d c w s a s' RN ST. destruct (run_forward _ _ _ _ (start_related m keeps_trip W d c) RN) as (t & A & B).
  destruct (forward _ _ W AL KT _ _ _ _ B ST) as (t' & C & _). exists t, t'.
  split; [assumption|]. split; [symmetry; exact (proj1 B) | assumption].
Qed.

(** Divergence of control: a state is stuck in one system exactly if it is stuck in the other. Nothing here assumes that
    engines agree on trip counts; a wait that can never be satisfied blocks both. *)
Definition stuck {State} (step : State -> label -> State -> Prop) (s : State) := forall a s', ~ step s a s'.
Theorem blocks_together : forall s t, related s t -> (stuck spec_step s <-> stuck impl_step t).
Proof.
  intros s t RL. split; intros ST a s' H.
  - destruct (backward _ _ W AL KT _ _ _ _ RL H) as (s1 & A & _). exact (ST _ _ A).
  - destruct (forward _ _ W AL KT _ _ _ _ RL H) as (s1 & A & _). exact (ST _ _ A).
Qed.
Theorem deadlocks_together : forall d c w sh,
  (exists s, run spec_step (spec_start m d c) w s /\ s_shared m s = sh /\ stuck spec_step s) <->
  (exists t, run impl_step (impl_start m d c) w t /\ i_shared m t = sh /\ stuck impl_step t).
Proof.
  intros. assert (R0 := start_related m keeps_trip W d c). split.
  - intros (s & RN & E & ST). destruct (run_forward _ _ _ _ R0 RN) as (t & A & B). exists t.
    split; [assumption|]. split; [destruct B; congruence | apply (blocks_together _ _ B); assumption].
  - intros (t & RN & E & ST). destruct (run_backward _ _ _ _ R0 RN) as (s & A & B). exists s.
    split; [assumption|]. split; [destruct B; congruence | apply (blocks_together _ _ B); assumption].
Qed.
End Consequences.
