(** What the registers of an engine hold, in terms of the history that the specification keeps ([counted]), and that every
    step keeps it so. All here is local to one engine. *)
From Coq Require Import Arith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program Machine.

Section Local.
Variable m : machine.
Notation P := (program_of m).
Hypothesis W : well_formed P.
Notation under := (under P).  Notation body := (body P).  Notation parent := (parent P).  Notation depth := (depth P).

(** ** The tree of loops *)
Lemma under_depth : forall A B, under A B -> depth A <= depth B.
Proof. induction 1; [lia|]. rewrite (wf_depth _ W B) by assumption. lia. Qed.
Lemma under_eq : forall A B, under A B -> depth A = depth B -> A = B.
Proof.
  destruct 1; intro E; [reflexivity|]. apply under_depth in H0. rewrite (wf_depth _ W B H) in E. lia.
Qed.
Lemma under_comparable : forall A Q, under A Q -> forall B, under B Q -> under A B \/ under B A.
Proof.
  induction 1 as [|Q Hn HA IH]; intros B HB; [right; exact HB|].
  inversion HB; subst; [left; econstructor; eassumption | apply IH; assumption].
Qed.
Lemma under_same : forall A B Q, under A Q -> under B Q -> depth A = depth B -> A = B.
Proof. intros. destruct (under_comparable A Q H B H0) as [U|U]; [|symmetry]; apply under_eq; auto. Qed.
Lemma under_parent : forall A B, under B A -> B <> top -> under (parent B) A.
Proof. induction 1; intros; [apply under_step; [assumption | constructor] | apply under_step; auto]. Qed.
Lemma child_depth : forall e l c, In c (children (body e l)) -> depth c = S (depth l).
Proof. intros. destruct (wf_child _ W _ _ _ H) as [A <-]. apply wf_depth; assumption. Qed.

(** ** Continuations *)
Definition suffix {A} (s l : list A) := exists p, l = p ++ s.
Lemma suffix_in : forall A (x : A) s l, suffix s l -> In x s -> In x l.
Proof. intros A x s l [p ->] H. apply in_or_app; auto. Qed.
Lemma suffix_tail : forall A (x : A) s l, suffix (x :: s) l -> suffix s l.
Proof. intros A x s l [p ->]. exists (p ++ [x]). rewrite <- app_assoc. reflexivity. Qed.
Lemma suffix_children : forall c s l, suffix s l -> In c (children s) -> In c (children l).
Proof. intros c s l [p ->] H. unfold children. rewrite flat_map_app. apply in_or_app; auto. Qed.
Lemma suffix_after : forall s rest l, suffix (s :: rest) l -> suffix (after s rest) l.
Proof. intros s rest l H. destruct s; simpl; eauto using suffix_tail. Qed.

Inductive good (e : engine) : frames -> Prop :=
| good_top : forall rest, suffix rest (body e top) -> good e [(top, rest)]
| good_push : forall x rest y s rest' fs, suffix rest (body e x) -> In x (child s) ->
    good e ((y, s :: rest') :: fs) -> good e ((x, rest) :: (y, s :: rest') :: fs).

Lemma good_suffix : forall e fs, good e fs -> forall S rest, In (S, rest) fs -> suffix rest (body e S).
Proof. induction 1; intros S r [E|E]; try (inversion E; subst; assumption); try contradiction; eauto. Qed.
Lemma good_parent : forall e x rest y s rest' fs, good e ((x, rest) :: (y, s :: rest') :: fs) ->
  x <> top /\ parent x = y.
Proof.
  intros. inversion H; subst. eapply (wf_child _ W e). eapply suffix_children;
  [eapply good_suffix; [eassumption | left; reflexivity] | apply head_child; assumption].
Qed.
Lemma good_in_under : forall e fs, good e fs -> forall x rest t, fs = (x, rest) :: t ->
  forall S, In S (loops fs) -> under S x.
Proof.
  induction 1; intros x0 r0 t E S HS; inversion E; subst; simpl in HS.
  - destruct HS as [<-|[]]. constructor.
  - destruct HS as [<-|HS]; [constructor|].
    destruct (good_parent e x0 r0 y s rest' fs ltac:(econstructor; eassumption)) as [Q1 Q2].
    apply under_step; [assumption|]. rewrite Q2. eapply IHgood; [reflexivity | exact HS].
Qed.
Lemma good_under_in : forall e fs, good e fs -> forall x rest t, fs = (x, rest) :: t ->
  forall S, under S x -> In S (loops fs).
Proof.
  induction 1; intros x0 r0 t E S HS; inversion E; subst; simpl.
  - inversion HS; subst; auto; congruence.
  - inversion HS; subst; auto. right.
    destruct (good_parent e x0 r0 y s rest' fs ltac:(econstructor; eassumption)) as [Q1 Q2].
    rewrite Q2 in H3. apply (IHgood _ _ _ eq_refl _ H3).
Qed.
Lemma good_top_in : forall e fs, good e fs -> In top (loops fs).
Proof. induction 1; simpl; auto. Qed.
(** a frame further out stands at the statement that the next one entered *)
Lemma good_inner : forall e fs, good e fs -> forall x rest t, fs = (x, rest) :: t ->
  forall S rs, In (S, rs) t -> exists y s rs', rs = s :: rs' /\ In y (child s) /\ y <> top /\ parent y = S /\ under y x.
Proof.
  induction 1; intros x0 r0 t E S rs HS; inversion E; subst; [destruct HS|].
  destruct (good_parent e x0 r0 y s rest' fs ltac:(econstructor; eassumption)) as [Q1 Q2].
  destruct HS as [HS|HS].
  - inversion HS; subst. exists x0, s, rest'. repeat split; auto. constructor.
  - destruct (IHgood _ _ _ eq_refl _ _ HS) as (y' & s' & rs' & -> & ? & ? & ? & ?).
    exists y', s', rs'; repeat split; auto. apply under_step; [assumption|]. congruence.
Qed.
Lemma good_depth : forall e x rest t, good e ((x, rest) :: t) -> forall S rs, In (S, rs) t -> depth S < depth x.
Proof.
  intros. destruct (good_inner _ _ H _ _ _ eq_refl _ _ H0) as (y & s & rs' & _ & _ & YT & YP & YU).
  apply under_depth in YU. rewrite (wf_depth _ W y YT), YP in YU. lia.
Qed.
Lemma loops_in : forall l fs, In l (loops fs) -> exists rs, In (l, rs) fs.
Proof. intros l fs H. apply in_map_iff in H. destruct H as [[l' rs] [E H]]. simpl in E. subst. eauto. Qed.

(** ** Counters and history *)
Variable keeps_trip : loop -> bool.

Record counted (e : engine) (fs : frames) (H : hist) (r : regs) : Prop := {
  c_good : good e fs;
  c_top : H top 1 top = 1;
  c_fresh : forall S n Q, entries H S < n -> H S n Q = 0;
  c_upto : forall S Q, under S Q -> upto H S (entries H S) Q = entries H Q;
  c_once : forall S n, 1 <= n <= entries H S -> H S n S = 1;
  c_active : forall S, In S (loops fs) -> 1 <= entries H S;
  c_trip : forall S, In S (loops fs) -> 1 <= trip m H S;
  c_ahead : forall S rest, In (S, rest) fs -> forall B Q, In B (children (tl rest)) -> under B Q ->
    H S (entries H S) Q = 0;
  (** of the branches of a conditional at hand, one that is not entered has not run in this iteration *)
  c_branch : forall S a b rest, In (S, If a b :: rest) fs -> forall B Q, In B [a; b] -> ~ In B (loops fs) -> under B Q ->
    H S (entries H S) Q = 0;
  (** what ran in the runs of S in the first n iterations of the loop around it is what ran in these iterations *)
  c_nest : forall S Q n, S <> top -> under S Q -> n <= entries H (parent S) ->
    upto H S (upto H (parent S) n S) Q = upto H (parent S) n Q;
  r_mono : forall l, value (mono r) l = entries H l;
  r_trip : forall l, keeps_trip l = true -> value (trips r) l = trip m H l;
  r_past : forall S k Q, under S Q -> 1 <= k -> past r S k Q = upto H S (entries H S - k) Q;
  r_started : forall S k Q, under S Q -> 1 <= k ->
    started r S k Q = upto H S (entries H S - Nat.min k (trip m H S)) Q }.

(** moves that enter nothing *)
Lemma counted_fewer : forall e fs fs' H r, counted e fs H r -> good e fs' ->
  (forall S, In S (loops fs') -> In S (loops fs)) ->
  (forall S rest B, In (S, rest) fs' -> In B (children (tl rest)) ->
    exists rest', In (S, rest') fs /\ In B (children (tl rest'))) ->
  (forall S a b rest B, In (S, If a b :: rest) fs' -> In B [a; b] -> ~ In B (loops fs') ->
    (exists rest', In (S, rest') fs /\ In B (children (tl rest'))) \/ In (S, If a b :: rest) fs /\ ~ In B (loops fs)) ->
  counted e fs' H r.
Proof.
  intros e fs fs' H r I G A B D. destruct I. constructor; auto.
  - intros S rest HS Bl Q HB U. destruct (B _ _ _ HS HB) as (r' & H1 & H2). eauto.
  - intros S a b rest HS Bl Q HB HN U. destruct (D _ _ _ _ _ HS HB HN) as [(r' & H1 & H2)|[H1 H2]]; eauto.
Qed.
Lemma children_tail : forall B rest, In B (children (tl rest)) -> In B (children rest).
Proof. intros B [|s rest] H; [exact H | simpl; apply in_or_app; auto]. Qed.
Lemma good_next : forall e x s rest fs, good e ((x, s :: rest) :: fs) -> good e ((x, rest) :: fs).
Proof. intros. inversion H; subst; constructor; eauto using suffix_tail. Qed.
Lemma counted_next : forall e x s rest fs H r, counted e ((x, s :: rest) :: fs) H r -> counted e ((x, rest) :: fs) H r.
Proof.
  intros. eapply counted_fewer; eauto using good_next, c_good.
  - intros S r' B [E|E] HB.
    + inversion E; subst. exists (s :: r'). split; [left; auto | apply children_tail; assumption].
    + exists r'. split; [right|]; auto.
  - intros S a b r' B [E|E] HB HN; [left | right; split; [right|]; assumption].
    inversion E; subst. exists (s :: If a b :: r'). split; [left; reflexivity|].
    apply (in_or_app [a; b] (children r')). left. assumption.
Qed.
Lemma counted_back : forall e l y s rest fs H r, counted e ((l, []) :: (y, s :: rest) :: fs) H r ->
  counted e ((y, after s rest) :: fs) H r.
Proof.
  intros. assert (G := c_good _ _ _ _ H0). destruct (good_parent _ _ _ _ _ _ _ G) as [LT LP]. inversion G; subst.
  assert (G1 : good e ((parent l, after s rest) :: fs)) by (destruct s; simpl; eauto using good_next).
  eapply counted_fewer; [exact H0 | exact G1 | simpl; tauto | |].
  - intros S r' B [E|E] HB; [|exists r'; split; [right; right|]; assumption]. injection E as <- <-.
    exists (s :: rest). split; [right; left; reflexivity|]. destruct s; simpl in *; try assumption; apply children_tail; assumption.
  - intros S a b r' B [E|E] HB HN.
    + left. injection E as <- E. exists (s :: rest). split; [right; left; reflexivity|].
      destruct s; simpl in E |- *; try discriminate; subst rest; apply (in_or_app [a; b] (children r')); left; assumption.
    + right. split; [right; right; assumption|]. intros [A|A]; [|contradiction]. simpl in A. subst B.
      assert (HC : In l (children (body e S))).
      { eapply suffix_children; [eapply good_suffix; [exact G1 | right; exact E]|].
        apply (in_or_app [a; b] (children r')). left. assumption. }
      destruct (wf_child _ W _ _ _ HC) as [_ PS]. assert (D := good_depth _ _ _ _ G1 _ _ E). rewrite PS in D. lia.
Qed.

Section Entering.
Variables (e : engine) (x l : loop) (s : stmt) (rest : list stmt) (fs : frames) (H : hist) (r : regs).
Hypothesis I0 : counted e ((x, s :: rest) :: fs) H r.
Hypothesis HC : In l (child s).
Let fs' := (l, body e l) :: (x, s :: rest) :: fs.
Let H' := enter_hist (loops fs') l H.

Lemma enter_good : good e fs'.
Proof. constructor; [exists []; reflexivity | assumption | apply (c_good _ _ _ _ I0)]. Qed.
Lemma enter_parent : l <> top /\ parent l = x.
Proof. eapply good_parent. apply enter_good. Qed.
Lemma enter_neq : l <> x.
Proof.
  destruct enter_parent as [A B]. intro E. assert (D := wf_depth _ W l A). rewrite B, <- E in D. lia.
Qed.
Lemma mem_in : forall S A, mem S A = true <-> In S A.
Proof.
  intros. unfold mem. rewrite existsb_exists. split.
  - intros (y & Hy & E). apply Nat.eqb_eq in E. subst; auto.
  - intro. exists S. rewrite Nat.eqb_refl; auto.
Qed.
Lemma enter_at : forall S n Q, In S (loops fs') -> H' S n Q = H S n Q +
  (if (Q =? l) && (n =? entries H S + (if S =? l then 1 else 0)) then 1 else 0).
Proof.
  intros. unfold H', enter_hist. rewrite (proj2 (mem_in S (loops fs'))) by assumption.
  rewrite andb_true_r. reflexivity.
Qed.
Lemma enter_other : forall S n Q, Q <> l -> H' S n Q = H S n Q.
Proof. intros. unfold H', enter_hist. rewrite (proj2 (Nat.eqb_neq Q l)) by assumption. simpl. lia. Qed.
Lemma enter_before : forall S n Q, n <> entries H S + (if S =? l then 1 else 0) -> H' S n Q = H S n Q.
Proof. intros. unfold H', enter_hist. rewrite (proj2 (Nat.eqb_neq n _) H0), andb_false_r. lia. Qed.
Lemma enter_entries : forall Q, entries H' Q = entries H Q + (if Q =? l then 1 else 0).
Proof.
  intro Q. unfold entries at 1. rewrite enter_at by (apply (good_top_in e), enter_good).
  destruct enter_parent as [A _]. rewrite (proj2 (Nat.eqb_neq top l)) by congruence.
  unfold entries at 1. rewrite (c_top _ _ _ _ I0). simpl. rewrite andb_true_r. reflexivity.
Qed.
Lemma enter_active : forall S, In S (loops fs') <-> under S l.
Proof. intro; split; intro; [eapply good_in_under | eapply good_under_in]; eauto using enter_good; reflexivity. Qed.
Lemma upto_ext : forall G G' S Q n, (forall i, 1 <= i <= n -> G' S i Q = G S i Q) -> upto G' S n Q = upto G S n Q.
Proof. induction n; intros; simpl; [reflexivity|]. rewrite IHn, H0 by (intros; try apply H0; lia). reflexivity. Qed.
(** whole iterations before the current one do not change *)
Lemma upto_before : forall S Q n, n < entries H S + (if S =? l then 1 else 0) -> upto H' S n Q = upto H S n Q.
Proof. intros. apply upto_ext. intros. apply enter_before. lia. Qed.

Lemma enter_upto : forall S Q, under S Q -> upto H' S (entries H' S) Q = entries H' Q.
Proof.
  intros S Q U. rewrite !enter_entries. destruct (Nat.eqb_spec Q l) as [->|N].
  - assert (A := proj2 (enter_active S) U).
    destruct (Nat.eqb_spec S l) as [->|NS].
    + rewrite Nat.add_1_r. simpl. rewrite upto_before by (rewrite Nat.eqb_refl; lia).
      rewrite (c_upto _ _ _ _ I0) by constructor. rewrite enter_at by assumption.
      rewrite (c_fresh _ _ _ _ I0) by lia. rewrite Nat.eqb_refl.
      replace (S (entries H l) =? entries H l + 1) with true by (symmetry; apply Nat.eqb_eq; lia). simpl. lia.
    + assert (HP : 1 <= entries H S) by (apply (c_active _ _ _ _ I0); simpl in A |- *; intuition congruence).
      rewrite Nat.add_0_r. destruct (entries H S) as [|n] eqn:En; [lia|]. simpl.
      rewrite upto_before by (rewrite En, (proj2 (Nat.eqb_neq S l) NS); lia).
      rewrite enter_at by assumption.
      rewrite Nat.eqb_refl, (proj2 (Nat.eqb_neq S l) NS), En, Nat.add_0_r, Nat.eqb_refl. simpl.
      assert (X := c_upto _ _ _ _ I0 S l U). rewrite En in X. simpl in X. lia.
  - rewrite Nat.add_0_r. rewrite (upto_ext H H' S Q) by (intros; apply enter_other; assumption).
    destruct (Nat.eqb_spec S l) as [->|NS].
    + rewrite Nat.add_1_r. simpl. rewrite (c_upto _ _ _ _ I0) by assumption.
      rewrite (c_fresh _ _ _ _ I0) by lia. lia.
    + rewrite Nat.add_0_r. apply (c_upto _ _ _ _ I0); assumption.
Qed.
Lemma enter_trip : forall c, trip m H' c =
  if c =? l then trip m H l + 1 else if c =? top then trip m H c else if parent c =? l then 0 else trip m H c.
Proof.
  destruct enter_parent as [Lt Px]. assert (NX := enter_neq).
  intro c. unfold trip. rewrite enter_entries. destruct (Nat.eqb_spec c l) as [->|N].
  - rewrite Px, (proj2 (Nat.eqb_neq x l)), Nat.add_0_r by congruence.
    rewrite enter_at by (right; left; reflexivity).
    rewrite Nat.eqb_refl, (proj2 (Nat.eqb_neq x l)), Nat.add_0_r, Nat.eqb_refl by congruence. reflexivity.
  - rewrite enter_other by assumption. destruct (Nat.eqb_spec c top) as [->|NT].
    + rewrite (wf_parent_top _ W), (proj2 (Nat.eqb_neq top l)), Nat.add_0_r by congruence. reflexivity.
    + destruct (Nat.eqb_spec (parent c) l) as [->|E]; [apply (c_fresh _ _ _ _ I0); lia|].
      rewrite Nat.add_0_r. reflexivity.
Qed.

Lemma enter_inactive : forall S n Q, ~ In S (loops fs') -> H' S n Q = H S n Q.
Proof.
  intros. unfold H', enter_hist. destruct (mem S (loops fs')) eqn:M; [apply mem_in in M; contradiction|].
  rewrite andb_false_r. simpl. lia.
Qed.
Lemma upto_le : forall G S Q n n', n <= n' -> upto G S n Q <= upto G S n' Q.
Proof. induction 1; simpl; lia. Qed.
Lemma enter_nest : forall S Q n, S <> top -> under S Q -> n <= entries H' (parent S) ->
  upto H' S (upto H' (parent S) n S) Q = upto H' (parent S) n Q.
Proof.
  intros S Q n ST U Hn. assert (UP : under (parent S) S) by (apply under_step; [assumption | constructor]).
  destruct (Nat.eq_dec n (entries H' (parent S))) as [->|N].
  - rewrite (enter_upto (parent S) S UP), (enter_upto S Q U). symmetry. apply enter_upto, (under_parent Q S U ST).
  - rewrite enter_entries in Hn, N. rewrite !(upto_before (parent S)) by lia.
    assert (LE : upto H (parent S) n S <= entries H S)
      by (rewrite <- (c_upto _ _ _ _ I0 _ _ UP); apply upto_le; destruct (parent S =? l); lia).
    transitivity (upto H S (upto H (parent S) n S) Q); [|apply (c_nest _ _ _ _ I0); auto; destruct (parent S =? l); lia].
    destruct (lt_dec (upto H (parent S) n S) (entries H S + (if S =? l then 1 else 0))) as [L|L]; [apply upto_before; exact L|].
    apply upto_ext. intros i _. apply enter_inactive. intro A.
    destruct (Nat.eqb_spec S l) as [El|NL]; [lia|].
    destruct (Nat.eqb_spec (parent S) l) as [EP|NP].
    + apply enter_active, under_depth in A. assert (D := wf_depth _ W S ST). rewrite EP in D. lia.
    + destruct A as [A|A]; [simpl in A; congruence|]. apply (c_trip _ _ _ _ I0) in A. unfold trip in A.
      rewrite <- (c_upto _ _ _ _ I0 _ _ UP) in L, LE. destruct (entries H (parent S)) as [|a]; [lia|]. simpl in L, LE.
      assert (LA := upto_le H (parent S) S n a). lia.
Qed.
Lemma enter_started : forall S k Q, under S Q -> 1 <= k ->
  started (enter_regs m keeps_trip l r) S k Q = upto H' S (entries H' S - Nat.min k (trip m H' S)) Q.
Proof.
  destruct enter_parent as [Lt Px]. intros S k Q U Hk. rewrite enter_entries, enter_trip. unfold enter_regs. cbn [started].
  destruct (Nat.eqb_spec S l) as [->|N].
  - destruct k as [|[|k]]; [lia| |].
    + rewrite (r_mono _ _ _ _ I0), <- (c_upto _ _ _ _ I0 l Q U), upto_before by (rewrite Nat.eqb_refl; lia). f_equal. lia.
    + rewrite upto_before by (rewrite Nat.eqb_refl; lia). rewrite (r_started _ _ _ _ I0) by (auto; lia). f_equal. lia.
  - rewrite Nat.add_0_r.
    assert (SAME : started r S k Q = upto H' S (entries H S - Nat.min k (trip m H S)) Q).
    { rewrite (r_started _ _ _ _ I0) by assumption. destruct (Nat.eq_dec (entries H S) 0) as [->|NE]; [reflexivity|].
      destruct (Nat.eq_dec (trip m H S) 0) as [Z|NZ].
      - symmetry. apply upto_ext. intros. apply enter_inactive. intros [A|A]; [simpl in A; congruence|].
        apply (c_trip _ _ _ _ I0) in A. lia.
      - rewrite upto_before by lia. reflexivity. }
    destruct (Nat.eqb_spec S top) as [->|NT].
    + rewrite (wf_parent_top _ W), (proj2 (Nat.eqb_neq top l)) by congruence. exact SAME.
    + destruct (Nat.eqb_spec (parent S) l) as [E|]; [|exact SAME].
      assert (NQ : Q <> l) by (intros ->; apply under_depth in U; rewrite (wf_depth _ W S NT), E in U; lia).
      assert (X := enter_upto S Q U). rewrite !enter_entries, (proj2 (Nat.eqb_neq S l)),
        (proj2 (Nat.eqb_neq Q l)) in X by assumption.
      rewrite !Nat.add_0_r in X. rewrite Nat.min_0_r, Nat.sub_0_r, X. apply (r_mono _ _ _ _ I0).
Qed.

Lemma counted_enter : counted e fs' H' (enter_regs m keeps_trip l r).
Proof.
  destruct enter_parent as [Lt Px]. assert (G := c_good _ _ _ _ I0).
  constructor.
  - apply enter_good.
  - rewrite enter_other by congruence. apply (c_top _ _ _ _ I0).
  - intros S n Q Hn. rewrite enter_entries in Hn. rewrite enter_before by (intro; lia).
    apply (c_fresh _ _ _ _ I0). destruct (S =? l); lia.
  - apply enter_upto.
  - intros S n Hn. rewrite enter_entries in Hn. destruct (Nat.eqb_spec S l) as [->|N].
    + destruct (Nat.eq_dec n (entries H l + 1)) as [->|Nn].
      * rewrite enter_at by (left; reflexivity). rewrite !Nat.eqb_refl. simpl. rewrite (c_fresh _ _ _ _ I0); lia.
      * rewrite enter_before by (rewrite Nat.eqb_refl; lia). apply (c_once _ _ _ _ I0). lia.
    + rewrite enter_other by assumption. apply (c_once _ _ _ _ I0). lia.
  - intros S HS. rewrite enter_entries. destruct (Nat.eqb_spec S l); [lia|].
    destruct HS as [HS|HS]; [simpl in HS; congruence|]. apply (c_active _ _ _ _ I0) in HS. lia.
  - intros S HS. rewrite enter_trip. destruct (Nat.eqb_spec S l); [lia|].
    destruct HS as [HS|HS]; [simpl in HS; congruence|]. assert (A := c_trip _ _ _ _ I0 _ HS).
    destruct (S =? top); [assumption|]. destruct (Nat.eqb_spec (parent S) l) as [E|]; [|assumption]. exfalso.
    apply (good_in_under e _ G x _ _ eq_refl) in HS.
    assert (D := wf_depth _ W l Lt). rewrite Px in D.
    destruct (Nat.eq_dec S top) as [->|ST]; [rewrite (wf_parent_top _ W) in E; congruence|].
    apply under_depth in HS. rewrite (wf_depth _ W S ST), E in HS. lia.
  - intros S rs HS B Q HB U. rewrite enter_entries.
    assert (HBb : In B (children (body e S))).
    { eapply suffix_children; [eapply good_suffix; [apply enter_good | exact HS] |]. apply children_tail; assumption. }
    destruct (wf_child _ W _ _ _ HBb) as [BT BP].
    assert (DB := child_depth _ _ _ HBb).
    destruct HS as [HS|HS].
    + injection HS as E1 E2. rewrite <- E1, <- E2 in *. clear E1 E2 HBb. rewrite Nat.eqb_refl.
      assert (Q <> l) by (intros ->; apply under_depth in U; lia).
      rewrite enter_other by assumption. apply (c_fresh _ _ _ _ I0). lia.
    + assert (SL : S <> l).
      { intros ->. assert (D := good_depth _ _ _ _ enter_good _ _ HS). lia. }
      rewrite (proj2 (Nat.eqb_neq S l) SL), Nat.add_0_r.
      destruct (good_inner e fs' enter_good l _ _ eq_refl S rs HS) as (y & s' & rs' & -> & YC & YT & YP & YU).
      assert (Q <> l).
      { intros ->. assert (B = y).
        { eapply under_same; eauto. rewrite DB, (wf_depth _ W y YT), YP. reflexivity. }
        subst y. simpl in HB.
        destruct (good_suffix e fs' enter_good S _ (or_intror HS)) as [p Ep].
        assert (ND := wf_children _ W e S). rewrite Ep, children_app in ND.
        apply nodup_right in ND. exact (disjoint _ _ _ ND YC HB). }
      rewrite enter_other by assumption. apply (c_ahead _ _ _ _ I0 S _ HS B Q HB U).
  - intros S a b rs HS B Q HB HN U. rewrite enter_entries.
    assert (HBb : In B (children (body e S))).
    { eapply suffix_children; [eapply good_suffix; [apply enter_good | exact HS]|].
      apply (in_or_app [a; b] (children rs)). left. assumption. }
    assert (DB := child_depth _ _ _ HBb). destruct HS as [HS|HS].
    + injection HS as <- ES. rewrite Nat.eqb_refl.
      assert (Q <> l) by (intros ->; apply under_depth in U; lia).
      rewrite enter_other by assumption. apply (c_fresh _ _ _ _ I0). lia.
    + assert (SL : S <> l).
      { intros ->. assert (D := good_depth _ _ _ _ enter_good _ _ HS). lia. }
      rewrite (proj2 (Nat.eqb_neq S l) SL), Nat.add_0_r.
      assert (Q <> l) by (intros ->; apply HN, enter_active; assumption).
      rewrite enter_other by assumption. apply (c_branch _ _ _ _ I0 S a b rs HS B Q HB); [|assumption].
      intro A. apply HN. right. exact A.
  - apply enter_nest.
  - intro c. rewrite enter_entries, <- (r_mono _ _ _ _ I0). unfold value, enter_regs, upd. simpl.
    destruct (Nat.eqb_spec c top) as [->|]; [rewrite (proj2 (Nat.eqb_neq top l)); [lia | congruence]|].
    destruct (Nat.eqb_spec c l); subst; lia.
  - intros c K. rewrite enter_trip. assert (RT := r_trip _ _ _ _ I0 c K). unfold value, enter_regs in *. simpl.
    destruct (Nat.eqb_spec c top) as [->|NT].
    + rewrite (proj2 (Nat.eqb_neq top l)) by congruence. exact RT.
    + rewrite K. simpl. destruct (Nat.eqb_spec c l) as [->|N]; [congruence|].
      destruct (parent c =? l); congruence.
  - intros S k Q U Hk. rewrite enter_entries. unfold enter_regs. simpl. destruct (Nat.eqb_spec S l) as [->|N].
    + rewrite upto_before by (rewrite Nat.eqb_refl; lia).
      destruct k as [|[|k]]; [lia| |].
      * rewrite (r_mono _ _ _ _ I0), <- (c_upto _ _ _ _ I0 l Q U). f_equal. lia.
      * rewrite (r_past _ _ _ _ I0) by (auto; lia). f_equal. lia.
    + rewrite Nat.add_0_r, (r_past _ _ _ _ I0) by assumption.
      destruct (entries H S) eqn:En; [reflexivity|].
      rewrite upto_before by (rewrite En, (proj2 (Nat.eqb_neq S l) N); lia). reflexivity.
  - apply enter_started.
Qed.
End Entering.

End Local.
