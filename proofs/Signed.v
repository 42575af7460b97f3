(** Counters that are signed: words of two's complement, whose upper half is below 0. A threshold may go below 0, and needs no
    guard then: every semaphore has reached it. Half of the range is left, so that the bound is M / 2. *)
From Coq Require Import Arith ZArith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program Machine Registers Owed Retirement Bisimulation Corollaries Words.

(** What a word stands for; [half] is M / 2. *)
Definition signed (half a : nat) : Z := if a <? half then Z.of_nat a else Z.of_nat a - 2 * Z.of_nat half.

Theorem signed_threshold_exact : forall half N K w v, 1 <= K <= N -> N <= half -> N * w < half -> v < half ->
  ((signed half (word_sub (2 * half) (word_mul (2 * half) N w) (N - K)) <= signed half v)%Z <-> threshold N K w <= v).
Proof.
  intros half N K w v HK HN HW HV. unfold word_sub, word_mul, threshold. rewrite (Nat.mod_small (N * w)) by lia.
  assert (SV : signed half v = Z.of_nat v) by (unfold signed; rewrite (proj2 (Nat.ltb_lt v half)) by assumption; reflexivity).
  rewrite SV. destruct (le_lt_dec (N - K) (N * w)) as [L|L].
  - replace (N * w + (2 * half - (N - K))) with (N * w - (N - K) + 1 * (2 * half)) by lia.
    rewrite Nat.mod_add, Nat.mod_small by lia. unfold signed. rewrite (proj2 (Nat.ltb_lt _ half)) by lia. lia.
  - rewrite Nat.mod_small by lia. unfold signed. rewrite (proj2 (Nat.ltb_ge _ half)) by lia. lia.
Qed.

Section Signed.
Variable m : machine.
Notation P := (program_of m).
Variable keeps_trip : loop -> bool.
Variable half : nat.
Notation M := (2 * half).
Hypothesis half_pos : 1 < half.
Variable restarts : bool.
Hypothesis W : well_formed P.
Hypothesis AL : Allocatable P (deps m).
Hypothesis KT : forall l, tripped m l -> keeps_trip l = true.

Definition signed_wait (r : regs) (d : dep) : nat := word_sub M
  (word_mul M (N_of m (producer d)) (word_mul M (mask m r d) (word_owed m M restarts r d)))
  (N_of m (producer d) - K_of m (producer d)).
Definition signed_passes (sema : semaphores) (r : regs) (d : dep) : Prop :=
  (signed half (signed_wait r d) <= signed half (reached m sema (producer d)))%Z.
Inductive signed_step : impl m -> label -> impl m -> Prop :=
| signed_does : forall u a sh', shared_step m (i_shared m u) a sh' ->
    (forall e i, a = Issue e i -> Forall (signed_passes (i_sema m u) (i_regs m u e)) (deps m i)) ->
    signed_step u a (word_update m keeps_trip M a sh' u).

(** N of each producer, and N times the entries of its loop, in half of the range *)
Definition signed_fits (s : spec m) : Prop := fits m half s /\ forall p, N_of m p <= half.
Lemma signed_fits_words : forall s, signed_fits s -> fits m M s.
Proof. intros s [F _] e. destruct (F e) as [A B]. split; [intro l; specialize (A l); lia | intro p; specialize (B p); lia]. Qed.

Theorem signed_wait_exact : forall s t u e x i rest fs d, related m keeps_trip s t -> wraps m M t u -> signed_fits s ->
  conts m (s_shared m s) e = (x, Instr i :: rest) :: fs -> In d (deps m i) ->
  (signed_passes (i_sema m u) (i_regs m u e) d <-> passes m (i_sema m t) (i_regs m t e) d).
Proof.
  intros s t u e x i rest fs d RL WR FT Fe Hd. assert (M1 : 1 < M) by lia.
  destruct (words_at_issue m keeps_trip W AL KT M M1 restarts s t u e x i rest fs d RL WR (signed_fits_words s FT) Fe Hd)
    as (HK & _ & EW & ER).
  destruct (at_issue m keeps_trip W AL KT _ _ _ _ _ _ _ _ RL Fe Hd) as (_ & MB & OE & _).
  destruct FT as [FT NH]. destruct (FT e) as [_ FN]. specialize (FN (producer d)). destruct (AL i d Hd) as [(_ & IP & SG) _].
  unfold signed_passes, signed_wait, passes, wait_value. rewrite EW, ER. apply signed_threshold_exact; auto.
  - eapply Nat.le_lt_trans; [|exact FN]. apply Nat.mul_le_mono_l. destruct MB as [-> | ->]; lia.
  - destruct RL as [_ IV]. destruct (IV (engine_of P (producer d))) as [C [done O]].
    assert (SB := sema_bounded m _ _ _ _ _ _ _ (loop_of P (producer d)) (share P (producer d)) O (c_active _ _ _ _ _ _ C _)).
    unfold reached. eapply Nat.le_lt_trans; [exact SB|]. apply (proj2 (FT (engine_of P (producer d)))).
Qed.

(** Theorem 7.1 in signed words *)
Lemma signed_steps : forall s u a u', word_related m keeps_trip M s u -> signed_fits s ->
  (signed_step u a u' <-> word_step m keeps_trip M restarts u a u').
Proof.
  intros s u a u' (t & RL & WR) FT. assert (M1 : 1 < M) by lia.
  assert (EX : forall sh' e i, shared_step m (i_shared m u) (Issue e i) sh' -> forall d, In d (deps m i) ->
    (signed_passes (i_sema m u) (i_regs m u e) d <-> word_passes m M restarts (i_sema m u) (i_regs m u e) d)).
  { intros sh' e i CS d Hd. rewrite <- (proj1 WR), <- (proj1 RL) in CS. destruct (issue_at _ _ _ _ _ CS) as (x & rest & fs & F).
    rewrite (signed_wait_exact s t u e x i rest fs d RL WR FT F Hd). symmetry.
    eapply word_wait_exact; eauto. apply signed_fits_words. assumption. }
  split; intro ST; inversion ST as [u0 a0 sh' CS EN]; subst; constructor; auto; intros e i ->; specialize (EN e i eq_refl);
  rewrite Forall_forall in *; intros d Hd; apply (EX sh' e i CS d Hd); auto.
Qed.
Theorem signed_bisimulation :
  (forall d c, word_related m keeps_trip M (spec_start m d c) (impl_start m d c)) /\
  (forall s u, word_related m keeps_trip M s u -> s_shared m s = i_shared m u) /\
  (forall s u a s', word_related m keeps_trip M s u -> signed_fits s -> spec_step m s a s' ->
    exists u', signed_step u a u' /\ word_related m keeps_trip M s' u') /\
  (forall s u a u', word_related m keeps_trip M s u -> signed_fits s -> signed_step u a u' ->
    exists s', spec_step m s a s' /\ word_related m keeps_trip M s' u').
Proof.
  assert (M1 : 1 < M) by lia. destruct (word_bisimulation m keeps_trip W AL KT M M1 restarts) as (S0 & EQ & FW & BW).
  split; [exact S0|]. split; [exact EQ|]. split.
  - intros s u a s' WR FT ST. destruct (FW s u a s' WR (signed_fits_words s FT) ST) as (u' & A & B).
    exists u'. split; [apply (signed_steps s u a u' WR FT) | ]; assumption.
  - intros s u a u' WR FT ST. apply (signed_steps s u a u' WR FT) in ST. exact (BW s u a u' WR (signed_fits_words s FT) ST).
Qed.
End Signed.
