(** The arithmetic of waits (barrier-free, sections 5.3 and 5.5): what one shared counter says of each of the N
    instructions that update it, why the threshold of a wait is exact, and that it stays so in words of a machine. *)
From Coq Require Import Arith Lia List Bool.

(** The mask of the paper: 1 where a exceeds b. *)
Definition isGT (a b : nat) : nat := if b <? a then 1 else 0.

(** How often the instruction at position K of N has retired after m whole rounds and the first j of the next one. *)
Definition retired (m j K : nat) : nat := m + (if K <=? j then 1 else 0).

(** The threshold for w retirements of the instruction at position K of N. *)
Definition threshold (N K w : nat) : nat := N * w - (N - K).

Theorem decode : forall N K m j w, 1 <= K <= N -> j <= N ->
  (threshold N K w <= N * m + j <-> w <= retired m j K).
Proof.
  intros N K m j w HK Hj. unfold threshold, retired.
  destruct (Nat.leb_spec K j); split; intro H0.
  - destruct (le_lt_dec w (m + 1)); [lia|].
    assert (N * (m + 2) <= N * w) by (apply Nat.mul_le_mono_l; lia). nia.
  - assert (N * w <= N * (m + 1)) by (apply Nat.mul_le_mono_l; lia). nia.
  - destruct (le_lt_dec w m); [lia|].
    assert (N * (m + 1) <= N * w) by (apply Nat.mul_le_mono_l; lia). nia.
  - assert (N * w <= N * m) by (apply Nat.mul_le_mono_l; lia). lia.
Qed.

(** Formula (5): masked out, a wait is for nothing. *)
Theorem formula_5 : forall N K m j trip k w, 1 <= K <= N -> j <= N ->
  (threshold N K (isGT trip k * w) <= N * m + j <-> trip <= k \/ w <= retired m j K).
Proof.
  intros N K m j trip k w HK Hj. rewrite decode by assumption. unfold isGT.
  destruct (Nat.ltb_spec k trip); lia.
Qed.

(** Where a semaphore starts again after b whole rounds, and what is owed counts from there, a wait says the same. *)
Theorem restart_exact : forall N K w b v, K <= N -> (threshold N K (w - b) <= v <-> threshold N K w <= v + N * b).
Proof.
  intros N K w b v H. unfold threshold. destruct (le_lt_dec w b).
  - assert (N * w <= N * b) by (apply Nat.mul_le_mono_l; lia). replace (w - b) with 0 by lia. rewrite Nat.mul_0_r. lia.
  - assert (N * S b <= N * w) by (apply Nat.mul_le_mono_l; lia). rewrite Nat.mul_sub_distr_l. rewrite Nat.mul_succ_r in H0. lia.
Qed.

(** Words count modulo M. *)
Section Words.
Variable M : nat.
Hypothesis M_pos : 0 < M.
Definition word_mul a b := (a * b) mod M.
Definition word_sub a b := (a + (M - b)) mod M.

(** The guarded form that is emitted: nothing goes below 0. *)
Definition word_threshold N K w := word_sub (word_mul N w) (word_mul (N - K) (isGT w 0)).

Theorem word_threshold_exact : forall N K w, 1 <= K <= N -> N * w < M ->
  word_threshold N K w = threshold N K w.
Proof.
  intros N K w HK Hb. unfold word_threshold, threshold, word_sub, word_mul, isGT.
  rewrite (Nat.mod_small (N * w)) by assumption.
  destruct (Nat.ltb_spec 0 w).
  - assert (N - K < N) by lia. assert (N <= N * w) by nia.
    rewrite Nat.mul_1_r, (Nat.mod_small (N - K)) by lia.
    replace (N * w + (M - (N - K))) with (N * w - (N - K) + 1 * M) by lia.
    rewrite Nat.mod_add by lia. apply Nat.mod_small. lia.
  - assert (w = 0) by lia. subst w. rewrite !Nat.mul_0_r, Nat.mod_0_l, Nat.sub_0_r by lia.
    simpl. apply Nat.mod_same. lia.
Qed.

(** As printed, without the guard, formula (5) wraps where the mask is 0: the wait blocks for ever. *)
Theorem unguarded_wraps : forall N K, 1 <= K < N -> N < M ->
  word_sub (word_mul N 0) (N - K) = M - (N - K).
Proof.
  intros. unfold word_sub, word_mul. rewrite Nat.mul_0_r, Nat.mod_0_l by lia. simpl. apply Nat.mod_small. lia.
Qed.
End Words.
