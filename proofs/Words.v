(** Theorem 7.1 in the arithmetic of a machine: registers and semaphores are words, which count modulo M, and thresholds
    are the guarded form that is emitted. It holds while, for every producer, N times the entries of its loop is below M
    ([fits]): as far as an execution stays there, specification and machine do the same. *)
From Coq Require Import Arith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program Machine Registers Retirement Bisimulation.

Section Words.
Variable m : machine.
Notation P := (program_of m).
Variable keeps_trip : loop -> bool.
Variable M : nat.
Hypothesis M_pos : 1 < M.
(** whether counters start again while the program runs (Epochs.v), so that one may be less than what it was *)
Variable restarts : bool.
Hypothesis W : well_formed P.
Hypothesis AL : Allocatable P (deps m).
Hypothesis KT : forall l, tripped (deps m) l -> keeps_trip l = true.

(** ** What is emitted *)
Definition word_enter (l : loop) (r : regs) : regs := {|
  mono := upd (mono r) l ((mono r l + 1) mod M);
  trips := fun c => if negb (keeps_trip c) then trips r c
    else if c =? l then (trips r l + 1) mod M else if parent P c =? l then 0 else trips r c;
  past := fun S k Q => if S =? l then match k with 0 | 1 => value (mono r) Q | Datatypes.S k' => past r S k' Q end
    else past r S k Q |}.
(** The subtraction may go below 0 where the mask is 0; where there is no mask, or counters start again, they are raised
    first. *)
Definition word_owed (r : regs) (d : dep) : nat :=
  if history d then past r (carrier d) (distance d) (loop_of P (producer d))
  else if loop_of P (producer d) =? carrier d then
    let v := value (mono r) (carrier d) in
    if masked d && negb restarts then word_sub M v (distance d) else Nat.max v (distance d) - distance d
  else value (mono r) (loop_of P (producer d)).
Definition word_wait (r : regs) (d : dep) : nat :=
  word_threshold M (N_of m (producer d)) (K_of m (producer d)) (word_mul M (mask r d) (word_owed r d)).
Definition word_passes (sema : loop -> engine -> nat) (r : regs) (d : dep) : Prop :=
  word_wait r d <= sema (loop_of P (producer d)) (engine_of P (producer d)).
Definition word_signal (i : instr) (sema : loop -> engine -> nat) : loop -> engine -> nat := fun l e =>
  if signals P i && (l =? loop_of P i) && (e =? engine_of P i) then (sema l e + 1) mod M else sema l e.
Definition word_update (a : label) (sh' : shared m) (u : impl m) : impl m :=
  match a with
  | Enter e l => Impl m sh' (i_sema m u) (upd (i_regs m u) e (word_enter l (i_regs m u e)))
  | Retire e i => Impl m sh' (word_signal i (i_sema m u)) (i_regs m u)
  | _ => Impl m sh' (i_sema m u) (i_regs m u) end.
Inductive word_step : impl m -> label -> impl m -> Prop :=
| word_does : forall u a sh', shared_step m (i_shared m u) a sh' ->
    (forall e i, a = Issue e i -> Forall (word_passes (i_sema m u) (i_regs m u e)) (deps m i)) ->
    word_step u a (word_update a sh' u).

(** ** The bound, of a state of the specification *)
Definition fits (s : spec m) : Prop := forall e,
  (forall l, entries (s_hist m s e) l < M) /\
  (forall p, N_of m p * entries (s_hist m s e) (loop_of P p) < M).

(** Words are the numbers of the implementation modulo M. *)
Definition wraps (t u : impl m) : Prop :=
  i_shared m t = i_shared m u /\
  (forall l e, i_sema m u l e = i_sema m t l e mod M) /\
  (forall e l, mono (i_regs m u e) l = mono (i_regs m t e) l mod M) /\
  (forall e l, trips (i_regs m u e) l = trips (i_regs m t e) l mod M) /\
  (forall e S k Q, past (i_regs m u e) S k Q = past (i_regs m t e) S k Q mod M).
Definition word_related (s : spec m) (u : impl m) : Prop := exists t, related m keeps_trip s t /\ wraps t u.

Lemma value_wraps : forall f g l, (forall l, f l = g l mod M) -> value f l = value g l mod M.
Proof. intros. unfold value. destruct (l =? top); [rewrite Nat.mod_small; lia | auto]. Qed.
Lemma value_small : forall f g l, (forall l, f l = g l mod M) -> value g l < M -> value f l = value g l.
Proof. intros. rewrite (value_wraps f g l H). apply Nat.mod_small. assumption. Qed.
Lemma upto_le : forall H S Q n n', n <= n' -> upto H S n Q <= upto H S n' Q.
Proof. induction 1; simpl; lia. Qed.
Lemma wraps_add : forall a, (a mod M + 1) mod M = (a + 1) mod M.
Proof. intros. rewrite Nat.add_mod_idemp_l by lia. reflexivity. Qed.

(** ** Below the bound, words and numbers give the same waits *)
Lemma owed_entries : forall s t e x i rest fs d, related m keeps_trip s t ->
  conts m (s_shared m s) e = (x, Instr i :: rest) :: fs -> In d (deps m i) ->
  owed m (i_regs m t e) d <= entries (s_hist m s e) (loop_of P (producer d)) /\
  (masked d = true -> value (trips (i_regs m t e)) (carrier d) <= entries (s_hist m s e) (carrier d)).
Proof.
  intros s t e x i rest fs d [_ IV] Fe Hd. destruct (IV e) as [C _]. rewrite Fe in C.
  assert (G := c_good _ _ _ _ _ _ C).
  assert (IB : In (Instr i) (body P e x)).
  { eapply suffix_in; [eapply good_suffix; [exact G | left; reflexivity] | left; reflexivity]. }
  destruct (wf_instr _ W _ _ _ IB) as [<- Ee]. destruct (AL i d Hd) as [WP A].
  assert (OE := owed_exact m W keeps_trip e i rest fs _ _ d C Ee WP A). destruct WP as (US & _ & _).
  split.
  - rewrite OE.
    assert (UP : under P (carrier d) (loop_of P (producer d))).
    { destruct A as [E _|? ? ? ?|? ? ? B ? ? BT BP BU _ _ _ _|? ? ?]; try assumption.
      - rewrite E. constructor.
      - rewrite <- BP. eapply under_parent; eassumption. }
    rewrite <- (c_upto _ _ _ _ _ _ C _ _ UP). apply upto_le. lia.
  - intro MK. rewrite (r_trip _ _ _ _ _ _ C) by (apply KT; exists i, d; auto).
    unfold trip. destruct (Nat.eq_dec (carrier d) top) as [->|NT].
    + rewrite (wf_parent_top _ W). unfold entries at 1. rewrite (c_top _ _ _ _ _ _ C). unfold entries. lia.
    + assert (UP : under P (parent P (carrier d)) (carrier d)) by (apply under_step; [assumption | constructor]).
      rewrite <- (c_upto _ _ _ _ _ _ C _ _ UP).
      assert (PA : 1 <= entries (s_hist m s e) (parent P (carrier d))).
      { apply (c_active _ _ _ _ _ _ C). eapply good_under_in; [exact W | exact G | reflexivity|].
        clear - US NT. revert NT. induction US; intro NT; [constructor 2; [assumption | constructor]|].
        constructor 2; auto. }
      destruct (entries (s_hist m s e) (parent P (carrier d))); [lia|]. simpl. lia.
Qed.

(** of one engine: [r] are numbers, [y] words *)
Lemma word_wait_value : forall r y d, (forall l, mono y l = mono r l mod M) -> (forall l, trips y l = trips r l mod M) ->
  (forall S k Q, past y S k Q = past r S k Q mod M) -> 1 <= K_of m (producer d) <= N_of m (producer d) ->
  N_of m (producer d) * owed m r d < M ->
  (history d = false -> value (mono r) (loop_of P (producer d)) < M) ->
  (masked d = true -> value (trips r) (carrier d) < M) ->
  (restarts = false -> masked d = true -> loop_of P (producer d) = carrier d ->
    value (trips r) (carrier d) <= value (mono r) (carrier d)) ->
  word_wait y d = wait_value m r d.
Proof.
  intros r y d WM WT WP HK FO FM FT LE. unfold word_wait, wait_value.
  assert (EM : mask y d = mask r d).
  { unfold mask. destruct (masked d); [|reflexivity]. f_equal. apply value_small; auto. }
  rewrite EM.
  assert (MB : mask r d = 0 \/ mask r d = 1 /\ (masked d = true -> distance d < value (trips r) (carrier d))).
  { unfold mask, isGT. destruct (masked d); [|right; split; [reflexivity | discriminate]].
    destruct (Nat.ltb_spec (distance d) (value (trips r) (carrier d))); auto. }
  destruct MB as [E | [E MG]]; rewrite E.
  - unfold word_mul at 1. rewrite Nat.mul_0_l, Nat.mod_0_l by lia. apply word_threshold_exact; [lia | assumption | lia].
  - assert (OM : owed m r d < M) by (eapply Nat.le_lt_trans; [|exact FO]; nia).
    assert (EO : word_owed y d = owed m r d).
    { unfold word_owed, owed in *. destruct (history d); [rewrite WP; apply Nat.mod_small; assumption|].
      specialize (FM eq_refl). destruct (Nat.eqb_spec (loop_of P (producer d)) (carrier d)) as [EC|]; [|apply value_small; auto].
      rewrite EC in FM. rewrite (value_small _ (mono r)) by assumption.
      destruct (masked d) eqn:MK; simpl; [|lia]. destruct restarts; simpl; [lia|].
      specialize (MG eq_refl). specialize (LE eq_refl eq_refl EC). unfold word_sub.
      match goal with |- (?v + (M - ?k)) mod M = _ => replace (v + (M - k)) with (v - k + 1 * M) by lia end.
      rewrite Nat.mod_add by lia. apply Nat.mod_small. lia. }
    rewrite EO, Nat.mul_1_l. unfold word_mul at 1. rewrite Nat.mul_1_l, (Nat.mod_small (owed m r d)) by assumption.
    apply word_threshold_exact; [lia | assumption | assumption].
Qed.

Theorem word_wait_exact : forall s t u e x i rest fs d, related m keeps_trip s t -> wraps t u -> fits s ->
  conts m (s_shared m s) e = (x, Instr i :: rest) :: fs -> In d (deps m i) ->
  (word_passes (i_sema m u) (i_regs m u e) d <-> passes m (i_sema m t) (i_regs m t e) d).
Proof.
  intros s t u e x i rest fs d RL (_ & WS & WM & WT & WP) FT Fe Hd.
  destruct (owed_entries _ _ _ _ _ _ _ _ RL Fe Hd) as [OE TE].
  destruct (AL i d Hd) as [(_ & IP & SG) A]. destruct RL as [_ IV].
  destruct (FT e) as [FE FN]. specialize (FN (producer d)).
  assert (RM : forall l, value (mono (i_regs m t e)) l = entries (s_hist m s e) l)
    by (destruct (IV e) as [C _]; apply (r_mono _ _ _ _ _ _ C)).
  destruct (IV (engine_of P (producer d))) as [C [done O]].
  assert (SB := sema_bounded m _ _ _ _ _ _ _ (loop_of P (producer d)) O (c_active _ _ _ _ _ _ C _)).
  destruct (sema_decodes m W _ _ _ _ _ _ _ (producer d) O eq_refl IP SG) as (_ & _ & _ & _ & _ & HK).
  unfold word_passes, passes. rewrite (word_wait_value (i_regs m t e)); auto.
  - rewrite WS, Nat.mod_small; [tauto|]. eapply Nat.le_lt_trans; [exact SB|]. apply (proj2 (FT (engine_of P (producer d)))).
  - eapply Nat.le_lt_trans; [|exact FN]. apply Nat.mul_le_mono_l. exact OE.
  - intros _. rewrite RM. apply FE.
  - intro MK. eapply Nat.le_lt_trans; [apply TE; assumption | apply FE].
  - intros _ MK _. rewrite RM. auto.
Qed.

Lemma wraps_step : forall t u a sh', wraps t u -> wraps (impl_update m keeps_trip a sh' t) (word_update a sh' u).
Proof.
  intros t u a sh' (E & WS & WM & WT & WP). destruct a; (split; [reflexivity|]); simpl; auto.
  - split; [assumption|].
    split; [|split]; intro e0; unfold upd at 1 2; destruct (e0 =? e); auto; simpl.
    + intro l0. unfold upd. destruct (l0 =? l); [rewrite WM; apply wraps_add | apply WM].
    + intro l0. destruct (negb (keeps_trip l0)); [apply WT|].
      destruct (l0 =? l); [rewrite WT; apply wraps_add|].
      destruct (parent P l0 =? l); [rewrite Nat.mod_0_l; lia | apply WT].
    + intros S k Q. destruct (S =? l); [|apply WP].
      destruct k as [|[|k]]; try (apply value_wraps; apply WM). apply WP.
  - split; [|auto]. intros l e0. unfold word_signal, signal.
    destruct (signals P i && (l =? loop_of P i) && (e0 =? engine_of P i)); [rewrite WS; apply wraps_add | apply WS].
Qed.

Lemma issue_at : forall sh e i sh', shared_step m sh (Issue e i) sh' ->
  exists x rest fs, conts m sh e = (x, Instr i :: rest) :: fs.
Proof. intros sh e i sh' ST. inversion ST; subst. simpl. eauto. Qed.

(** ** Theorem 7.1 in words *)
Theorem word_bisimulation :
  (forall d c, word_related (spec_start m d c) (impl_start m d c)) /\
  (forall s u, word_related s u -> s_shared m s = i_shared m u) /\
  (forall s u a s', word_related s u -> fits s -> spec_step m s a s' ->
    exists u', word_step u a u' /\ word_related s' u') /\
  (forall s u a u', word_related s u -> fits s -> word_step u a u' ->
    exists s', spec_step m s a s' /\ word_related s' u').
Proof.
  split; [|split; [|split]].
  - intros. exists (impl_start m d c). split; [apply start_related; assumption|].
    split; [reflexivity|]. simpl. rewrite Nat.mod_0_l by lia. repeat split; reflexivity.
  - intros s u (t & [A _] & [B _]). congruence.
  - intros s u a s' (t & RL & WR) FT ST.
    destruct (forward _ _ W AL KT _ _ _ _ RL ST) as (t' & IS & RL').
    inversion IS as [t0 a0 sh' CS EN]; subst. exists (word_update a sh' u). split.
    + constructor; [rewrite <- (proj1 WR); exact CS|]. intros e i ->. specialize (EN e i eq_refl).
      rewrite <- (proj1 RL) in CS. destruct (issue_at _ _ _ _ CS) as (x & rest & fs & F).
      rewrite Forall_forall in *. intros d Hd.
      apply (word_wait_exact s t u e x i rest fs d RL WR FT F Hd). auto.
    + eexists. split; [exact RL' | apply wraps_step; assumption].
  - intros s u a u' (t & RL & WR) FT ST. inversion ST as [u0 a0 sh' CS EN]; subst.
    assert (IS : impl_step m keeps_trip t a (impl_update m keeps_trip a sh' t)).
    { rewrite <- (proj1 WR) in CS. constructor; [exact CS|]. intros e i ->. specialize (EN e i eq_refl).
      rewrite <- (proj1 RL) in CS. destruct (issue_at _ _ _ _ CS) as (x & rest & fs & F).
      rewrite Forall_forall in *. intros d Hd.
      apply (word_wait_exact s t u e x i rest fs d RL WR FT F Hd). auto. }
    destruct (backward _ _ W AL KT _ _ _ _ RL IS) as (s' & S1 & RL').
    exists s'. split; [assumption|]. eexists. split; [exact RL' | apply wraps_step; assumption].
Qed.
End Words.
