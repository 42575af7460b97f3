(** In-order issue and retirement: each semaphore follows the cyclic word of the producers that share it, so it tells how
    often each of them has retired ([sema_decodes]) and is at most N times the entries of their loop ([sema_bounded]). *)
From Coq Require Import Arith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program Machine Registers.

(** ** Words *)
Fixpoint rounds (m : nat) (D : list instr) := match m with 0 => [] | S k => D ++ rounds k D end.
Lemma rounds_S : forall m D, rounds (S m) D = rounds m D ++ D.
Proof.
  induction m; intros; simpl; [rewrite app_nil_r; reflexivity|]. rewrite <- app_assoc, <- IHm. reflexivity.
Qed.
Lemma rounds_length : forall m D, length (rounds m D) = m * length D.
Proof. induction m; intros; simpl; [reflexivity|]. rewrite app_length, IHm. reflexivity. Qed.

(** w is m rounds of D, and the part of one more that is left when [post] is still to come *)
Definition shape (m : nat) (D w post : list instr) := exists pre, D = pre ++ post /\ w = rounds m D ++ pre.

Lemma app_cut : forall (A : Type) (a b c d : list A), a ++ b = c ++ d ->
  (exists t, c = a ++ t /\ b = t ++ d) \/ (exists t, a = c ++ t /\ d = t ++ b).
Proof.
  induction a as [|x a IH]; intros b c d E; simpl in E.
  - left. exists c. auto.
  - destruct c as [|y c]; simpl in E.
    + right. exists (x :: a). auto.
    + inversion E; subst. destruct (IH _ _ _ H1) as [(t & -> & ->)|(t & -> & ->)]; [left|right]; exists t; auto.
Qed.
Lemma shape_prefix : forall D post m pre w z, D = pre ++ post -> rounds m D ++ pre = w ++ z ->
  exists m' pre' post', D = pre' ++ post' /\ w = rounds m' D ++ pre'.
Proof.
  intros D post m. induction m as [|m IH]; intros pre w z ED E; simpl in E.
  - subst. exists 0, w, (z ++ post). split; [rewrite <- app_assoc; reflexivity | reflexivity].
  - rewrite <- app_assoc in E. destruct (app_cut _ _ _ _ _ E) as [(t & -> & E2)|(t & E1 & E2)].
    + destruct (IH _ _ _ ED E2) as (m' & p' & q' & A & B). exists (S m'), p', q'. split; [assumption|].
      simpl. rewrite <- app_assoc, <- B. reflexivity.
    + exists 0, w, t. split; [assumption | reflexivity].
Qed.

Notation count := (count_occ Nat.eq_dec).
Lemma count_rounds : forall m D p, NoDup D -> In p D -> count (rounds m D) p = m.
Proof.
  induction m; intros; simpl; [reflexivity|]. rewrite count_occ_app, IHm by assumption.
  assert (E : count D p = 1) by (apply NoDup_count_occ'; assumption).
  change (S m) with (1 + m). f_equal. exact E.
Qed.
Lemma count_prefix : forall pre post p, NoDup (pre ++ post) -> In p (pre ++ post) ->
  count pre p = if S (index p (pre ++ post)) <=? length pre then 1 else 0.
Proof.
  induction pre as [|x pre IH]; intros post p ND IN; [reflexivity|].
  simpl app in *. inversion ND; subst. cbn [index length]. destruct (Nat.eqb_spec x p) as [->|N].
  - rewrite count_occ_cons_eq by reflexivity.
    assert (Z : count pre p = 0) by (apply count_occ_not_In; intro; apply H1; apply in_or_app; auto).
    rewrite Z. destruct (Nat.leb_spec 1 (S (length pre))); lia.
  - rewrite count_occ_cons_neq by assumption. destruct IN; [congruence|]. rewrite (IH post) by assumption.
    destruct (Nat.leb_spec (S (index p (pre ++ post))) (length pre));
    destruct (Nat.leb_spec (S (S (index p (pre ++ post)))) (S (length pre))); lia.
Qed.
Lemma index_lt : forall p D, In p D -> index p D < length D.
Proof.
  induction D; simpl; intros; [contradiction|]. destruct (Nat.eqb_spec a p); [lia|].
  destruct H; [congruence|]. apply IHD in H; lia.
Qed.
Lemma count_filter : forall (f : instr -> bool) w p, f p = true -> count (filter f w) p = count w p.
Proof.
  induction w as [|x w IH]; intros p Fp; [reflexivity|]. simpl. destruct (f x) eqn:E; simpl.
  - destruct (Nat.eq_dec x p); rewrite IH; auto.
  - destruct (Nat.eq_dec x p); [congruence | apply IH; assumption].
Qed.

(** What `per-engine` rests on: of a semaphore that producers in any loops of an engine share, [f], the number that a producer
    brings it to tells of that producer. *)
Theorem engine_decodes : forall (f : instr -> bool) done todo v p z, f p = true -> done ++ todo = v ++ p :: z ->
  (length (filter f (v ++ [p])) <= length (filter f done) <-> S (count v p) <= count done p).
Proof.
  intros f done todo v p z F E. rewrite filter_app, app_length. simpl. rewrite F. simpl.
  assert (L : forall a b : list instr, length (filter f (a ++ b)) = length (filter f a) + length (filter f b))
    by (intros; rewrite filter_app, app_length; reflexivity).
  assert (K : forall a b, count (a ++ b) p = count a p + count b p) by apply (fun a b => count_occ_app Nat.eq_dec a b p).
  destruct (app_cut _ _ _ _ _ E) as [(t & E1 & E2)|(t & E1 & E2)].
  - subst v. rewrite L, K. lia.
  - destruct t as [|a t]; simpl in E2; [subst; rewrite L, K; simpl; lia|]. injection E2 as <- _. subst done. rewrite L, K.
    simpl. rewrite F. simpl. destruct (Nat.eq_dec p p); [lia | congruence].
Qed.

(** ** Engines *)
Section Engines.
Variable m : machine.
Notation P := (program_of m).
Hypothesis W : well_formed P.

Lemma instrs_in : forall i b, In i (instrs b) <-> In (Instr i) b.
Proof.
  induction b as [|[j|l|x y] b IH]; simpl; [tauto|..].
  - rewrite IH. split; intros [E|E]; auto; left; congruence.
  - rewrite IH. split; intro; [auto | destruct H; [discriminate | assumption]].
  - rewrite IH. split; intro; [auto | destruct H; [discriminate | assumption]].
Qed.

(** what an engine issued of the block l, and what of that updates its semaphore g *)
Definition runs (l : loop) (w : list instr) : list instr := filter (fun i => loop_of P i =? l) w.
Definition updates (l : loop) (g : nat) (w : list instr) : list instr := filter (member m g) (runs l w).
Lemma runs_app : forall l a b, runs l (a ++ b) = runs l a ++ runs l b.
Proof. intros. apply filter_app. Qed.
Lemma updates_app : forall l g a b, updates l g (a ++ b) = updates l g a ++ updates l g b.
Proof. intros. unfold updates. rewrite runs_app. apply filter_app. Qed.

(** [done]: what the engine has retired so far, in order; [c]: its entries of each loop *)
Record ordered (e : engine) (fs : frames) (q : list (instr * bool)) (c : loop -> nat) (R : instr -> nat)
  (sema : semaphores) (done : list instr) : Prop := {
  o_engine : forall i, In i (done ++ map fst q) -> engine_of P i = e;
  o_retired : forall i, engine_of P i = e -> R i = count done i;
  o_sema : forall l g, sema l e g = length (updates l g done);
  o_active : forall l rest, In (l, rest) fs ->
    shape (c l - 1) (instrs (body P e l)) (runs l (done ++ map fst q)) (instrs rest);
  o_idle : forall l, ~ In l (loops fs) -> runs l (done ++ map fst q) = rounds (c l) (instrs (body P e l)) }.

Lemma filter_rounds : forall f n D, filter f (rounds n D) = rounds n (filter f D).
Proof. induction n; intros; simpl; [reflexivity|]. rewrite filter_app, IHn. reflexivity. Qed.
Lemma ordered_rounds : forall e fs q c R sema done l, ordered e fs q c R sema done ->
  exists n pre post, instrs (body P e l) = pre ++ post /\ runs l (done ++ map fst q) = rounds n (instrs (body P e l)) ++ pre /\
    (In l (loops fs) -> n = c l - 1) /\ (~ In l (loops fs) -> n = c l /\ pre = []).
Proof.
  intros. destruct (in_dec Nat.eq_dec l (loops fs)) as [A|A].
  - assert (A' := A). apply loops_in in A. destruct A as [rest A]. destruct (o_active _ _ _ _ _ _ _ H _ _ A) as (pre & E1 & E2).
    exists (c l - 1), pre, (instrs rest). tauto.
  - exists (c l), [], (instrs (body P e l)). rewrite app_nil_r. split; [reflexivity|].
    split; [apply (o_idle _ _ _ _ _ _ _ H _ A) | tauto].
Qed.
Lemma ordered_shape : forall e fs q c R sema done l g, ordered e fs q c R sema done ->
  exists n pre post, members m e l g = pre ++ post /\ updates l g (done ++ map fst q) = rounds n (members m e l g) ++ pre /\
    (In l (loops fs) -> n = c l - 1) /\ (~ In l (loops fs) -> n = c l /\ pre = []).
Proof.
  intros e fs q c R sema done l g O. destruct (ordered_rounds _ _ _ _ _ _ _ l O) as (n & pre & post & ED & EW & A & B).
  exists n, (filter (member m g) pre), (filter (member m g) post). unfold members, updates.
  split; [rewrite <- filter_app, <- ED; reflexivity|]. split; [rewrite EW, filter_app, filter_rounds; reflexivity|].
  split; [assumption|]. intro NA. destruct (B NA) as [-> ->]. auto.
Qed.

Theorem sema_decodes : forall e fs q c R sema done p, ordered e fs q c R sema done ->
  engine_of P p = e -> In (Instr p) (body P e (loop_of P p)) -> signals P p = true ->
  exists n j, j <= N_of m p /\ reached m sema p = N_of m p * n + j /\ R p = retired n j (K_of m p) /\
    1 <= K_of m p <= N_of m p.
Proof.
  intros e fs q c R sema done p O <- IN SG.
  set (D := members m (engine_of P p) (loop_of P p) (share P p)).
  assert (ND : NoDup D) by (apply NoDup_filter, (wf_instrs _ W)).
  assert (MP : member m (share P p) p = true) by (unfold member; rewrite SG, Nat.eqb_refl; reflexivity).
  assert (ID : In p D) by (apply filter_In; split; [apply instrs_in; assumption | assumption]).
  destruct (ordered_shape _ _ _ _ _ _ _ (loop_of P p) (share P p) O) as (n & pre & post & ED & EW & _).
  rewrite updates_app in EW. symmetry in EW.
  destruct (shape_prefix D post n pre _ _ ED EW) as (n' & pre' & post' & ED' & EW').
  exists n', (length pre').
  assert (HN : N_of m p = length D) by reflexivity.
  repeat split.
  - rewrite HN, ED', app_length. lia.
  - unfold reached. rewrite (o_sema _ _ _ _ _ _ _ O), EW', app_length, rounds_length, HN. lia.
  - rewrite (o_retired _ _ _ _ _ _ _ O) by reflexivity.
    rewrite <- (count_filter (fun i => loop_of P i =? loop_of P p)) by apply Nat.eqb_refl.
    rewrite <- (count_filter (member m (share P p))) by assumption.
    unfold updates, runs in EW'. rewrite EW', count_occ_app, count_rounds by assumption. unfold retired. f_equal.
    unfold K_of. fold D. rewrite ED' in *. apply count_prefix; assumption.
  - unfold K_of; lia.
  - unfold K_of. fold D. rewrite HN. apply index_lt. assumption.
Qed.

(** `per-instruction`: a semaphore of its own tells how often its producer has retired, no more and no less. *)
Theorem per_instruction : forall e fs q c R sema done p, ordered e fs q c R sema done ->
  engine_of P p = e -> In (Instr p) (body P e (loop_of P p)) -> signals P p = true ->
  (forall i, share P i = share P p -> i = p) -> N_of m p = 1 /\ K_of m p = 1 /\ reached m sema p = R p.
Proof.
  intros e fs q c R sema done p O EP IN SG OWN.
  destruct (sema_decodes _ _ _ _ _ _ _ p O EP IN SG) as (n & j & Hj & Es & ER & HK).
  assert (N1 : N_of m p <= 1).
  { unfold N_of. assert (ND : NoDup (members m (engine_of P p) (loop_of P p) (share P p))) by (apply NoDup_filter, (wf_instrs _ W)).
    assert (AL : forall i, In i (members m (engine_of P p) (loop_of P p) (share P p)) -> i = p).
    { intros i Hi. apply filter_In in Hi. destruct Hi as [_ Hi]. apply andb_true_iff in Hi. apply OWN, Nat.eqb_eq. tauto. }
    destruct (members m (engine_of P p) (loop_of P p) (share P p)) as [|a [|b r]]; simpl; auto.
    inversion ND; subst. exfalso. apply H1. left. rewrite (AL a), (AL b) by (simpl; auto). reflexivity. }
  assert (EN : N_of m p = 1) by lia. assert (EK : K_of m p = 1) by lia. split; [assumption|]. split; [assumption|].
  rewrite Es, ER, EN, EK in *. unfold retired. destruct j as [|[|j]]; simpl; lia.
Qed.

(** ** Every step keeps it *)
Lemma good_not_inner : forall e x rest fs, good P e ((x, rest) :: fs) -> ~ In x (loops fs).
Proof.
  intros e x rest fs G A. apply loops_in in A. destruct A as [rs A].
  assert (D := good_depth P W _ _ _ _ G _ _ A). lia.
Qed.
Lemma instrs_other : forall s rest, (forall i, s <> Instr i) -> instrs (s :: rest) = instrs rest.
Proof. intros. destruct s; [congruence | reflexivity | reflexivity]. Qed.

Lemma ordered_issue : forall e x i rest fs q c R sema done,
  ordered e ((x, Instr i :: rest) :: fs) q c R sema done -> good P e ((x, Instr i :: rest) :: fs) ->
  ordered e ((x, rest) :: fs) (q ++ [(i, false)]) c R sema done.
Proof.
  intros e x i rest fs q c R sema done [Oe Or Os Oa Oi] G.
  assert (IB : In (Instr i) (body P e x)).
  { eapply suffix_in; [eapply good_suffix; [exact G | left; reflexivity] | left; reflexivity]. }
  destruct (wf_instr _ W _ _ _ IB) as [Lx Ee].
  assert (U : forall l, runs l (done ++ map fst (q ++ [(i, false)])) =
     runs l (done ++ map fst q) ++ (if x =? l then [i] else [])).
  { intro l. rewrite map_app, app_assoc, runs_app. f_equal. unfold runs. simpl. rewrite Lx. reflexivity. }
  assert (NX := good_not_inner _ _ _ _ G).
  constructor; auto.
  - intros j HJ. rewrite map_app, app_assoc in HJ. apply in_app_or in HJ. destruct HJ as [HJ|[<-|[]]]; auto.
  - intros l r' [E|E].
    + injection E as <- <-. destruct (Oa x _ (or_introl eq_refl)) as (pre & ED & EW). exists (pre ++ [i]).
      split; [rewrite <- app_assoc; exact ED | rewrite U, Nat.eqb_refl, EW, <- app_assoc; reflexivity].
    + assert (x <> l) by (intros ->; apply NX, in_map_iff; exists (l, r'); auto).
      rewrite U, (proj2 (Nat.eqb_neq x l)), app_nil_r by assumption. apply Oa. right; assumption.
  - intros l NL. assert (x <> l) by (intros ->; apply NL; left; reflexivity).
    rewrite U, (proj2 (Nat.eqb_neq x l)), app_nil_r by assumption. apply Oi. exact NL.
Qed.

Lemma ordered_counts : forall e fs q c c' R sema done, (forall l, c' l = c l) ->
  ordered e fs q c R sema done -> ordered e fs q c' R sema done.
Proof. intros e fs q c c' R sema done E [? ? ? ? ?]. constructor; auto; intros; rewrite E; auto. Qed.

Lemma ordered_enter : forall e x s l rest fs q c R sema done,
  ordered e ((x, s :: rest) :: fs) q c R sema done -> good P e ((l, body P e l) :: (x, s :: rest) :: fs) ->
  ordered e ((l, body P e l) :: (x, s :: rest) :: fs) q (fun k => c k + (if k =? l then 1 else 0)) R sema done.
Proof.
  intros e x s l rest fs q c R sema done [Oe Or Os Oa Oi] G. assert (NL := good_not_inner _ _ _ _ G).
  constructor; auto.
  - intros l' r' [E|E].
    + injection E as <- <-. rewrite Nat.eqb_refl, Nat.add_sub. exists []. rewrite app_nil_r. split; [reflexivity|].
      apply Oi. assumption.
    + assert (l' <> l) by (intros ->; apply NL, in_map_iff; exists (l, r'); auto).
      rewrite (proj2 (Nat.eqb_neq l' l)), Nat.add_0_r by assumption. apply Oa; assumption.
  - intros l' NL'. rewrite (proj2 (Nat.eqb_neq l' l)), Nat.add_0_r by (intros ->; apply NL'; left; reflexivity).
    apply Oi. intro A. apply NL'. right; assumption.
Qed.
Lemma ordered_next : forall e x s rest fs q c R sema done, (forall i, s <> Instr i) ->
  ordered e ((x, s :: rest) :: fs) q c R sema done -> ordered e ((x, rest) :: fs) q c R sema done.
Proof.
  intros e x s rest fs q c R sema done NI [Oe Or Os Oa Oi]. constructor; auto.
  intros l r' [E|E]; [|apply Oa; right; assumption].
  injection E as <- <-. rewrite <- (instrs_other s rest) by assumption. apply Oa. left; reflexivity.
Qed.
Lemma ordered_back : forall e l y s rest fs q c R sema done, (forall i, s <> Instr i) -> 1 <= c l ->
  ordered e ((l, []) :: (y, s :: rest) :: fs) q c R sema done ->
  ordered e ((y, after s rest) :: fs) q c R sema done.
Proof.
  intros e l y s rest fs q c R sema done NI HC [Oe Or Os Oa Oi].
  assert (I : ordered e ((y, s :: rest) :: fs) q c R sema done).
  { constructor; auto.
    - intros; apply Oa; right; assumption.
    - intros l' NL. destruct (Nat.eq_dec l' l) as [->|N].
      + destruct (Oa l [] (or_introl eq_refl)) as (pre & E1 & E2). rewrite app_nil_r in E1. subst pre.
        rewrite E2, <- rounds_S. f_equal. lia.
      + apply Oi. intros [E|E]; [simpl in E; congruence | contradiction]. }
  destruct s; simpl; try assumption; eapply ordered_next; eauto.
Qed.
Lemma ordered_commit : forall e fs a i b b0 b1 c R sema done, ordered e fs (a ++ (i, b0) :: b) c R sema done ->
  ordered e fs (a ++ (i, b1) :: b) c R sema done.
Proof.
  intros e fs a i b b0 b1 c R sema done O.
  assert (E : map fst (a ++ (i, b1) :: b) = map fst (a ++ (i, b0) :: b)) by (rewrite !map_app; reflexivity).
  destruct O as [Oe Or Os Oa Oi]. constructor; rewrite ?E; auto; intros; rewrite ?E; auto.
Qed.
Lemma ordered_retire : forall e fs i b0 b c R sema done, ordered e fs ((i, b0) :: b) c R sema done ->
  ordered e fs b c (upd R i (R i + 1)) (signal m i sema) (done ++ [i]).
Proof.
  intros e fs i b0 b c R sema done [Oe Or Os Oa Oi].
  assert (Ei : engine_of P i = e) by (apply Oe, in_or_app; right; left; reflexivity).
  assert (EQ : (done ++ [i]) ++ map fst b = done ++ map fst ((i, b0) :: b)) by (rewrite <- app_assoc; reflexivity).
  constructor; try (rewrite EQ); auto.
  - intros j Ej. unfold upd. rewrite count_occ_app. simpl. rewrite <- !Or by assumption.
    destruct (Nat.eqb_spec j i) as [->|N]; [destruct (Nat.eq_dec i i); [reflexivity | congruence]|].
    destruct (Nat.eq_dec i j); [congruence | lia].
  - intros l g. rewrite updates_app, app_length, <- Os. unfold signal, updates, runs. simpl.
    rewrite Ei, Nat.eqb_refl, andb_true_r, (Nat.eqb_sym l). destruct (loop_of P i =? l); simpl; [|rewrite andb_false_r; lia].
    rewrite andb_true_r. destruct (member m g i); simpl; lia.
Qed.
Lemma ordered_elsewhere : forall e fs q c R sema done i, ordered e fs q c R sema done -> engine_of P i <> e ->
  ordered e fs q c (upd R i (R i + 1)) (signal m i sema) done.
Proof.
  intros e fs q c R sema done i [Oe Or Os Oa Oi] N. constructor; auto.
  - intros j Ej. unfold upd. destruct (Nat.eqb_spec j i); [congruence | auto].
  - intros l g. unfold signal. rewrite (proj2 (Nat.eqb_neq e (engine_of P i))), andb_false_r by congruence. apply Os.
Qed.

(** ** Semaphores are at most N times the entries of the loop on their engine *)
Theorem sema_bounded : forall e fs q c R sema done l g, ordered e fs q c R sema done ->
  (In l (loops fs) -> 1 <= c l) -> sema l e g <= length (members m e l g) * c l.
Proof.
  intros e fs q c R sema done l g O A. rewrite (o_sema _ _ _ _ _ _ _ O).
  apply Nat.le_trans with (length (updates l g (done ++ map fst q))).
  { rewrite updates_app, app_length. lia. }
  destruct (ordered_shape _ _ _ _ _ _ _ l g O) as (n & pre & post & E1 & E2 & EA & EI).
  assert (E3 := f_equal (@length _) E1). rewrite app_length in E3. rewrite E2, app_length, rounds_length.
  destruct (in_dec Nat.eq_dec l (loops fs)) as [I|I].
  - specialize (A I). rewrite (EA I). nia.
  - destruct (EI I) as [-> ->]. simpl. nia.
Qed.
End Engines.
