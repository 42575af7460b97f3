(** Theorem 7.1 in the arithmetic of a machine: registers and semaphores are words, which count modulo M, and thresholds
    are the guarded form that is emitted. It holds while, for every producer, N times the entries of its loop is below M
    ([fits]): as far as an execution stays there, specification and machine do the same. *)
From Coq Require Import Arith ZArith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program Machine Registers Owed Retirement Bisimulation.

Section Words.
Variable m : machine.
Notation P := (program_of m).
Variable keeps_trip : loop -> bool.
Hypothesis W : well_formed P.
Hypothesis AL : Allocatable P (deps m).
Hypothesis KT : forall l, tripped m l -> keeps_trip l = true.

(** ** What the counters of an engine hold where it issues an instruction *)
Lemma at_issue : forall s t e x i rest fs d, related m keeps_trip s t ->
  conts m (s_shared m s) e = (x, Instr i :: rest) :: fs -> In d (deps m i) -> engine_of P i = e /\
  let r := i_regs m t e in let H := s_hist m s e in
  (mask m r d = 0 \/ mask m r d = 1) /\ owed m r d <= entries H (loop_of P (producer d)) /\
  (forall l, reads_trip m d l -> value (trips r) l = trip m H l /\ trip m H l <= entries H l) /\
  (loop_of P (producer d) = carrier d -> clamp d = None -> history d = false -> mask m r d = 1 ->
    back_by r d <= value (mono r) (carrier d)) /\
  (clamp d <> None -> started r (carrier d) (distance d) (loop_of P (producer d)) <= entries H (loop_of P (producer d)) /\
    started r (carrier d) (distance d + 1) (loop_of P (producer d)) <= started r (carrier d) (distance d) (loop_of P (producer d))).
Proof.
  intros s t e x i rest fs d [_ IV] Fe Hd. destruct (IV e) as [C _]. rewrite Fe in C.
  assert (G := c_good _ _ _ _ _ _ C).
  assert (IB : In (Instr i) (body P e x)).
  { eapply suffix_in; [eapply good_suffix; [exact G | left; reflexivity] | left; reflexivity]. }
  destruct (wf_instr _ W _ _ _ IB) as [<- Ee]. subst e. split; [reflexivity|].
  destruct (AL i d Hd) as [(US & _ & _) A].
  assert (KTd : forall l, reads_trip m d l -> keeps_trip l = true) by (intros; apply KT; exists i, d; auto).
  set (r := i_regs m t (engine_of P i)) in *. set (H := s_hist m s (engine_of P i)) in *. cbv zeta.
  assert (TR := trip_ran m W keeps_trip _ _ _ _ _ C).
  assert (ME := mask_exact m W keeps_trip _ _ _ _ _ d C US A KTd).
  split; [destruct ME as [[-> _]|[-> _]]; auto|]. split; [eapply owed_ran; eauto|]. split; [|split].
  - intros l Hl. split; [apply (r_trip _ _ _ _ _ _ C), KTd; assumption|]. apply TR.
    destruct Hl as [[-> _]|[-> CL]]; [assumption|]. destruct A; congruence || assumption.
  - intros EC EN Hh M1. destruct ME as [[M0 _]|[_ NE]]; [congruence|].
    rewrite (r_mono _ _ _ _ _ _ C), (back_by_exact m W keeps_trip _ _ _ _ _ d C US KTd).
    specialize (TR _ US). destruct (within d) eqn:WI; [|lia].
    destruct (le_lt_dec (trip m H (carrier d)) (distance d)) as [L|L]; [|lia]. exfalso. apply NE. split; auto.
  - intros CL. assert (UP : under P (carrier d) (loop_of P (producer d))) by (destruct A; congruence || assumption).
    assert (K : 1 <= distance d) by (destruct A; congruence || assumption).
    rewrite !(r_started _ _ _ _ _ _ C) by (assumption || lia). rewrite <- (c_upto _ _ _ _ _ _ C _ _ UP).
    split; apply upto_le; lia.
Qed.

(** ** What is emitted *)
Variable M : nat.
Hypothesis M_pos : 1 < M.
(** whether counters start again while the program runs (Epochs.v), so that one may be less than what it was *)
Variable restarts : bool.

Definition word_enter (l : loop) (r : regs) : regs := {|
  mono := upd (mono r) l ((mono r l + 1) mod M);
  trips := fun c => if negb (keeps_trip c) then trips r c
    else if c =? l then (trips r l + 1) mod M else if parent P c =? l then 0 else trips r c;
  past := fun S k Q => if S =? l then match k with 0 | 1 => value (mono r) Q | Datatypes.S k' => past r S k' Q end
    else past r S k Q;
  started := fun S k Q => if S =? l then match k with 0 | 1 => value (mono r) Q | Datatypes.S k' => started r S k' Q end
    else if parent P S =? l then value (mono r) Q else started r S k Q |}.
(** The subtraction may go below 0 where the mask is 0; where counters start again, they are raised first. *)
Definition word_owed (r : regs) (d : dep) : nat :=
  let S := carrier d in let Q := loop_of P (producer d) in let k := distance d in
  match clamp d with
  | Some z => (started r S (k + 1) Q + Nat.min (behind (Z.of_nat (value (trips r) Q)) z)
      (word_sub M (started r S k Q) (started r S (k + 1) Q))) mod M
  | None => if history d then if within d then past r S k Q else started r S k Q
      else if Q =? S then let v := value (mono r) S in let b := back_by r d in
        if restarts then Nat.max v b - b else word_sub M v b
      else value (mono r) Q end.
Definition word_wait (r : regs) (d : dep) : nat :=
  word_threshold M (N_of m (producer d)) (K_of m (producer d)) (word_mul M (mask m r d) (word_owed r d)).
Definition word_passes (sema : semaphores) (r : regs) (d : dep) : Prop := word_wait r d <= reached m sema (producer d).
Definition word_signal (i : instr) (sema : semaphores) : semaphores := fun l e g =>
  if member m g i && (l =? loop_of P i) && (e =? engine_of P i) then (sema l e g + 1) mod M else sema l e g.
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
  (forall l e g, i_sema m u l e g = i_sema m t l e g mod M) /\
  (forall e l, mono (i_regs m u e) l = mono (i_regs m t e) l mod M) /\
  (forall e l, trips (i_regs m u e) l = trips (i_regs m t e) l mod M) /\
  (forall e S k Q, past (i_regs m u e) S k Q = past (i_regs m t e) S k Q mod M) /\
  (forall e S k Q, started (i_regs m u e) S k Q = started (i_regs m t e) S k Q mod M).
Definition word_related (s : spec m) (u : impl m) : Prop := exists t, related m keeps_trip s t /\ wraps t u.

Lemma value_wraps : forall f g l, (forall l, f l = g l mod M) -> value f l = value g l mod M.
Proof. intros. unfold value. destruct (l =? top); [rewrite Nat.mod_small; lia | auto]. Qed.
Lemma value_small : forall f g l, (forall l, f l = g l mod M) -> value g l < M -> value f l = value g l.
Proof. intros. rewrite (value_wraps f g l H). apply Nat.mod_small. assumption. Qed.
Lemma wraps_add : forall a, (a mod M + 1) mod M = (a + 1) mod M.
Proof. intros. rewrite Nat.add_mod_idemp_l by lia. reflexivity. Qed.

(** ** Below the bound, words and numbers give the same waits *)
(** of one engine: [r] are numbers, [y] words *)
Lemma word_owed_value : forall r y d, (forall l, mono y l = mono r l mod M) -> (forall l, trips y l = trips r l mod M) ->
  (forall S k Q, past y S k Q = past r S k Q mod M) -> (forall S k Q, started y S k Q = started r S k Q mod M) ->
  1 <= K_of m (producer d) <= N_of m (producer d) -> mask m r d = 0 \/ mask m r d = 1 ->
  N_of m (producer d) * owed m r d < M ->
  (clamp d = None -> history d = false -> value (mono r) (loop_of P (producer d)) < M) ->
  (forall l, reads_trip m d l -> value (trips r) l < M) ->
  (restarts = false -> loop_of P (producer d) = carrier d -> clamp d = None -> history d = false -> mask m r d = 1 ->
    back_by r d <= value (mono r) (carrier d)) ->
  (clamp d <> None -> started r (carrier d) (distance d) (loop_of P (producer d)) < M /\
    started r (carrier d) (distance d + 1) (loop_of P (producer d)) <=
      started r (carrier d) (distance d) (loop_of P (producer d))) ->
  word_mul M (mask m y d) (word_owed y d) = mask m r d * owed m r d.
Proof.
  intros r y d WM WT WP WS HK MB FO FM FT LE CL.
  assert (VT : forall l, reads_trip m d l -> value (trips y) l = value (trips r) l) by (intros; apply value_small; auto).
  assert (VC : clamp d <> None -> value (trips y) (loop_of P (producer d)) = value (trips r) (loop_of P (producer d)))
    by (intro; apply VT; right; auto).
  assert (EM : mask m y d = mask m r d).
  { unfold mask. f_equal.
    - destruct (masked d) eqn:MK; [|reflexivity]. rewrite VT; [reflexivity | left; auto].
    - destruct (clamp d); [|reflexivity]. rewrite VC; [reflexivity | discriminate]. }
  assert (EB : back_by y d = back_by r d).
  { unfold back_by. destruct (within d) eqn:WI; [reflexivity|]. simpl. destruct (Nat.leb_spec (distance d) 1); [reflexivity|].
    rewrite VT; [reflexivity | left; auto]. }
  rewrite EM. destruct MB as [E | E]; rewrite E.
  - unfold word_mul. rewrite Nat.mul_0_l. apply Nat.mod_0_l. lia.
  - assert (OM : owed m r d < M) by (eapply Nat.le_lt_trans; [|exact FO]; nia).
    assert (EO : word_owed y d = owed m r d).
    { unfold word_owed, owed in *. destruct (clamp d) as [z|].
      - destruct CL as [L1 L2]; [discriminate|]. rewrite VC, !WS by discriminate. rewrite !(Nat.mod_small (started r _ _ _)) by lia.
        unfold word_sub. set (a := started r (carrier d) (distance d) (loop_of P (producer d))) in *.
        set (b := started r (carrier d) (distance d + 1) (loop_of P (producer d))) in *.
        replace (a + (M - b)) with (a - b + 1 * M) by lia. rewrite Nat.mod_add, (Nat.mod_small (a - b)) by lia.
        apply Nat.mod_small. assumption.
      - destruct (history d); [destruct (within d); rewrite ?WP, ?WS; apply Nat.mod_small; assumption|].
        specialize (FM eq_refl eq_refl).
        destruct (Nat.eqb_spec (loop_of P (producer d)) (carrier d)) as [EC|]; [|apply value_small; auto].
        rewrite EC in FM. rewrite EB, (value_small _ (mono r)) by assumption.
        destruct restarts; [lia|]. specialize (LE eq_refl EC eq_refl eq_refl E). unfold word_sub.
        match goal with |- (?v + (M - ?k)) mod M = _ => replace (v + (M - k)) with (v - k + 1 * M) by lia end.
        rewrite Nat.mod_add by lia. apply Nat.mod_small. lia. }
    rewrite EO. unfold word_mul. apply Nat.mod_small. lia.
Qed.

Lemma threshold_value : forall y p w, word_mul M (mask m y p) (word_owed y p) = w -> 1 <= K_of m (producer p) <=
  N_of m (producer p) ->
  N_of m (producer p) * w < M -> word_wait y p = threshold (N_of m (producer p)) (K_of m (producer p)) w.
Proof. intros y p w E HK B. unfold word_wait. rewrite E. apply word_threshold_exact; [lia | assumption | assumption]. Qed.

(** All that a wait compares, in words and in numbers. *)
Lemma words_at_issue : forall s t u e x i rest fs d, related m keeps_trip s t -> wraps t u -> fits s ->
  conts m (s_shared m s) e = (x, Instr i :: rest) :: fs -> In d (deps m i) ->
  let w := mask m (i_regs m t e) d * owed m (i_regs m t e) d in
  1 <= K_of m (producer d) <= N_of m (producer d) /\ N_of m (producer d) * w < M /\
  word_mul M (mask m (i_regs m u e) d) (word_owed (i_regs m u e) d) = w /\
  reached m (i_sema m u) (producer d) = reached m (i_sema m t) (producer d).
Proof.
  intros s t u e x i rest fs d RL (_ & WS & WM & WT & WP & WB) FT Fe Hd.
  destruct (at_issue _ _ _ _ _ _ _ _ RL Fe Hd) as (_ & MB & OE & TE & BE & CE).
  destruct (AL i d Hd) as [(_ & IP & SG) A]. destruct RL as [_ IV].
  destruct (FT e) as [FE FN]. specialize (FN (producer d)).
  assert (RM : forall l, value (mono (i_regs m t e)) l = entries (s_hist m s e) l)
    by (destruct (IV e) as [C _]; apply (r_mono _ _ _ _ _ _ C)).
  destruct (IV (engine_of P (producer d))) as [C [done O]].
  assert (SB := sema_bounded m _ _ _ _ _ _ _ (loop_of P (producer d)) (share P (producer d)) O (c_active _ _ _ _ _ _ C _)).
  destruct (sema_decodes m W _ _ _ _ _ _ _ (producer d) O eq_refl IP SG) as (_ & _ & _ & _ & _ & HK).
  assert (OB : N_of m (producer d) * owed m (i_regs m t e) d < M)
    by (eapply Nat.le_lt_trans; [|exact FN]; apply Nat.mul_le_mono_l; exact OE).
  cbv zeta. split; [assumption|]. split; [destruct MB as [-> | ->]; rewrite ?Nat.mul_0_l, ?Nat.mul_1_l; lia|]. split.
  - apply word_owed_value; auto.
    + intros _ _. rewrite RM. apply FE.
    + intros l Hl. destruct (TE l Hl) as [-> L]. eapply Nat.le_lt_trans; [exact L | apply FE].
    + intro N. destruct (CE N). split; [eapply Nat.le_lt_trans; [eassumption | apply FE] | assumption].
  - unfold reached in *. rewrite WS. apply Nat.mod_small.
    eapply Nat.le_lt_trans; [exact SB|]. apply (proj2 (FT (engine_of P (producer d)))).
Qed.
Theorem word_wait_exact : forall s t u e x i rest fs d, related m keeps_trip s t -> wraps t u -> fits s ->
  conts m (s_shared m s) e = (x, Instr i :: rest) :: fs -> In d (deps m i) ->
  (word_passes (i_sema m u) (i_regs m u e) d <-> passes m (i_sema m t) (i_regs m t e) d).
Proof.
  intros s t u e x i rest fs d RL WR FT Fe Hd. destruct (words_at_issue _ _ _ _ _ _ _ _ _ RL WR FT Fe Hd) as (HK & NB & EW & ER).
  unfold word_passes, passes, wait_value. rewrite (threshold_value _ _ _ EW HK NB), ER. tauto.
Qed.

Lemma wraps_step : forall t u a sh', wraps t u -> wraps (impl_update m keeps_trip a sh' t) (word_update a sh' u).
Proof.
  intros t u a sh' (E & WS & WM & WT & WP & WB). destruct a; (split; [reflexivity|]); simpl; auto.
  - split; [assumption|].
    split; [|split; [|split]]; intro e0; unfold upd at 1 2; destruct (e0 =? e); auto; simpl.
    + intro l0. unfold upd. destruct (l0 =? l); [rewrite WM; apply wraps_add | apply WM].
    + intro l0. destruct (negb (keeps_trip l0)); [apply WT|].
      destruct (l0 =? l); [rewrite WT; apply wraps_add|].
      destruct (parent P l0 =? l); [rewrite Nat.mod_0_l; lia | apply WT].
    + intros S k Q. destruct (S =? l); [|apply WP].
      destruct k as [|[|k]]; try (apply value_wraps; apply WM). apply WP.
    + intros S k Q. destruct (S =? l).
      * destruct k as [|[|k]]; try (apply value_wraps; apply WM). apply WB.
      * destruct (parent P S =? l); [apply value_wraps; apply WM | apply WB].
  - split; [|auto]. intros l e0 g. unfold word_signal, signal.
    destruct (member m g i && (l =? loop_of P i) && (e0 =? engine_of P i)); [rewrite WS; apply wraps_add | apply WS].
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
