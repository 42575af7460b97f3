(** Markers. A marker is an instruction that only retires: it stands behind the operation that holds a producer, in the loop
    that carries a dependency, on the engine of the producer. A wait for it is exact for the marker, like any other; here is
    what it says of the producer. [marker_stands_for]: where the marker has retired n times, the producer has as often as it
    runs in n iterations. [marker_asks_no_more]: a wait for it asks for no more than that the producer's engine is through
    with these iterations, all of which precede the consumer in program order. *)
From Coq Require Import Arith ZArith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program Machine Registers Owed Retirement Bisimulation Corollaries Words.

Section Marker.
Variable m : machine.
Notation P := (program_of m).
Variable keeps_trip : loop -> bool.
Hypothesis W : well_formed P.
Hypothesis AL : Allocatable P (deps m).
Hypothesis KT : forall l, tripped m l -> keeps_trip l = true.

(** The marker k stands in the loop S behind X, which holds the producer p. *)
Record marks (k p : instr) (S : loop) : Prop := {
  m_engine : engine_of P p = engine_of P k;
  m_stands : In (Instr p) (body P (engine_of P p) (loop_of P p));
  m_behind : exists pre X mid post B, body P (engine_of P k) S = pre ++ X :: mid ++ Instr k :: post /\
    In B (child X) /\ under P B (loop_of P p) }.
Variables (k p : instr) (S : loop).
Hypothesis MK : marks k p S.
Notation here := (engine_of P k).
Notation Q := (loop_of P p).
Notation issued done q := (done ++ map fst q).

Lemma marker_placed : In (Instr k) (body P here S) /\ loop_of P k = S.
Proof.
  destruct (m_behind _ _ _ MK) as (pre & X & mid & post & B & E & _).
  assert (I : In (Instr k) (body P here S)) by (rewrite E; apply in_or_app; right; right; apply in_or_app; right;
    left; reflexivity).
  split; [exact I | apply (wf_instr _ W _ _ _ I)].
Qed.
Lemma marker_over : exists B, In B (children (body P here S)) /\ B <> top /\ parent P B = S /\ under P B Q /\
  under P S Q /\ depth P S < depth P Q.
Proof.
  destruct (m_behind _ _ _ MK) as (pre & X & mid & post & B & E & HB & U).
  assert (I : In B (children (body P here S))) by (rewrite E; apply child_in; assumption).
  destruct (wf_child _ W _ _ _ I) as [BT BP]. exists B. assert (D := wf_depth _ W B BT). rewrite BP in D.
  assert (U' := under_parent m _ _ U BT). rewrite BP in U'. apply (under_depth m W) in U as L. repeat split; auto. lia.
Qed.
Lemma marker_other : p <> k.
Proof.
  intro E. destruct marker_over as (B & _ & _ & _ & _ & _ & D). destruct marker_placed as [_ L]. rewrite E, L in D. lia.
Qed.

Lemma count_app : forall a b i, count (a ++ b) i = count a i + count b i.
Proof. apply (count_occ_app Nat.eq_dec). Qed.

Section Counts.
Variables (fs : frames) (q : list (instr * bool)) (c : loop -> nat) (R : instr -> nat) (sema : semaphores) (done : list instr).
Hypothesis O : ordered m here fs q c R sema done.
Lemma counts_in_loop : forall i, count (runs m (loop_of P i) (issued done q)) i = count (issued done q) i.
Proof. intro i. unfold runs. apply count_filter. apply Nat.eqb_refl. Qed.
(** in front of the marker it has been issued in all iterations but this one *)
Lemma marker_ahead : forall rest, In (S, rest) fs -> In k (instrs rest) -> count (issued done q) k = c S - 1.
Proof.
  intros rest I K. destruct marker_placed as [IB L]. rewrite <- counts_in_loop, L.
  destruct (o_active _ _ _ _ _ _ _ _ O _ _ I) as (pre & E1 & E2). assert (ND := wf_instrs _ W here S).
  rewrite E2, count_app, count_rounds by (assumption || apply instrs_in; assumption).
  assert (Z : count pre k = 0).
  { apply count_occ_not_In. rewrite E1 in ND. intro A. clear - ND A K. induction pre as [|x pre IH]; [destruct A|].
    inversion ND; subst. destruct A as [->|A]; [apply H1, in_or_app; auto | auto]. }
  transitivity (c S - 1 + 0); [f_equal; exact Z | apply Nat.add_0_r].
Qed.
Lemma producer_through : ~ In Q (loops fs) -> count (issued done q) p = c Q.
Proof.
  intro N. rewrite <- counts_in_loop, (o_idle _ _ _ _ _ _ _ _ O _ N). apply count_rounds; [apply (wf_instrs _ W)|].
  apply instrs_in. rewrite <- (m_engine _ _ _ MK). apply (m_stands _ _ _ MK).
Qed.
End Counts.

(** ** The order in which an engine issues *)
Definition covered (H : hist) (w : list instr) : Prop := forall v z, w = v ++ z -> upto H S (count v k) Q <= count v p.

Lemma covered_more : forall H w i, covered H w -> (i = k -> upto H S (count w k + 1) Q <= count w p) -> covered H (w ++ [i]).
Proof.
  intros H w i C K v z E. destruct (app_cut _ _ _ _ _ E) as [(t & E1 & E2)|(t & E1 & E2)]; [|exact (C v t E1)].
  destruct t as [|a t]; [rewrite app_nil_r in E1; subst v; apply (C w []); rewrite app_nil_r; reflexivity|].
  destruct t; [|destruct t; discriminate]. inversion E2; subst. rewrite !count_app. simpl.
  assert (C0 := C w [] (eq_sym (app_nil_r _))).
  eapply Nat.le_trans; [|apply Nat.le_add_r]. destruct (Nat.eq_dec a k) as [->|N]; [exact (K eq_refl)|].
  rewrite Nat.add_0_r. exact C0.
Qed.
Definition in_order (s : spec m) (t : impl m) : Prop := exists done,
  ordered m here (conts m (s_shared m s) here) (in_flight m (s_shared m s) here) (entries (s_hist m s here))
    (s_retired m s) (i_sema m t) done /\
  covered (s_hist m s here) (issued done (in_flight m (s_shared m s) here)).

Lemma marker_issue : forall rest fs q H R sema done r, ordered m here ((S, Instr k :: rest) :: fs) q (entries H) R sema done ->
  counted m keeps_trip here ((S, Instr k :: rest) :: fs) H r ->
  upto H S (count (issued done q) k + 1) Q <= count (issued done q) p.
Proof.
  intros rest fs q H R sema done r O C. destruct marker_over as (B & _ & _ & _ & _ & UQ & D).
  rewrite (marker_ahead _ _ _ _ _ _ O _ (or_introl eq_refl)) by (left; reflexivity).
  assert (A := c_active _ _ _ _ _ _ C S (or_introl eq_refl)). replace (entries H S - 1 + 1) with (entries H S) by lia.
  rewrite (c_upto _ _ _ _ _ _ C _ _ UQ), (producer_through _ _ _ _ _ _ O); [reflexivity|].
  intros [I|I]; [simpl in I; rewrite I in D; lia|]. apply loops_in in I. destruct I as [rs I].
  assert (X := good_depth m W _ _ _ _ (c_good _ _ _ _ _ _ C) _ _ I). lia.
Qed.
(** an entry of the producer's loop is of an iteration whose marker is still to come *)
Lemma marker_enter : forall x s rest l fs q H R sema done r, ordered m here ((x, s :: rest) :: fs) q (entries H) R sema done ->
  counted m keeps_trip here ((x, s :: rest) :: fs) H r -> In l (child s) -> covered H (issued done q) ->
  covered (enter_hist (loops ((l, body P here l) :: (x, s :: rest) :: fs)) l H) (issued done q).
Proof.
  intros x s rest l fs q H R sema done r O C HC CV v z E.
  set (fs' := (l, body P here l) :: (x, s :: rest) :: fs). assert (G := enter_good _ _ _ _ _ _ _ _ _ _ C HC).
  assert (CP := CV v z E). enough (EQ : upto (enter_hist (loops fs') l H) S (count v k) Q = upto H S (count v k) Q) by
    (rewrite EQ; exact CP).
  apply upto_ext. intros n Hn. unfold enter_hist. destruct (Nat.eqb_spec Q l) as [El|]; [|simpl; lia].
  destruct (mem S (loops fs')) eqn:M; [|simpl; lia]. apply mem_in in M. simpl.
  destruct marker_over as (B & IB & BT & BP & BU & UQ & D).
  assert (NS : S <> l) by (intros ->; rewrite El in D; lia). rewrite (proj2 (Nat.eqb_neq S l)), Nat.add_0_r by assumption.
  destruct (Nat.eqb_spec n (entries H S)) as [En|]; [|lia]. exfalso.
  destruct M as [M|M]; [simpl in M; congruence|]. apply loops_in in M. destruct M as [rs M].
  destruct (good_inner m W _ _ G _ _ _ eq_refl _ _ M) as (y & s' & rs' & -> & YC & YT & YP & YU).
  destruct (m_behind _ _ _ MK) as (pre & X & mid & post & B' & EB & HB' & UB').
  assert (IB' : In B' (children (body P here S))) by (rewrite EB; apply child_in; assumption).
  destruct (wf_child _ W _ _ _ IB') as [BT' BP'].
  assert (EY : y = B').
  { rewrite <- El in YU. apply (under_same m W y B' Q YU UB'). rewrite (wf_depth _ W y YT), (wf_depth _ W B' BT'). congruence. }
  subst y. destruct (good_suffix m _ _ G _ _ (or_intror M)) as [pr Ep].
  assert (KR : In k (instrs (s' :: rs'))).
  { assert (ND := wf_children _ W here S). assert (ER : mid ++ Instr k :: post = rs').
    { eapply same_rest; [| exact HB' | exact YC |]; rewrite <- EB; [exact ND | exact Ep]. }
    rewrite <- ER. apply instrs_in. right. apply in_or_app. right. left. reflexivity. }
  assert (CA := marker_ahead _ _ _ _ _ _ O _ M KR). assert (A := c_active _ _ _ _ _ _ C S (in_map fst _ _ M)).
  assert (LE : count v k <= count (issued done q) k) by (rewrite E, count_app; apply Nat.le_add_r). lia.
Qed.

Lemma in_order_step : forall s t a sh', related m keeps_trip s t -> in_order s t -> shared_step m (s_shared m s) a sh' ->
  in_order (spec_update m a sh' s) (impl_update m keeps_trip a sh' t).
Proof.
  intros [sh H R] [sh2 sema r] a sh' [E IV] (done & O & CV) ST. simpl in *. subst sh2.
  assert (EN : forall e' i b, in_flight m sh e' = (i, true) :: b -> engine_of P i = e').
  { intros e' i b Eq. destruct (IV e') as [_ [dn O']]. apply (o_engine _ _ _ _ _ _ _ _ O'). rewrite Eq.
    apply in_or_app; right; left; reflexivity. }
  specialize (IV here). destruct IV as [C _].
  destruct ST; unfold in_order; simpl in *;
  (destruct (Nat.eq_dec here e) as [Ee|N]; [subst e; rewrite ?upd_same | rewrite ?upd_other by assumption]);
  try (rewrite H0 in C, O); try (exists done; split; assumption).
  - destruct (entered_child _ _ _ H1) as [HC NI]. exists done. split.
    + eapply ordered_counts; [|eapply ordered_enter; eauto; eapply enter_good; eauto]. intro l'. cbv beta.
      eapply enter_entries; eauto.
    + eapply marker_enter; eauto.
  - exists done. split; [eapply ordered_next; eauto; discriminate | assumption].
  - exists done. split; [|assumption]. eapply ordered_back; eauto.
    + assert (G := c_good _ _ _ _ _ _ C). inversion G; subst. intros i ->. contradiction.
    + apply (c_active _ _ _ _ _ _ C). left. reflexivity.
  - exists done. assert (O' := O). split; [eapply ordered_issue; eauto; exact (c_good _ _ _ _ _ _ C)|].
    rewrite map_app, app_assoc. apply covered_more; [assumption|]. simpl. intros ->.
    assert (x = S).
    { assert (G := c_good _ _ _ _ _ _ C). assert (IB : In (Instr k) (body P here x)).
      { eapply suffix_in; [eapply good_suffix; [exact G | left; reflexivity] | left; reflexivity]. }
      destruct (wf_instr _ W _ _ _ IB) as [L _]. destruct marker_placed as [_ L']. congruence. }
    subst x. eapply marker_issue; eauto.
  - rewrite H0 in O, CV. exists done. split; [eapply ordered_commit; eauto|].
    rewrite map_app in *. exact CV.
  - rewrite H0 in O, CV. exists (done ++ [i]). split; [eapply ordered_retire; eauto|].
    rewrite <- app_assoc. exact CV.
  - exists done. split; [|assumption]. apply ordered_elsewhere; [assumption|]. intro Ei. apply N. rewrite <- Ei.
    eapply EN. exact H0.
Qed.
Lemma in_order_run : forall d c w s, run (spec_step m) (spec_start m d c) w s -> exists t,
  related m keeps_trip s t /\ in_order s t.
Proof.
  intros d c w s RN. assert (S0 : exists t, related m keeps_trip (spec_start m d c) t /\ in_order (spec_start m d c) t).
  { exists (impl_start m d c). assert (RL := start_related m keeps_trip W d c). split; [assumption|].
    destruct (proj2 RL here) as [_ [done O]]. exists []. split.
    - constructor; simpl; try tauto.
      + intros l rest [E|[]]. injection E as <- <-. exists []. split; reflexivity.
      + intros l N. unfold entries, hist_start. destruct (Nat.eqb_spec l top) as [->|]; [exfalso; apply N; left; reflexivity|].
        rewrite andb_false_r. reflexivity.
    - intros v z Ev. destruct v; [simpl; lia | discriminate]. }
  revert RN S0. generalize (spec_start m d c). intros s0 RN. induction RN as [s|s a s1 w s2 ST RN IH]; [auto|].
  intros (t & RL & IO). apply IH. inversion ST as [s' a' sh' CS EN]; subst.
  exists (impl_update m keeps_trip a sh' t). split; [apply step_keeps; assumption | apply in_order_step; assumption].
Qed.

(** ** What a marker says *)
Theorem marker_stands_for : forall d c w s n, run (spec_step m) (spec_start m d c) w s -> n <= s_retired m s k ->
  upto (s_hist m s here) S n Q <= s_retired m s p.
Proof.
  intros d c w s n RN L. destruct (in_order_run _ _ _ _ RN) as (t & _ & done & O & CV).
  rewrite (o_retired _ _ _ _ _ _ _ _ O p) by apply (m_engine _ _ _ MK). rewrite (o_retired _ _ _ _ _ _ _ _ O k) in L by reflexivity.
  eapply Nat.le_trans; [apply upto_le; exact L | exact (CV _ _ eq_refl)].
Qed.
Theorem marker_asks_no_more : forall d c w s n, run (spec_step m) (spec_start m d c) w s -> in_flight m (s_shared m s) here = [] ->
  (n < entries (s_hist m s here) S \/ n = entries (s_hist m s here) S /\ ~ In S (loops (conts m (s_shared m s) here))) ->
  n <= s_retired m s k.
Proof.
  intros d c w s n RN F L. destruct (in_order_run _ _ _ _ RN) as (t & _ & done & O & _). destruct marker_placed as [IB LK].
  destruct (ordered_rounds m _ _ _ _ _ _ _ S O) as (a & pre & post & _ & EW & A & B).
  rewrite (o_retired _ _ _ _ _ _ _ _ O k) by reflexivity. rewrite F in *. simpl in EW. rewrite app_nil_r in EW.
  assert (CK : a <= count done k).
  { rewrite <- (count_filter (fun i => loop_of P i =? loop_of P k)) by apply Nat.eqb_refl. rewrite LK. unfold runs in EW.
    rewrite EW, count_app, count_rounds by (apply (wf_instrs _ W) || apply instrs_in; assumption). lia. }
  destruct (in_dec Nat.eq_dec S (loops (conts m (s_shared m s) here))) as [I|I];
  [rewrite (A I) in CK | destruct (B I) as [-> _]]; destruct L as [L|[L N]]; try lia; contradiction.
Qed.

(** A consumer that waits for the marker, [distance] iterations back of S, is not too early for the producer: not for a
    dependency at this distance, nor for one that asks for a part of that iteration. Engines agree on the iterations. *)
Theorem marker_safety : forall d0 c0 w s c x b s', run (spec_step m) (spec_start m d0 c0) w s ->
  spec_step m s (Issue (engine_of P c) c) s' -> In x (deps m c) -> producer x = k -> carrier x = S ->
  clamp x = None -> within x = true ->
  producer b = p -> carrier b = S -> distance b = distance x -> within b = true ->
  (forall n, upto (s_hist m s (engine_of P c)) S n Q <= upto (s_hist m s here) S n Q) ->
  satisfied m (s_hist m s (engine_of P c)) (s_retired m s) b.
Proof.
  intros d0 c0 w s c x b s' RN ST HX PX CX LX WX PB CB DB WB AG. set (H := s_hist m s (engine_of P c)) in *.
  assert (SX : satisfied m H (s_retired m s) x).
  { inversion ST as [s1 a1 sh' CS EN]; subst. specialize (EN _ _ eq_refl). rewrite Forall_forall in EN. auto. }
  destruct marker_placed as [IB LK]. destruct (in_order_run _ _ _ _ RN) as (t & RL & _).
  assert (EX : trip m H S <= distance x -> satisfied m H (s_retired m s) b).
  { intro T. left. split; [assumption|]. left. rewrite CB, DB. exact T. }
  destruct (le_lt_dec (trip m H S) (distance x)) as [T|T]; [auto|].
  destruct SX as [[_ [T'|(z & Z & _)]]|SX]; [rewrite CX in T'; lia | congruence|].
  assert (TE : trip m H S <= entries H S).
  { inversion ST as [s1 a1 sh' CS EN]; subst. destruct (issue_at _ _ _ _ _ CS) as (y & rest & fs & F).
    destruct (AL c x HX) as [(US & _ & _) _]. destruct RL as [_ IV]. destruct (IV (engine_of P c)) as [C _]. rewrite F in C.
    assert (IBc : In (Instr c) (body P (engine_of P c) y)).
    { eapply suffix_in; [eapply good_suffix; [exact (c_good _ _ _ _ _ _ C) | left; reflexivity] | left; reflexivity]. }
    destruct (wf_instr _ W _ _ _ IBc) as [<- _]. apply (trip_ran m W keeps_trip _ _ _ _ _ C). assumption. }
  right. unfold required in SX. rewrite LX, WX, PX, CX, LK in SX.
  assert (SELF : upto H S (entries H S - distance x) S = entries H S - distance x).
  { destruct RL as [_ IV]. destruct (IV (engine_of P c)) as [C _]. eapply upto_self; [exact C | fold H; lia]. }
  rewrite SELF in SX. assert (MS := marker_stands_for _ _ _ _ _ RN SX).
  rewrite PB. eapply Nat.le_trans; [|eapply Nat.le_trans; [apply AG | exact MS]].
  unfold required. rewrite PB, CB, DB, WB. destruct (clamp b) as [z|]; [|reflexivity].
  replace (entries H S - distance x) with (Datatypes.S (entries H S - (distance x + 1))) by lia. simpl. lia.
Qed.
End Marker.
