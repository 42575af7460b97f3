(** Epochs: once in so many iterations of a loop the engines that take part retire what they issued, meet at the end of an
    iteration, and set semaphores and counters back to 0. The machine that does so is bisimilar to the specification, and to
    the implementation, that only meet ([epoch_bisimulation], [resets_unseen]); semaphores and counters stay below what the
    iterations between two meetings add ([epochs_keep_the_bound]), however long the program runs. *)
From Coq Require Import Arith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program Machine Registers Owed Retirement Bisimulation Corollaries.

Record epoch := Epoch {
  place : loop;                  (* the engines meet at the end of an iteration of it, *)
  every : nat;                   (* once in so many, *)
  parts : engine -> bool;        (* those that take part, *)
  resets : loop -> bool }.       (* and semaphores and counters of these loops start again *)

Section Epochs.
Variable m : machine.
Notation P := (program_of m).
Variable keeps_trip : loop -> bool.
Hypothesis W : well_formed P.
Hypothesis AL : Allocatable P (deps m).
Hypothesis KT : forall l, tripped m l -> keeps_trip l = true.
Variable number : nat.
Variable epochs : nat -> epoch.

Record right_epochs : Prop := {
  ep_place : forall k, k < number -> place (epochs k) <> top;
  ep_every : forall k, k < number -> 0 < every (epochs k);
  (** an epoch leaves alone what has a member in a loop around it *)
  ep_inside : forall k l, k < number -> resets (epochs k) l = true -> under P (place (epochs k)) l;
  (** who signals or waits takes part *)
  ep_parts : forall k c d, k < number -> In d (deps m c) -> resets (epochs k) (loop_of P (producer d)) = true ->
    parts (epochs k) (engine_of P c) = true /\ parts (epochs k) (engine_of P (producer d)) = true;
  (** what is clamped does not survive a reset *)
  ep_clamp : forall k c d, k < number -> In d (deps m c) -> resets (epochs k) (loop_of P (producer d)) = true -> clamp d = None;
  ep_once : forall k k' l, k < number -> k' < number -> resets (epochs k) l = true -> resets (epochs k') l = true -> k = k' }.
Hypothesis EP : right_epochs.

(** ** Meeting *)
Definition counts := nat -> engine -> nat.      (* iterations of the place of an epoch since its engines met *)
Definition held (k : nat) (sh : shared m) (n : counts) (e : engine) : Prop :=
  parts (epochs k) e = true /\ every (epochs k) <= n k e /\ exists fs, conts m sh e = (place (epochs k), []) :: fs.
Definition moves (a : label) (e : engine) : Prop := match a with
  | Enter e' _ | Exit e' _ | Back e' | Issue e' _ => e' = e | _ => False end.
Definition go_on (a : label) (n : counts) : counts := match a with
  | Enter e l => fun k e' => if (e' =? e) && (l =? place (epochs k)) then n k e' + 1 else n k e'
  | _ => n end.
Definition begin_again (k : nat) (n : counts) : counts := fun k' e =>
  if (k' =? k) && parts (epochs k) e then 0 else n k' e.

(** A system whose engines meet: [inl] is a step of its own, [inr k] a meeting, where [reset] is done. *)
Section Meeting.
Context {State : Type} (step : State -> label -> State -> Prop) (shared_of : State -> shared m) (reset : nat -> State -> State).
Definition all_held (k : nat) (x : State * counts) : Prop := forall e, parts (epochs k) e = true ->
  held k (shared_of (fst x)) (snd x) e /\ in_flight m (shared_of (fst x)) e = [].
Inductive meeting : State * counts -> label + nat -> State * counts -> Prop :=
| meeting_does : forall x n a x', step x a x' ->
    (forall k e, k < number -> moves a e -> ~ held k (shared_of x) n e) -> meeting (x, n) (inl a) (x', go_on a n)
| meeting_resets : forall x n k, k < number -> all_held k (x, n) -> meeting (x, n) (inr k) (reset k x, begin_again k n).
End Meeting.
Definition unchanged {State} (k : nat) (x : State) := x.
Definition restart (k : nat) (t : impl m) : impl m := Impl m (i_shared m t)
  (fun l e g => if parts (epochs k) e && resets (epochs k) l then 0 else i_sema m t l e g)
  (fun e => let r := i_regs m t e in if parts (epochs k) e then
    Regs (fun l => if resets (epochs k) l then 0 else mono r l) (trips r)
      (fun S j Q => if resets (epochs k) Q then 0 else past r S j Q)
      (fun S j Q => if resets (epochs k) Q then 0 else started r S j Q) else r).

Definition spec_meets := meeting (spec_step m) (s_shared m) unchanged.
Definition impl_meets := meeting (impl_step m keeps_trip) (i_shared m) unchanged.
Definition epoch_step := meeting (impl_step m keeps_trip) (i_shared m) restart.

(** ** What a reset leaves out: the entries before it *)
Definition bases := engine -> loop -> nat.
Record restarted (base : bases) (t v : impl m) : Prop := {
  b_shared : i_shared m t = i_shared m v;
  b_sema : forall l e g, i_sema m t l e g = i_sema m v l e g + length (members m e l g) * base e l;
  b_mono : forall e l, mono (i_regs m t e) l = mono (i_regs m v e) l + base e l;
  b_trips : forall e l, trips (i_regs m t e) l = trips (i_regs m v e) l;
  b_past : forall e S j Q, under P S Q -> 1 <= j -> past (i_regs m v e) S j Q = past (i_regs m t e) S j Q - base e Q;
  b_started : forall e S j Q, under P S Q -> 1 <= j ->
    started (i_regs m v e) S j Q = started (i_regs m t e) S j Q - base e Q }.
Record even (base : bases) : Prop := {
  b_some : forall e l, base e l <> 0 -> exists k, k < number /\ parts (epochs k) e = true /\ resets (epochs k) l = true;
  b_same : forall k e e' l, k < number -> resets (epochs k) l = true -> parts (epochs k) e = true ->
    parts (epochs k) e' = true -> base e l = base e' l }.
(** Engines that meet have entered what is reset equally often. *)
Definition agree (k : nat) (s : spec m) : Prop := forall e e' l, parts (epochs k) e = true -> parts (epochs k) e' = true ->
  resets (epochs k) l = true -> entries (s_hist m s e) l = entries (s_hist m s e') l.

Lemma under_top : forall A, under P A top -> A = top.
Proof. intros A U. inversion U; subst; congruence. Qed.
Lemma even_top : forall base e, even base -> base e top = 0.
Proof.
  intros base e B. destruct (Nat.eq_dec (base e top) 0) as [|N]; [assumption|]. destruct (b_some _ B _ _ N) as (k & K & _ & R).
  exfalso. apply (ep_place EP k K), under_top, (ep_inside EP); assumption.
Qed.
Lemma even_dep : forall base c d, even base -> In d (deps m c) ->
  base (engine_of P c) (loop_of P (producer d)) = base (engine_of P (producer d)) (loop_of P (producer d)).
Proof.
  intros base c d B Hd. set (l := loop_of P (producer d)).
  assert (E : forall e, base e l <> 0 -> base (engine_of P c) l = base (engine_of P (producer d)) l).
  { intros e N. destruct (b_some _ B _ _ N) as (k & K & _ & R). destruct (ep_parts EP k c d K Hd R).
    apply (b_same _ B k); assumption. }
  destruct (Nat.eq_dec (base (engine_of P c) l) 0); [|eauto].
  destruct (Nat.eq_dec (base (engine_of P (producer d)) l) 0); [congruence | eauto].
Qed.
Lemma value_base : forall base t v e l, even base -> restarted base t v ->
  value (mono (i_regs m t e)) l = value (mono (i_regs m v e)) l + base e l.
Proof.
  intros base t v e l B R. unfold value. destruct (Nat.eqb_spec l top) as [->|]; [rewrite even_top by assumption; reflexivity|].
  apply (b_mono _ _ _ R).
Qed.

Lemma trips_base : forall base t v e l, restarted base t v -> value (trips (i_regs m v e)) l = value (trips (i_regs m t e)) l.
Proof. intros. unfold value. rewrite <- (b_trips _ _ _ H). reflexivity. Qed.
Lemma mask_base : forall base t v e d, restarted base t v -> mask m (i_regs m v e) d = mask m (i_regs m t e) d.
Proof. intros. unfold mask. rewrite !(trips_base base t v) by assumption. reflexivity. Qed.
Lemma owed_base : forall base t v e c d, even base -> restarted base t v -> In d (deps m c) -> engine_of P c = e ->
  owed m (i_regs m v e) d = owed m (i_regs m t e) d - base e (loop_of P (producer d)).
Proof.
  intros base t v e c d B R Hd EC. destruct (AL c d Hd) as [_ A].
  assert (BB : back_by (i_regs m v e) d = back_by (i_regs m t e) d)
    by (unfold back_by; rewrite (trips_base base t v) by assumption; reflexivity).
  unfold owed. destruct (clamp d) as [z|] eqn:Z.
  - assert (B0 : base e (loop_of P (producer d)) = 0).
    { destruct (Nat.eq_dec (base e (loop_of P (producer d))) 0) as [|N]; [assumption|].
      destruct (b_some _ B _ _ N) as (k & K & _ & Rl). rewrite (ep_clamp EP k c d K Hd Rl) in Z. discriminate. }
    assert (UK : under P (carrier d) (loop_of P (producer d)) /\ 1 <= distance d) by (destruct A; try congruence; auto).
    rewrite !(b_started _ _ _ R), (trips_base base t v), B0, !Nat.sub_0_r by (assumption || lia || tauto). reflexivity.
  - destruct (history d) eqn:HH.
    + assert (UK : under P (carrier d) (loop_of P (producer d)) /\ 1 <= distance d) by (destruct A; try congruence; auto).
      destruct (within d); [apply (b_past _ _ _ R) | apply (b_started _ _ _ R)]; tauto.
    + rewrite !(value_base base t v), BB by assumption.
      destruct (Nat.eqb_spec (loop_of P (producer d)) (carrier d)) as [->|]; lia.
Qed.
Theorem epoch_wait_exact : forall base s t v e x i rest fs d, related m keeps_trip s t -> even base -> restarted base t v ->
  conts m (s_shared m s) e = (x, Instr i :: rest) :: fs -> In d (deps m i) ->
  (passes m (i_sema m t) (i_regs m t e) d <-> passes m (i_sema m v) (i_regs m v e) d).
Proof.
  intros base s t v e x i rest fs d RL B R F Hd. destruct (AL i d Hd) as [(US & IP & SG) A].
  destruct RL as [_ IV]. destruct (IV (engine_of P (producer d))) as [_ [done O]]. destruct (IV e) as [C _]. rewrite F in C.
  destruct (sema_decodes m W _ _ _ _ _ _ _ (producer d) O eq_refl IP SG) as (_ & _ & _ & _ & _ & HK).
  assert (EI : loop_of P i = x /\ engine_of P i = e).
  { apply (wf_instr _ W e x i).
    eapply suffix_in; [eapply good_suffix; [exact (c_good _ _ _ _ _ _ C) | left; reflexivity] | left; reflexivity]. }
  destruct EI as [<- <-].
  assert (KTd : forall l, reads_trip m d l -> keeps_trip l = true) by (intros; apply KT; exists i, d; auto).
  unfold passes, wait_value, reached. rewrite (owed_base base t v _ i d B R Hd eq_refl), (b_sema _ _ _ R),
    (mask_base base t v _ d R).
  fold (N_of m (producer d)). rewrite <- (even_dep base i d B Hd), <- restart_exact by lia.
  destruct (mask_exact m W keeps_trip _ _ _ _ _ d C US A KTd) as [[-> _]|[-> _]];
  [rewrite !Nat.mul_0_l | rewrite !Nat.mul_1_l]; reflexivity.
Qed.

Lemma restarted_step : forall base t v a sh', even base -> restarted base t v ->
  restarted base (impl_update m keeps_trip a sh' t) (impl_update m keeps_trip a sh' v).
Proof.
  intros base t v a sh' B R. assert (V := fun e l => value_base base t v e l B R). destruct R as [BS BE BM BT BP BB].
  destruct a; constructor; simpl; auto.
  - intros e0 l0. unfold upd. destruct (Nat.eqb_spec e0 e) as [->|]; [|apply BM]. simpl. unfold upd.
    destruct (Nat.eqb_spec l0 l) as [->|]; rewrite BM; lia.
  - intros e0 l0. unfold upd. destruct (e0 =? e); [|apply BT]. simpl. rewrite !BT. reflexivity.
  - intros e0 S j Q U J. unfold upd. destruct (Nat.eqb_spec e0 e) as [->|]; [|apply BP; assumption]. simpl.
    destruct (S =? l); [|apply BP; assumption]. destruct j as [|[|j]]; [lia | rewrite V; lia | apply BP; [assumption | lia]].
  - intros e0 S j Q U J. unfold upd. destruct (Nat.eqb_spec e0 e) as [->|]; [|apply BB; assumption]. simpl.
    destruct (S =? l).
    + destruct j as [|[|j]]; [lia | rewrite V; lia | apply BB; [assumption | lia]].
    + destruct (parent P S =? l); [rewrite V; lia | apply BB; assumption].
  - intros l e0 g. unfold signal. destruct (_ && _ && _); rewrite BE; lia.
Qed.

(** ** At a meeting each semaphore that is reset has counted whole rounds *)
Lemma whole_rounds : forall s t e k l g, related m keeps_trip s t -> k < number -> resets (epochs k) l = true ->
  in_flight m (i_shared m t) e = [] -> (exists fs, conts m (i_shared m t) e = (place (epochs k), []) :: fs) ->
  i_sema m t l e g = length (members m e l g) * entries (s_hist m s e) l.
Proof.
  intros s t e k l g [ES IV] K R Q [fs F]. destruct (IV e) as [C [done O]]. rewrite ES in C, O. rewrite Q in O. rewrite F in C, O.
  rewrite (o_sema _ _ _ _ _ _ _ _ O). unfold updates.
  assert (E : runs m l done = rounds (entries (s_hist m s e) l) (instrs (body P e l))).
  { destruct (in_dec Nat.eq_dec l (loops ((place (epochs k), []) :: fs))) as [A|A].
    - assert (l = place (epochs k)).
      { assert (U := ep_inside EP k l K R).
        assert (U' := good_in_under m W _ _ (c_good _ _ _ _ _ _ C) _ _ _ eq_refl _ A).
        symmetry. apply (under_eq m W); [assumption|]. apply (under_depth m W) in U, U'. lia. }
      subst l. assert (C1 := c_active _ _ _ _ _ _ C _ A).
      destruct (o_active _ _ _ _ _ _ _ _ O _ [] (or_introl eq_refl)) as (pre & E1 & E2).
      simpl in E1, E2. rewrite app_nil_r in E1, E2. subst pre. rewrite E2.
      destruct (entries (s_hist m s e) (place (epochs k))) as [|n]; [lia|]. simpl (S n - 1). rewrite Nat.sub_0_r.
      symmetry. apply rounds_S.
    - assert (E := o_idle _ _ _ _ _ _ _ _ O _ A). simpl in E. rewrite app_nil_r in E. exact E. }
  rewrite E, filter_rounds, rounds_length. unfold members. lia.
Qed.
Definition rebase (k : nat) (s : spec m) (base : bases) : bases := fun e l =>
  if parts (epochs k) e && resets (epochs k) l then entries (s_hist m s e) l else base e l.
Lemma rebase_even : forall k s base, k < number -> agree k s -> even base -> even (rebase k s base).
Proof.
  intros k s base K A B. constructor; unfold rebase.
  - intros e l. destruct (parts (epochs k) e && resets (epochs k) l) eqn:E; [|apply (b_some _ B)].
    intros _. apply andb_true_iff in E. exists k. tauto.
  - intros k' e e' l K' R Pe Pe'. destruct (resets (epochs k) l) eqn:Rk.
    + assert (k = k') by (apply (ep_once EP k k' l); assumption). subst k'. rewrite Pe, Pe'. simpl. apply A; assumption.
    + rewrite !andb_false_r. apply (b_same _ B k'); assumption.
Qed.
Lemma restarted_meeting : forall base s t v k n, related m keeps_trip s t -> even base -> restarted base t v -> k < number ->
  all_held (i_shared m) k (v, n) -> restarted (rebase k s base) t (restart k v).
Proof.
  intros base s t v k n RL B R K AH. destruct R as [BS BE BM BT BP BB]. unfold all_held in AH. simpl in AH. rewrite <- BS in AH.
  assert (L : forall l, resets (epochs k) l = true -> l <> top).
  { intros l Hl ->. apply (ep_place EP k K), under_top, (ep_inside EP); assumption. }
  assert (MT : forall e l, l <> top -> mono (i_regs m t e) l = entries (s_hist m s e) l).
  { intros e l NT. destruct RL as [_ IV]. destruct (IV e) as [C _]. rewrite <- (r_mono _ _ _ _ _ _ C).
    unfold value. rewrite (proj2 (Nat.eqb_neq l top)) by assumption. reflexivity. }
  constructor; simpl; auto; unfold rebase.
  - intros l e g. destruct (parts (epochs k) e) eqn:Pe; [|apply BE]. destruct (resets (epochs k) l) eqn:R; [|apply BE].
    simpl. destruct (AH e Pe) as [(_ & _ & F) Q]. eapply whole_rounds; eauto.
  - intros e l. destruct (parts (epochs k) e); [|apply BM]. simpl. destruct (resets (epochs k) l) eqn:R; [|apply BM].
    apply MT. auto.
  - intros e l. destruct (parts (epochs k) e); apply BT.
  - intros e S j Q U J. destruct (parts (epochs k) e); [|apply BP; assumption]. simpl.
    destruct (resets (epochs k) Q) eqn:R; [|apply BP; assumption].
    destruct RL as [_ IV]. destruct (IV e) as [C _]. rewrite (r_past _ _ _ _ _ _ C) by assumption.
    rewrite <- (c_upto _ _ _ _ _ _ C S Q U). assert (X := upto_le (s_hist m s e) S Q). symmetry. apply Nat.sub_0_le, X. lia.
  - intros e S j Q U J. destruct (parts (epochs k) e); [|apply BB; assumption]. simpl.
    destruct (resets (epochs k) Q) eqn:R; [|apply BB; assumption].
    destruct RL as [_ IV]. destruct (IV e) as [C _]. rewrite (r_started _ _ _ _ _ _ C) by assumption.
    rewrite <- (c_upto _ _ _ _ _ _ C S Q U). assert (X := upto_le (s_hist m s e) S Q). symmetry. apply Nat.sub_0_le, X. lia.
Qed.

(** ** What is entered between two meetings *)
(** X iterations of the place came before the last meeting, and n behind it. *)
Definition since (k : nat) (e : engine) (fs : frames) (H : hist) (n : counts) (base : bases) : Prop := exists X,
  let p := place (epochs k) in
  entries H p = X + n k e /\ (forall l, resets (epochs k) l = true -> upto H p X l = base e l) /\
  (n k e = 0 -> forall rest, In (p, rest) fs -> rest = []) /\
  n k e <= every (epochs k) /\ (n k e = every (epochs k) -> In p (loops fs)).
Definition all_since (s : spec m) (n : counts) (base : bases) : Prop := forall k e, k < number -> parts (epochs k) e = true ->
  since k e (conts m (s_shared m s) e) (s_hist m s e) n base.

Lemma since_fewer : forall k e fs fs' H n base, since k e fs H n base ->
  (forall rest, In (place (epochs k), rest) fs' -> exists s rest', In (place (epochs k), rest') fs /\
    (rest' = s :: rest \/ rest' = rest)) ->
  (n k e = every (epochs k) -> In (place (epochs k)) (loops fs) -> In (place (epochs k)) (loops fs')) ->
  since k e fs' H n base.
Proof.
  intros k e fs fs' H n base (X & E & U & Z & L & F) A B. exists X. cbv zeta. repeat split; auto.
  intros N rest I. destruct (A rest I) as (s & rest' & I' & [-> | ->]); [specialize (Z N _ I'); discriminate | eauto].
Qed.

Lemma since_step : forall s t a sh' n base, related m keeps_trip s t -> shared_step m (s_shared m s) a sh' ->
  (forall k e, k < number -> moves a e -> ~ held k (s_shared m s) n e) -> all_since s n base ->
  all_since (spec_update m a sh' s) (go_on a n) base.
Proof.
  intros [sh H R] t a sh' n base [_ IV] ST FR AS k e0 K Pe. specialize (AS k e0 K Pe). simpl in *.
  destruct (IV e0) as [C _]. assert (G := c_good _ _ _ _ _ _ C).
  destruct ST; simpl in *; try exact AS;
  (destruct (Nat.eq_dec e0 e) as [->|N]; [rewrite ?upd_same; rewrite H0 in AS, C, G |
    rewrite ?upd_other by assumption; try exact AS]).
  - destruct (entered_child _ _ _ H1) as [HC NI]. destruct AS as (X & E & U & Z & L & F).
    set (p := place (epochs k)) in *. assert (G' := enter_good _ _ _ _ _ _ _ _ _ _ C HC).
    exists X. cbv zeta. fold p. rewrite (enter_entries m W _ _ _ _ _ _ _ _ _ C HC), Nat.eqb_refl. simpl. rewrite (Nat.eqb_sym l).
    change (l :: x :: loops fs) with (loops ((l, body P e l) :: (x, s :: rest) :: fs)).
    destruct (Nat.eqb_spec p l) as [El|Nl].
    + split; [lia|]. split; [|split; [intro; lia | split]].
      * intros l0 R0. rewrite upto_before by (rewrite E, El, Nat.eqb_refl; lia). auto.
      * destruct (Nat.eq_dec (n k e) (every (epochs k))) as [Q|]; [|lia]. exfalso.
        apply (good_not_inner m W _ _ _ _ G'). rewrite <- El. apply F. assumption.
      * intros _. left. symmetry. exact El.
    + split; [lia|]. split; [|split; [|split; [assumption|]]].
      * intros l0 R0. rewrite <- (U l0 R0). destruct (in_dec Nat.eq_dec p
        (loops ((l, body P e l) :: (x, s :: rest) :: fs))) as [A|A].
        -- destruct A as [A|A]; [simpl in A; congruence|]. apply upto_before. destruct (Nat.eq_dec (n k e) 0) as [Q|]; [|lia].
           exfalso. apply loops_in in A. destruct A as [r' A]. assert (Er := Z Q _ A). subst r'.
           destruct A as [A|A]; [inversion A|].
           destruct (good_inner m W _ _ G _ _ _ eq_refl _ _ A) as (y & s' & rs' & B & _). discriminate.
        -- apply upto_ext. intros. unfold enter_hist.
           destruct (mem p (loops ((l, body P e l) :: (x, s :: rest) :: fs))) eqn:M; [apply mem_in in M; contradiction|].
           rewrite andb_false_r. simpl. lia.
      * intros Q r' [A|A]; [inversion A; congruence | eauto].
      * intro Q. right. apply F. assumption.
  - unfold since in *. simpl. rewrite (proj2 (Nat.eqb_neq e0 e)) by assumption. exact AS.
  - eapply since_fewer; [exact AS| |].
    + intros r' [A|A]; [injection A as -> ->; exists (Loop l), (Loop l :: r'); simpl; auto | exists (Loop l), r'; simpl; auto].
    + intros _ [A|A]; simpl; auto.
  - eapply since_fewer; [exact AS| |].
    + intros r' [A|A]; [injection A as <- <- | exists s, r'; simpl; auto].
      exists s, (s :: rest). split; [right; left; reflexivity|]. destruct s; simpl; auto.
    + intros Q [A|A]; [|exact A]. exfalso. simpl in A. apply (FR k e K eq_refl). split; [assumption|]. split; [lia|].
      simpl. rewrite H0, A. eauto.
  - eapply since_fewer; [exact AS| |].
    + intros r' [A|A]; [injection A as -> ->; exists (Instr i), (Instr i :: r'); simpl; auto | exists (Instr i), r'; simpl; auto].
    + intros _ [A|A]; simpl; auto.
Qed.
Lemma since_meeting : forall s t n base k, related m keeps_trip s t -> k < number ->
  all_held (s_shared m) k (s, n) -> all_since s n base -> all_since s (begin_again k n) (rebase k s base).
Proof.
  intros s t n base k [_ IV] K AH AS k' e K' Pe. destruct (IV e) as [C _]. unfold begin_again, since, rebase.
  destruct (Nat.eqb_spec k' k) as [->|N].
  - rewrite Pe. simpl. destruct (AH e Pe) as [(_ & _ & fs & F) _]. simpl in F. rewrite F in *.
    exists (entries (s_hist m s e) (place (epochs k))). repeat split; try lia.
    + intros l R. rewrite R. apply (c_upto _ _ _ _ _ _ C). apply (ep_inside EP); assumption.
    + intros _ rest [A|A]; [congruence|]. exfalso.
      assert (D := good_depth m W _ _ _ _ (c_good _ _ _ _ _ _ C) _ _ A). lia.
    + intro Z. assert (Y := ep_every EP k K). lia.
  - destruct (AS k' e K' Pe) as (X & E & U & Z). exists X. simpl in *. repeat split; try tauto.
    intros l R. rewrite (U l R). destruct (resets (epochs k) l) eqn:Rk; [|rewrite andb_false_r; reflexivity].
    exfalso. apply N. apply (ep_once EP k' k l); assumption.
Qed.

(** ** Bisimulation *)
Definition met (x : spec m * counts) (y : impl m * counts) : Prop := exists t base,
  related m keeps_trip (fst x) t /\ even base /\ restarted base t (fst y) /\ all_since (fst x) (snd x) base /\ snd x = snd y.
(** what is asked of a step of the specification: engines that meet agree *)
Definition agreeing (b : label + nat) (x : spec m * counts) : Prop := match b with inl _ => True | inr k => agree k (fst x) end.

Lemma epoch_waits : forall s t v base e i sh', related m keeps_trip s t -> even base -> restarted base t v ->
  shared_step m (s_shared m s) (Issue e i) sh' ->
  (Forall (passes m (i_sema m t) (i_regs m t e)) (deps m i) <-> Forall (passes m (i_sema m v) (i_regs m v e)) (deps m i)).
Proof.
  intros s t v base e i sh' RL B R CS. inversion CS as [| | |d c f q e0 x i0 rest fs F H| |]; subst.
  rewrite !Forall_forall. split; intros A d0 Hd; specialize (A d0 Hd);
  apply (epoch_wait_exact base s t v e x i rest fs d0); auto; rewrite <- H; exact F.
Qed.

Definition no_counts : counts := fun _ _ => 0.
Theorem epoch_bisimulation :
  (forall d c, met (spec_start m d c, no_counts) (impl_start m d c, no_counts)) /\
  (forall x y, met x y -> s_shared m (fst x) = i_shared m (fst y)) /\
  (forall x y b x', met x y -> agreeing b x -> spec_meets x b x' -> exists y', epoch_step y b y' /\ met x' y') /\
  (forall x y b y', met x y -> agreeing b x -> epoch_step y b y' -> exists x', spec_meets x b x' /\ met x' y').
Proof.
  split; [|split; [|split]].
  - intros d c. exists (impl_start m d c), (fun _ _ => 0). split; [apply start_related; assumption|].
    split; [constructor; simpl; intros; try lia; reflexivity|]. split; [constructor; simpl; intros; try lia; reflexivity|].
    split; [|reflexivity]. intros k e K Pe. assert (NT := ep_place EP k K). assert (Y := ep_every EP k K).
    exists 0. unfold no_counts. repeat split; simpl; try lia.
    + unfold entries, hist_start. rewrite (proj2 (Nat.eqb_neq _ _) NT), andb_false_r. reflexivity.
    + intros _ rest [A|[]]. congruence.
  - intros x y (t & base & [E _] & _ & R & _). rewrite E. apply (b_shared _ _ _ R).
  - intros [s n] [v n'] b x' (t & base & RL & B & R & AS & E) AG ST. simpl in E, AG, RL, R, AS. subst n'.
    assert (SH : s_shared m s = i_shared m v) by (rewrite <- (b_shared _ _ _ R); apply RL).
    inversion ST as [s0 n0 a s' S1 FR|s0 n0 k K AH]; subst.
    + destruct (forward _ _ W AL KT _ _ _ _ RL S1) as (t' & IS & RL'). inversion IS as [t0 a0 sh' CS EN]; subst.
      assert (Es : s' = spec_update m a sh' s).
      { inversion S1 as [s1 a1 sh2 CS2 _]; subst. f_equal. destruct RL' as [Q _]. destruct a; simpl in Q; assumption. }
      exists (impl_update m keeps_trip a sh' v, go_on a n). split.
      * constructor; [|rewrite <- SH; assumption]. constructor; [rewrite <- (b_shared _ _ _ R); exact CS|].
        intros e i ->. apply (epoch_waits s t v base e i sh' RL B R); [rewrite (proj1 RL); assumption | auto].
      * exists (impl_update m keeps_trip a sh' t), base. simpl. split; [assumption|]. split; [assumption|].
        split; [apply restarted_step; assumption|]. split; [|reflexivity]. rewrite Es.
        eapply since_step; eauto. rewrite (proj1 RL). assumption.
    + exists (restart k v, begin_again k n). assert (AH' := AH). unfold all_held in AH'. simpl in AH'. rewrite SH in AH'.
      split; [constructor; assumption|]. exists t, (rebase k s base). simpl. split; [assumption|].
      split; [apply rebase_even; assumption|]. split; [eapply restarted_meeting; eauto|].
      split; [eapply since_meeting; eauto | reflexivity].
  - intros [s n] [v n'] b y' (t & base & RL & B & R & AS & E) AG ST. simpl in E, AG, RL, R, AS. subst n'.
    assert (SH : s_shared m s = i_shared m v) by (rewrite <- (b_shared _ _ _ R); apply RL).
    inversion ST as [v0 n0 a v' S1 FR|v0 n0 k K AH]; subst.
    + inversion S1 as [v0 a0 sh' CS EN]; subst.
      assert (IS : impl_step m keeps_trip t a (impl_update m keeps_trip a sh' t)).
      { constructor; [rewrite (b_shared _ _ _ R); exact CS|]. intros e i ->.
        apply (epoch_waits s t v base e i sh' RL B R); [rewrite SH; assumption | auto]. }
      destruct (backward _ _ W AL KT _ _ _ _ RL IS) as (s' & S2 & RL').
      assert (Es : s' = spec_update m a sh' s).
      { inversion S2 as [s1 a1 sh2 CS2 _]; subst. f_equal. destruct RL' as [Q _]. destruct a; simpl in Q; assumption. }
      exists (s', go_on a n). split; [constructor; [assumption | rewrite SH; assumption]|].
      exists (impl_update m keeps_trip a sh' t), base. simpl. split; [assumption|]. split; [assumption|].
      split; [apply restarted_step; assumption|]. split; [|reflexivity]. rewrite Es.
      eapply since_step; eauto; rewrite SH; assumption.
    + assert (AH' : all_held (s_shared m) k (s, n)) by (unfold all_held; simpl; rewrite SH; exact AH).
      exists (s, begin_again k n). split; [constructor; assumption|].
      exists t, (rebase k s base). simpl. split; [assumption|]. split; [apply rebase_even; assumption|].
      split; [eapply restarted_meeting; eauto|]. split; [eapply since_meeting; eauto | reflexivity].
Qed.

(** ** The bound: what [every] iterations add, whatever ran before *)
Theorem epochs_keep_the_bound : forall s n v n' k e l g most, met (s, n) (v, n') -> k < number ->
  parts (epochs k) e = true -> resets (epochs k) l = true ->
  (forall i, s_hist m s e (place (epochs k)) i l <= most) ->
  mono (i_regs m v e) l <= every (epochs k) * most /\
  i_sema m v l e g <= length (members m e l g) * (every (epochs k) * most).
Proof.
  intros s n v n' k e l g most (t & base & RL & B & R & AS & _) K Pe Rl HM. simpl in *.
  destruct (AS k e K Pe) as (X & E & U & _ & L & _). assert (Ul := ep_inside EP k l K Rl).
  destruct RL as [_ IV]. destruct (IV e) as [C [done O]].
  assert (NT : l <> top) by (intros ->; apply (ep_place EP k K), under_top; assumption).
  assert (Q : entries (s_hist m s e) l <= base e l + every (epochs k) * most).
  { rewrite <- (c_upto _ _ _ _ _ _ C _ _ Ul), E, <- (U l Rl). apply Nat.le_trans with
      (upto (s_hist m s e) (place (epochs k)) X l + n k e * most); [|nia].
    clear - HM. induction (n k e) as [|x IH]; [rewrite Nat.add_0_r; lia|]. rewrite Nat.add_succ_r. simpl.
    specialize (HM (S (X + x))). lia. }
  assert (MB := b_mono _ _ _ R e l). assert (RM := r_mono _ _ _ _ _ _ C l). unfold value in RM.
  rewrite (proj2 (Nat.eqb_neq l top)) in RM by assumption.
  assert (SB := sema_bounded m _ _ _ _ _ _ _ l g O (c_active _ _ _ _ _ _ C l)). rewrite (b_sema _ _ _ R) in SB.
  split; [lia|]. assert (length (members m e l g) * entries (s_hist m s e) l <=
    length (members m e l g) * base e l + length (members m e l g) * (every (epochs k) * most)); [|lia].
  rewrite <- Nat.mul_add_distr_l. apply Nat.mul_le_mono_l. assumption.
Qed.
End Epochs.
