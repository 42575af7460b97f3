(** What is owed at an issue. [mask_exact] and [owed_exact]: the registers of an engine compute what condition (1) asks for,
    in each allocatable case. [earlier_exact]: one wait tells of a dependency that all loops around carry as well. *)
From Coq Require Import Arith ZArith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program Machine Registers.

Section Owed.
Variable m : machine.
Notation P := (program_of m).
Hypothesis W : well_formed P.
Variable keeps_trip : loop -> bool.
Notation under := (under P).  Notation body := (body P).  Notation parent := (parent P).
Notation counted := (counted m keeps_trip).

Lemma upto_self : forall e fs H r S n, counted e fs H r -> n <= entries H S -> upto H S n S = n.
Proof.
  induction n; intros; simpl; [reflexivity|]. rewrite IHn by (auto; lia).
  rewrite (c_once _ _ _ _ _ _ H0) by lia. lia.
Qed.
Lemma under_trans : forall A B C, under A B -> under B C -> under A C.
Proof. intros A B C UA UB. induction UB; [assumption | apply under_step; assumption]. Qed.

(** Where a consumer that comes first stands, the producer has not begun in this iteration. *)
Lemma not_begun : forall e i rest fs H r S Q pre X after B, counted e ((loop_of P i, Instr i :: rest) :: fs) H r ->
  engine_of P i = e -> under S (loop_of P i) -> B <> top -> parent B = S -> under B Q ->
  body e S = pre ++ X :: after -> In B (children after) -> (X = Instr i \/ exists C, In C (child X) /\ under C (loop_of P i)) ->
  H S (entries H S) Q = 0.
Proof.
  intros e i rest fs H r S Q pre X after B C <- US BT BP BU EB IB HX. assert (G := c_good _ _ _ _ _ _ C).
  assert (AS : In S (loops ((loop_of P i, Instr i :: rest) :: fs))) by (eapply good_under_in; eauto; reflexivity).
  apply loops_in in AS. destruct AS as [rs HS].
  destruct (good_suffix m _ _ G _ _ HS) as [p Ep]. rewrite EB in Ep.
  assert (NC := wf_children _ W (engine_of P i) S). assert (NI := wf_instrs _ W (engine_of P i) S). rewrite EB in NC, NI.
  assert (HD : exists s, rs = s :: after).
  { destruct HS as [HS|HS].
    - injection HS as ES <-. destruct HX as [->|(c & CX & CU)].
      + exists (Instr i). f_equal. symmetry. eapply same_rest_instr; eassumption.
      + exfalso. assert (D := child_depth m W (engine_of P i) S c). rewrite EB in D.
        apply (under_depth m W) in CU. rewrite ES, D in CU; [lia|]. apply child_in; assumption.
    - destruct (good_inner m W _ _ G _ _ _ eq_refl _ _ HS) as (y & s & t & -> & YC & YT & YP & YU).
      exists s. f_equal. destruct HX as [->|(c & CX & CU)].
      + exfalso. assert (HI : In (Instr i) (body (engine_of P i) S)).
        { rewrite EB. apply in_or_app; right; left; reflexivity. }
        apply (wf_instr _ W) in HI. apply (under_depth m W) in YU. destruct HI as [HI _].
        rewrite (wf_depth _ W y YT), YP, HI in YU. lia.
      + assert (Hc : In c (children (body (engine_of P i) S))) by (rewrite EB; apply child_in; assumption).
        assert (c = y).
        { eapply (under_same m W); eauto. rewrite (child_depth m W _ _ _ Hc), (wf_depth _ W y YT), YP. reflexivity. }
        subst c. symmetry. eapply same_rest; eassumption. }
  destruct HD as [s ->]. exact (c_ahead _ _ _ _ _ _ C _ _ HS B _ IB BU).
Qed.

(** Nor has it where it stands in the other branch. *)
Lemma not_in_branch : forall e i rest fs H r S Q pre a b after A B, counted e ((loop_of P i, Instr i :: rest) :: fs) H r ->
  body e S = pre ++ If a b :: after -> In A [a; b] -> In B [a; b] -> A <> B -> under A (loop_of P i) -> under B Q ->
  H S (entries H S) Q = 0.
Proof.
  intros e i rest fs H r S Q pre a b after A B C EB HA HB AB UA UB. assert (G := c_good _ _ _ _ _ _ C).
  assert (IA : In A (children (body e S))) by (rewrite EB; apply child_in; assumption).
  assert (IB : In B (children (body e S))) by (rewrite EB; apply child_in; assumption).
  destruct (wf_child _ W _ _ _ IA) as [AT AP]. assert (DA := child_depth m W _ _ _ IA). assert (DB := child_depth m W _ _ _ IB).
  assert (AS : In S (loops ((loop_of P i, Instr i :: rest) :: fs))).
  { eapply (good_under_in m W); [exact G | reflexivity|]. rewrite <- AP. apply (under_parent m); assumption. }
  apply loops_in in AS. destruct AS as [rs [HS|HS]].
  - injection HS as ES _. apply (under_depth m W) in UA. rewrite ES in UA. lia.
  - destruct (good_inner m W _ _ G _ _ _ eq_refl _ _ HS) as (y & s & t & -> & YC & YT & YP & YU).
    assert (y = A) by (eapply (under_same m W); eauto; rewrite DA, (wf_depth _ W y YT), YP; reflexivity). subst y.
    destruct (good_suffix m _ _ G _ _ (or_intror HS)) as [p Ep]. rewrite EB in Ep. assert (NC := wf_children _ W e S).
      rewrite EB in NC.
    assert (after = t) by exact (same_rest A (If a b) s pre after p t NC HA YC Ep). subst t.
    assert (E2 : (pre ++ [If a b]) ++ after = (p ++ [s]) ++ after) by (rewrite <- !app_assoc; exact Ep).
    apply app_inv_tail, app_inj_tail in E2. destruct E2 as [_ <-].
    apply (c_branch _ _ _ _ _ _ C S a b after (or_intror HS) B Q HB); [|assumption].
    intro AB'. assert (UB' := good_in_under m W _ _ G _ _ _ eq_refl _ AB'). apply AB.
    apply (under_same m W A B _ UA UB'). congruence.
Qed.

(** ** The masks and the counters *)
Section Issue.
Variables (i : instr) (rest : list stmt) (fs : frames) (H : hist) (r : regs) (d : dep).
Notation e := (engine_of P i).
Hypothesis C : counted e ((loop_of P i, Instr i :: rest) :: fs) H r.
Hypothesis US : under (carrier d) (loop_of P i).
Hypothesis AL : allocatable P i d.
Hypothesis KT : forall l, reads_trip m d l -> keeps_trip l = true.
Notation Q := (loop_of P (producer d)).

Lemma issue_active : forall S, under S (loop_of P i) -> In S (loops ((loop_of P i, Instr i :: rest) :: fs)).
Proof. intros. eapply (good_under_in m W); [apply (c_good _ _ _ _ _ _ C) | reflexivity | assumption]. Qed.
Lemma carrier_trip : 1 <= trip m H (carrier d) /\ 1 <= entries H (carrier d).
Proof. split; [apply (c_trip _ _ _ _ _ _ C) | apply (c_active _ _ _ _ _ _ C)]; apply issue_active, US. Qed.
Lemma carrier_over : under (carrier d) Q.
Proof.
  destruct AL as [PS _ _|? ? ? ? ?|pre X after B ? ? BT BP BU ? ? ? ? ?|pre a b after A B ? ? EB HA HB ? ? UB ? ?|? ?
    ? ?|z ? ? ? ? ? ?];
    try assumption.
  - rewrite PS. constructor.
  - rewrite <- BP. apply (under_parent m); assumption.
  - assert (IB : In B (children (body e (carrier d)))) by (rewrite EB; apply child_in; assumption).
    destruct (wf_child _ W _ _ _ IB) as [BT BP]. rewrite <- BP. apply (under_parent m); assumption.
Qed.
Lemma trip_ran : forall l, under l (loop_of P i) -> trip m H l <= entries H l.
Proof.
  intros l U. unfold trip. destruct (Nat.eq_dec l top) as [->|NT].
  - rewrite (wf_parent_top _ W). unfold entries at 1. rewrite (c_top _ _ _ _ _ _ C). unfold entries. lia.
  - rewrite <- (c_upto _ _ _ _ _ _ C (parent l) l) by (apply under_step; [assumption | constructor]).
    assert (A := c_active _ _ _ _ _ _ C _ (issue_active _ (under_trans _ _ _ (under_step P _ _ NT (under_refl P _)) U))).
    destruct (entries H (parent l)); [lia|]. simpl. lia.
Qed.
Lemma clamp_trip : forall z, clamp d = Some z -> value (trips r) Q = trip m H Q.
Proof. intros z E. apply (r_trip _ _ _ _ _ _ C), KT. right. split; [reflexivity | congruence]. Qed.

Theorem mask_exact : mask m r d = 0 /\ exempt m H d \/ mask m r d = 1 /\ ~ exempt m H d.
Proof.
  destruct carrier_trip as [T1 _]. unfold mask, exempt.
  assert (F : (if masked d then isGT (value (trips r) (carrier d)) (distance d) else 1) =
    if within d && (trip m H (carrier d) <=? distance d) then 0 else 1).
  { destruct (masked d) eqn:MK.
    - rewrite (r_trip _ _ _ _ _ _ C) by (apply KT; left; auto). apply andb_true_iff in MK. destruct MK as [-> _].
      unfold isGT. simpl.
      destruct (Nat.ltb_spec (distance d) (trip m H (carrier d))), (Nat.leb_spec (trip m H (carrier d)) (distance d)); lia.
    - apply andb_false_iff in MK. destruct MK as [-> | MK]; [reflexivity|]. apply Nat.ltb_ge in MK.
      rewrite (proj2 (Nat.leb_gt _ _)) by lia. rewrite andb_false_r. reflexivity. }
  rewrite F. destruct (clamp d) as [z|] eqn:EZ.
  - assert (WI : within d = true) by (destruct AL; congruence). rewrite WI, (clamp_trip z EZ). simpl. unfold isGT.
    destruct (Nat.leb_spec (trip m H (carrier d)) (distance d)) as [L|L]; [left; auto|].
    destruct (Nat.ltb_spec 0 (behind (Z.of_nat (trip m H Q)) z)) as [L'|L'].
    + right. split; [reflexivity|]. intros [_ [L2|(z' & E & B)]]; [lia|]. assert (z' = z) by congruence. subst z'. lia.
    + left. split; [reflexivity|]. split; [reflexivity|]. right. exists z. split; [reflexivity | lia].
  - rewrite Nat.mul_1_r. destruct (within d); simpl.
    + destruct (Nat.leb_spec (trip m H (carrier d)) (distance d)) as [L|L]; [left; auto|]. right. split; [reflexivity|].
      intros [_ [L2|(z & E & _)]]; [lia | discriminate].
    + right. split; [reflexivity|]. intros [E _]. discriminate.
Qed.

Lemma back_by_exact : back_by r d = if within d then distance d else Nat.min (distance d) (trip m H (carrier d)).
Proof.
  destruct carrier_trip as [T1 _]. unfold back_by. destruct (within d) eqn:WI; [reflexivity|]. simpl.
  destruct (Nat.leb_spec (distance d) 1) as [L|L]; [lia|].
  rewrite (r_trip _ _ _ _ _ _ C); [reflexivity|]. apply KT. left. auto.
Qed.

Theorem owed_exact : ~ exempt m H d -> owed m r d = required m H d.
Proof.
  destruct carrier_trip as [T1 E1]. intro NE. unfold owed, required.
  destruct AL as [PS Hh Hc|PS UP K0 Hh Hc|pre X after B PS K1 BT BP BU EB IB HX Hh Hc
    |pre a b after A B PS K1 EB HA HB AB UA UB Hh Hc|UP K Hh Hc|z Hc WI K PS UP UQ]; rewrite Hc, ?Hh.
  - rewrite PS, Nat.eqb_refl, (r_mono _ _ _ _ _ _ C), back_by_exact. symmetry. eapply upto_self; [eassumption | lia].
  - rewrite (proj2 (Nat.eqb_neq _ _) PS), (r_mono _ _ _ _ _ _ C), K0. symmetry.
    assert (Z : entries H (carrier d) - (if within d then 0 else Nat.min 0 (trip m H (carrier d))) = entries H (carrier d))
      by (destruct (within d); simpl; lia).
    rewrite Z. apply (c_upto _ _ _ _ _ _ C). assumption.
  - rewrite (proj2 (Nat.eqb_neq _ _) PS), (r_mono _ _ _ _ _ _ C), K1.
    assert (UP := under_parent m Q B BU BT). rewrite BP in UP. rewrite <- (c_upto _ _ _ _ _ _ C _ _ UP).
    assert (Z := not_begun _ _ _ _ _ _ _ _ _ _ _ _ C eq_refl US BT BP BU EB IB HX).
    assert (N1 : (if within d then 1 else Nat.min 1 (trip m H (carrier d))) = 1) by (destruct (within d); lia). rewrite N1.
    destruct (entries H (carrier d)) as [|n]; simpl; [reflexivity|]. rewrite Nat.sub_0_r. lia.
  - rewrite (proj2 (Nat.eqb_neq _ _) PS), (r_mono _ _ _ _ _ _ C), K1. assert (UP := carrier_over).
    rewrite <- (c_upto _ _ _ _ _ _ C _ _ UP). assert (Z := not_in_branch _ _ _ _ _ _ _ _ _ _ _ _ _ _ C EB HA HB AB UA UB).
    assert (N1 : (if within d then 1 else Nat.min 1 (trip m H (carrier d))) = 1) by (destruct (within d); lia). rewrite N1.
    destruct (entries H (carrier d)) as [|n]; simpl; [reflexivity|]. rewrite Nat.sub_0_r. lia.
  - destruct (within d); [apply (r_past _ _ _ _ _ _ C) | apply (r_started _ _ _ _ _ _ C)]; assumption.
  - rewrite (clamp_trip z Hc), !(r_started _ _ _ _ _ _ C) by (assumption || lia).
    assert (T2 : distance d < trip m H (carrier d)).
    { destruct (lt_dec (distance d) (trip m H (carrier d))); [assumption|]. exfalso. apply NE. split; [assumption | left; lia]. }
    assert (T3 := trip_ran _ US).
    rewrite (Nat.min_l (distance d + 1)), (Nat.min_l (distance d) (trip m H (carrier d))) by lia. f_equal. f_equal.
    replace (entries H (carrier d) - distance d) with (S (entries H (carrier d) - (distance d + 1))) by lia. simpl. lia.
Qed.

(** whatever the masks say, no more is asked for than ran *)
Theorem owed_ran : owed m r d <= entries H Q.
Proof.
  assert (UP := carrier_over). assert (UL := c_upto _ _ _ _ _ _ C _ _ UP).
  assert (LE : forall n, n <= entries H (carrier d) -> upto H (carrier d) n Q <= entries H Q)
    by (intros n Hn; rewrite <- UL; apply upto_le; assumption).
  unfold owed. destruct (clamp d) eqn:EZ.
  - assert (K : 1 <= distance d) by (destruct AL; congruence). rewrite !(r_started _ _ _ _ _ _ C) by (assumption || lia).
    assert (L1 := LE (entries H (carrier d) - Nat.min (distance d) (trip m H (carrier d))) ltac:(lia)).
    assert (L2 := LE (entries H (carrier d) - Nat.min (distance d + 1) (trip m H (carrier d))) ltac:(lia)). lia.
  - destruct (history d) eqn:Hh.
    + assert (K : 1 <= distance d) by (destruct AL; congruence).
      destruct (within d); [rewrite (r_past _ _ _ _ _ _ C) | rewrite (r_started _ _ _ _ _ _ C)]; try assumption; apply LE; lia.
    + rewrite !(r_mono _ _ _ _ _ _ C). destruct (Nat.eqb_spec Q (carrier d)) as [E|]; [rewrite E; lia | lia].
Qed.
End Issue.

(** ** A dependency that all loops around carry *)
Section Earlier.
Variables (e : engine) (fs : frames) (H : hist) (r : regs) (Q : loop).
Hypothesis C : counted e fs H r.

Lemma active_parent : forall S, S <> top -> In S (loops fs) -> In (parent S) (loops fs).
Proof.
  intros S NT A. destruct fs as [|[x rest] t] eqn:E; [destruct A|]. assert (G := c_good _ _ _ _ _ _ C).
  eapply (good_under_in m W); [exact G | reflexivity|]. apply (under_parent m); [|assumption].
  eapply (good_in_under m W); [exact G | reflexivity | assumption].
Qed.
(** what ran before this run of S is what ran before this iteration of the loop around *)
Lemma before_run : forall S, S <> top -> under S Q -> In S (loops fs) ->
  upto H S (entries H S - trip m H S) Q = upto H (parent S) (entries H (parent S) - 1) Q.
Proof.
  intros S NT U A. assert (A1 := c_active _ _ _ _ _ _ C _ (active_parent S NT A)).
  rewrite <- (c_nest _ _ _ _ _ _ C S Q (entries H (parent S) - 1)) by (auto; lia). f_equal.
  rewrite <- (c_upto _ _ _ _ _ _ C (parent S) S) at 1 by (apply under_step; [assumption | constructor]). unfold trip.
  destruct (entries H (parent S)) as [|n]; [lia|]. simpl. rewrite Nat.sub_0_r. lia.
Qed.
Lemma around_ran_before : forall S S', under S' S -> S' <> S -> under S Q -> In S (loops fs) ->
  upto H S' (entries H S' - 1) Q <= upto H S (entries H S - trip m H S) Q.
Proof.
  intros S S' U. induction U as [|S NT U IH]; intros N UQ A; [congruence|].
  rewrite before_run by assumption. assert (AP := active_parent S NT A). assert (T := c_trip _ _ _ _ _ _ C _ AP).
  destruct (Nat.eq_dec S' (parent S)) as [->|N']; [lia|].
  eapply Nat.le_trans; [apply IH; [assumption | apply (under_parent m); assumption | assumption]|]. apply upto_le. lia.
Qed.
Definition carried (p : instr) (S : loop) (k : nat) (w : bool) : dep := Build_dep p S k w false None.
Lemma before_satisfied : forall R p n S, depth P S <= n -> loop_of P p = Q -> under S Q -> In S (loops fs) ->
  (forall S', under S' S -> S' <> S -> satisfied m H R (carried p S' 1 true)) ->
  upto H S (entries H S - trip m H S) Q <= R p.
Proof.
  assert (AT : forall a, upto H top (entries H top - trip m H top) Q <= a).
  { intro a. unfold trip. rewrite (wf_parent_top _ W). unfold entries at 2. rewrite (c_top _ _ _ _ _ _ C).
    unfold entries. rewrite (c_top _ _ _ _ _ _ C). simpl. lia. }
  induction n as [|n IH]; intros S D EQ U A F; (destruct (Nat.eq_dec S top) as [->|NT]; [apply AT|]).
  - rewrite (wf_depth _ W S NT) in D. lia.
  - rewrite before_run by assumption.
    assert (UP : under (parent S) S) by (apply under_step; [assumption | constructor]).
    assert (NS : parent S <> S) by (intro E; assert (X := wf_depth _ W S NT); rewrite E in X; lia).
    assert (AP := active_parent S NT A). assert (T := c_trip _ _ _ _ _ _ C _ AP).
    destruct (F (parent S) UP NS) as [[_ [L|(z & E & _)]]|L]; simpl in *; [|discriminate|].
    + replace (entries H (parent S) - 1) with (entries H (parent S) - trip m H (parent S)) by lia.
      apply IH; auto; [rewrite (wf_depth _ W S NT) in D; lia | apply (under_parent m); assumption|].
      intros S' U' N'. apply F; [eapply under_trans; eauto|]. intros ->.
      apply (under_depth m W) in U'. rewrite (wf_depth _ W S NT) in U'. lia.
    + unfold required in L. simpl in L. rewrite EQ in L. exact L.
Qed.

Theorem earlier_exact : forall R p S k, loop_of P p = Q -> under S Q -> In S (loops fs) ->
  (satisfied m H R (carried p S k false) <->
   satisfied m H R (carried p S k true) /\ forall S', under S' S -> S' <> S -> satisfied m H R (carried p S' 1 true)).
Proof.
  intros R p S k EQ U A. unfold satisfied, exempt, required. simpl. rewrite EQ.
  set (n := entries H S). set (t := trip m H S). split.
  - intros [[E _]|L]; [discriminate|]. split.
    + destruct (le_lt_dec t k) as [T|T]; [left; auto|]. right. rewrite Nat.min_l in L by lia. exact L.
    + intros S' U' N'. right. assert (X := around_ran_before S S' U' N' U A). fold n t in X.
      eapply Nat.le_trans; [exact X|]. eapply Nat.le_trans; [|exact L]. apply upto_le. lia.
  - intros [S1 F]. right. destruct (le_lt_dec t k) as [T|T].
    + rewrite Nat.min_r by lia. unfold n, t. apply (before_satisfied R p (depth P S)); auto.
      intros S' U' N'. unfold satisfied, exempt, required. simpl. rewrite EQ. apply F; assumption.
    + rewrite Nat.min_l by lia. destruct S1 as [[_ [L|(z & E & _)]]|L]; [lia | discriminate | exact L].
Qed.
End Earlier.
End Owed.
