(** An instruction issues: whether its waits ask for what its dependencies do, whatever has retired. *)
From Coq Require Import ZArith List Bool Lia PArith FMapPositive.
From Checker Require Import Linear Language States Values Iterations.
Import ListNotations.
Local Open Scope Z_scope.

Section Execution.
Variable C : context.
Local Notation counter := (counter C). Local Notation all_values := (all_values C).
Local Notation claim := (claim C). Local Notation describes := (describes C).
Local Notation possible := (possible C). Local Notation count := (count C).
Local Notation count_sound := (count_sound C).

(** ** What is owed, by cases *)

Inductive owing := Owes (f : form) | Nothing | Unclear.
Definition owing_of (f : option form) : owing := match f with Some f => Owes f | None => Unclear end.

Definition past (S : symbolic) (hy : list form) (c l : loop) (k : nat) : option form :=
  match (if Pos.eqb c l && negb (Pos.eqb c root) then count S (Entries l) else None) with
  | Some f =>
      let f := shift f (- Z.of_nat k) in
      if entails hy f then Some f else count S (Past c k l)
  | None => count S (Past c k l)
  end.

(** The facts of each case of what a need owes. *)
Definition need_cases (S : symbolic) (n : need) (hy : list form) : list (list form * owing) :=
  let unclear := [([], Unclear)] in
  match up_to n with
  | Now => [([], owing_of (count S (Entries (producer_loop n))))]
  | Back c k =>
      match count S (Iteration c) with
      | None => unclear
      | Some i =>
          let reached := shift i (- Z.of_nat k - 1) in
          [([reached], owing_of (past S (reached :: hy) c (producer_loop n) k)); ([negation reached], Nothing)]
      end
  | Within c k l d =>
      match count S (Iteration c), count S (Iteration l), count S (Past c k (producer_loop n)),
            count S (Past c (Datatypes.S k) (producer_loop n)) with
      | Some i, Some j, Some most, Some least =>
          let reached := shift i (- Z.of_nat k - 1) in
          let inner := shift j (- d - 1) in
          let f := shift (plus least j) (- d) in
          [([reached; inner; minus most f], Owes f);
           ([reached; inner; shift (minus f most) (-1)], Owes most);
           ([reached; negation inner], Nothing);
           ([negation reached], Nothing)]
      | _, _, _, _ => unclear
      end
  end.

(** The same of several needs: what each owes of which producer. *)
Definition owings_of : Type := list form * list (label * form).

Fixpoint owings (S : symbolic) (ns : list need) (hy : list form) : option (list owings_of) :=
  match ns with
  | [] => Some [(hy, [])]
  | n :: ns =>
      option_map (@concat _) (all_some (map (fun c : list form * owing =>
        if contradict hy (fst c) then Some []
        else match snd c with
             | Owes f => option_map (map (fun o : owings_of => (fst o, (producer n, f) :: snd o))) (owings S ns (fst c ++ hy))
             | Nothing => owings S ns (fst c ++ hy)
             | Unclear => None
             end) (need_cases S n hy)))
  end.

(** ** Whether waits ask for that *)

(** The number of rounds that a group has retired in since its semaphores were 0, as a variable. *)
Definition rounds : positive := 1%positive.
(** How much more there is than [f], where [n] come in each round, and [c] in one that is not whole. *)
Definition reached (n c : Z) (all f : form) : form := minus (shift (scale n all) c) f.

(** Groups, each with the rounds before its semaphores were 0. *)
Definition rounds_before (S : symbolic) (g : group * place_of_group) : option (group * form) :=
  match snd (snd g) with
  | [] => Some (fst g, number 0)
  | cuts => option_map (fun f => (fst g, f)) (count S (Base cuts (fst (snd g))))
  end.

Definition position_right (hy : list form) (ws ps : list (semaphore * form)) (ds : list (label * form)) (g : group * form)
    (j : nat) : bool :=
  let (g, before) := g in
  let done := firstn j g in
  let all := plus before (variable rounds) in
  let values ws := map (fun w => reached (signalled (fst w) g) (signalled (fst w) done) (variable rounds) (snd w))
    (filter (fun w : semaphore * form => has_signal (fst w) g) ws) in
  let enough := map (fun d => reached (labelled (fst d) g) (labelled (fst d) done) all (snd d))
    (filter (fun d => has_label (fst d) g) ds) in
  forallb (fun d => contradict hy (variable rounds :: negation d :: values ws ++ values ps)) enough
  && forallb (fun w => contradict hy (variable rounds :: negation w :: enough ++ values ps)) (values ws).

(** Waits that have passed are seldom needed. *)
Definition owing_right (gs : list (group * form)) (ws ps : list (semaphore * form)) (o : owings_of) : bool :=
  let (hy, ds) := o in
  forallb (absent rounds) hy && forallb (fun w => absent rounds (snd w)) (ws ++ ps)
  && forallb (fun d => absent rounds (snd d)) ds && forallb (fun g => absent rounds (snd g)) gs
  && forallb (fun w => existsb (fun g : group * form => has_signal (fst w) (fst g)) gs) ws
  && forallb (fun d => existsb (fun g : group * form => has_label (fst d) (fst g)) gs) ds
  && forallb (fun g => forallb (fun j => position_right hy ws [] ds g j || position_right hy ws ps ds g j)
       (seq 0 (length (fst g)))) gs.

Definition issue_right (S : symbolic) (i : label) : bool :=
  match needs C i, all_some (map (rounds_before S) (groups C)) with
  | Some ns, Some gs =>
      match owings S ns (facts S) with
      | Some os => forallb (owing_right gs (pending S) (passed S)) os
      | None => false
      end
  | _, _ => false
  end.

(** ** An instruction issues *)

Definition issued (S : symbolic) (i : label) (signal : option semaphore) (x : positive) (g : ghost) : option form :=
  match g, signal with
  | Sent s, Some s' => Some (if Pos.eqb s' s then shift (get S x) 1 else get S x)
  | Issues i', _ => Some (if Pos.eqb i i' then shift (get S x) 1 else get S x)
  | _, _ => Some (get S x)
  end.

Definition range_right (S : symbolic) (signal : option semaphore) : bool :=
  match signal with
  | None => true
  | Some s => match count S (Sent s) with
              | Some f => entails (facts S) (shift (scale (-1) f) (limit C))
              | None => false
              end
  end.

(** Of the waits on one semaphore, the latest is kept. *)
Definition remember (w : semaphore * form) (ps : list (semaphore * form)) : list (semaphore * form) :=
  w :: filter (fun p => negb (Pos.eqb (fst p) (fst w))) ps.

Definition execute_issue (S : symbolic) (i : label) (signal : option semaphore) : option (list symbolic) :=
  match change_all S (issued S i signal) (ghosts C) with
  | Some m =>
      let S' := Symbolic m (facts S) [] (fold_right remember (passed S) (pending S)) in
      if issue_right S i && range_right S' signal then Some [S'] else None
  | None => None
  end.

Lemma issued_sound S r s i signal ws x g f : describes S r s -> find x (ghosts C) = Some g ->
  issued S i signal x g = Some f -> eval f r = counter g (Issued i signal ws :: history s).
Proof.
  intros D F E. assert (X : eval (get S x) r = counter g (history s)).
  { destruct D as (_ & V & _). rewrite <- V. unfold all_values. now rewrite F. }
  destruct g as [l|l|c [|k] l|w|i'|cuts l]; cbn [issued counter issues_of base] in *;
    try (destruct signal; injection E as <-; exact X).
  - destruct signal as [w'|]; injection E as <-; cbn [sent]; [|exact X].
    destruct (Pos.eqb w' w); autorewrite with eval; lia.
  - destruct signal; injection E as <-; destruct (Pos.eqb i i'); autorewrite with eval; lia.
Qed.

Lemma remembered_sound ws ps r t :
  Forall (fun p => In (fst p, eval (snd p) r) (gone t)) ps -> forall i g,
  Forall (fun p => In (fst p, eval (snd p) r) (gone (Issued i g (map (fun w => (fst w, eval (snd w) r)) ws) :: t)))
    (fold_right remember ps ws).
Proof.
  intros P i g. cbn [gone]. assert (X : forall all, incl ws all ->
    Forall (fun p => In (fst p, eval (snd p) r) (map (fun w => (fst w, eval (snd w) r)) all ++ gone t))
      (fold_right remember ps ws)); [|exact (X ws (incl_refl _))].
  intros all. induction ws as [|w ws IH]; cbn [fold_right]; intros I.
  - eapply Forall_impl; [|exact P]. intros p H. apply in_or_app. now right.
  - unfold remember. constructor.
    + apply in_or_app. left. apply (in_map (fun w => (fst w, eval (snd w) r))). apply I. now left.
    + specialize (IH (fun x H => I x (or_intror H))). rewrite Forall_forall in *. intros p H.
      apply filter_In in H as [H _]. auto.
Qed.

Lemma fold_nonnegative {A} (f : A -> Z) l : (forall a, 0 <= f a) -> 0 <= fold_right (fun x n => f x + n) 0 l.
Proof. intros H; induction l; simpl; [lia|]. specialize (H a). lia. Qed.
Lemma retirements_nonnegative i r : 0 <= retirements i r.
Proof. apply fold_nonnegative. intros [i' g|ss]; [destruct (Pos.eqb i' i)|]; lia. Qed.

Lemma past_sound S r s hy c l k f : describes S r s -> holds hy r -> past S hy c l k = Some f ->
  eval f r = entries l (back c k (history s)).
Proof.
  intros D H E. unfold past in E. destruct (Pos.eqb c l && negb (Pos.eqb c root)) eqn:Cl.
  - destruct (count S (Entries l)) as [g|] eqn:G; [|apply (count_sound _ _ _ _ _ D) in E; exact E].
    destruct (entails hy _) eqn:En; [|apply (count_sound _ _ _ _ _ D) in E; exact E]. injection E as <-.
    apply (entails_sound _ _ r) in En; [|exact H]. autorewrite with eval in *.
    apply (count_sound _ _ _ _ _ D) in G. cbn [counter] in G.
    apply andb_true_iff in Cl as [Cl R]. apply Pos.eqb_eq in Cl as ->. apply negb_true_iff in R. apply Pos.eqb_neq in R.
    rewrite entries_back_self by auto. lia.
  - apply (count_sound _ _ _ _ _ D) in E. exact E.
Qed.

Definition owes (o : owing) (r : valuation) (z : Z) : Prop :=
  match o with Owes f => eval f r = z | Nothing => z = 0 | Unclear => True end.

Lemma need_cases_sound S r s n hy : describes S r s -> holds hy r ->
  exists c, In c (need_cases S n hy) /\ holds (fst c) r /\ owes (snd c) r (owed (parent C) n (history s)).
Proof.
  intros D H. unfold need_cases, owed.
  assert (Dull : exists c : list form * owing, In c [([], Unclear)] /\ holds (fst c) r
                 /\ forall z, owes (snd c) r z) by (eexists; split; [left; reflexivity|]; split; [constructor|exact (fun _ => I)]).
  destruct (up_to n) as [|c k|c k l d].
  - eexists. split; [left; reflexivity|]. split; [constructor|]. cbn [snd].
    destruct (count S (Entries (producer_loop n))) as [f|] eqn:E; [|exact I].
    exact (count_sound _ _ _ _ _ D E).
  - destruct (count S (Iteration c)) as [i|] eqn:Ci; [|destruct Dull as (x & ? & ? & ?); exists x; auto].
    pose proof (count_sound _ _ _ _ _ D Ci) as Ei. cbn [States.counter] in Ei.
    set (rc := shift i (- Z.of_nat k - 1)) in *.
    assert (Er : eval rc r = iteration (parent C) c (history s) - Z.of_nat k - 1) by (unfold rc; autorewrite with eval; lia).
    destruct (Z.ltb_spec (Z.of_nat k) (iteration (parent C) c (history s))) as [L|L].
    + assert (Hr : holds [rc] r) by (constructor; [lia|constructor]).
      eexists. split; [left; reflexivity|]. split; [exact Hr|]. cbn [snd].
      destruct (past S (rc :: hy) c (producer_loop n) k) as [f|] eqn:P; [|exact Logic.I].
      refine (past_sound S r s (rc :: hy) c _ k f D _ P). constructor; [lia|exact H].
    + eexists. split; [right; left; reflexivity|]. split; [|reflexivity]. constructor; [autorewrite with eval; lia|constructor].
  - destruct (count S (Iteration c)) as [i|] eqn:Ci; [|destruct Dull as (x & ? & ? & ?); exists x; auto].
    destruct (count S (Iteration l)) as [j|] eqn:Cj; [|destruct Dull as (x & ? & ? & ?); exists x; auto].
    destruct (count S (Past c k _)) as [most|] eqn:Cm; [|destruct Dull as (x & ? & ? & ?); exists x; auto].
    destruct (count S (Past c (Datatypes.S k) _)) as [least|] eqn:Cl; [|destruct Dull as (x & ? & ? & ?); exists x; auto].
    pose proof (count_sound _ _ _ _ _ D Ci) as Ei. pose proof (count_sound _ _ _ _ _ D Cj) as Ej.
    pose proof (count_sound _ _ _ _ _ D Cm) as Em. pose proof (count_sound _ _ _ _ _ D Cl) as El.
    cbn [States.counter] in Ei, Ej, Em, El. cbv zeta. rewrite <- Em, <- El, <- Ej.
    set (rc := shift i (- Z.of_nat k - 1)) in *.
    assert (Er : eval rc r = iteration (parent C) c (history s) - Z.of_nat k - 1) by (unfold rc; autorewrite with eval; lia).
    set (f := shift (plus least j) (- d)). assert (Ef : eval f r = eval least r + eval j r - d)
      by (unfold f; autorewrite with eval; lia).
    assert (Ec : eval (shift j (- d - 1)) r = eval j r - d - 1) by (autorewrite with eval; lia).
    destruct (Z.ltb_spec (Z.of_nat k) (iteration (parent C) c (history s))) as [L|L]; cbn [andb].
    + destruct (Z.ltb_spec d (eval j r)) as [J|J].
      * destruct (Z_le_dec (eval f r) (eval most r)).
        { eexists. split; [left; reflexivity|]. split; [cases_of|cbn [snd owes]; lia]. }
        eexists. split; [right; left; reflexivity|]. split; [cases_of|cbn [snd owes]; lia].
      * eexists. split; [do 2 right; left; reflexivity|]. split; [cases_of|reflexivity].
    + eexists. split; [do 3 right; left; reflexivity|]. split; [cases_of|reflexivity].
Qed.

Lemma owings_sound S r s ns : describes S r s -> forall hy os, holds hy r -> owings S ns hy = Some os ->
  exists o, In o os /\ holds (fst o) r
  /\ forall R, satisfied (parent C) ns (history s) R
     <-> Forall (fun d => eval (snd d) r <= retirements (fst d) R) (snd o).
Proof.
  intros D. induction ns as [|n ns IH]; intros hy os H E; cbn [owings] in E.
  { injection E as <-. exists (hy, []). split; [left; reflexivity|]. split; [exact H|]. intros R. split; constructor. }
  destruct (all_some _) as [oss|] eqn:A; [|discriminate]. injection E as <-.
  destruct (need_cases_sound S r s n hy D H) as (c & Ic & Hc & Oc).
  destruct (all_some_in _ _ _ A (in_map _ _ _ Ic)) as (os & Eo & Io). cbv beta in Eo.
  destruct (contradict hy (fst c)) eqn:K; [exfalso; eapply contradict_sound; eauto|].
  assert (H' : holds (fst c ++ hy) r) by (apply Forall_app; auto).
  destruct (snd c) as [f| |]; [| |discriminate]; cbn [owes] in Oc.
  - destruct (owings S ns (fst c ++ hy)) as [os'|] eqn:O; [|discriminate]. injection Eo as <-.
    destruct (IH _ _ H' O) as (o & Ix & Ho & X). exists (fst o, (producer n, f) :: snd o).
    split; [apply in_concat; exists (map (fun o : owings_of => (fst o, (producer n, f) :: snd o)) os'); split; [exact Io|];
            exact (in_map (fun o : owings_of => (fst o, (producer n, f) :: snd o)) _ _ Ix)|].
    split; [exact Ho|]. intros R. unfold satisfied. cbn [snd]. rewrite !Forall_cons_iff. cbn [fst snd]. rewrite Oc.
    split; intros [? ?]; (split; [assumption|]); apply X; assumption.
  - destruct (IH _ _ H' Eo) as (o & Ix & Ho & X). exists o. split; [apply in_concat; eauto|]. split; [exact Ho|].
    intros R. rewrite <- X. unfold satisfied. rewrite Forall_cons_iff, Oc. pose proof (retirements_nonnegative (producer n) R).
    tauto.
Qed.

Lemma rounds_before_sound S r s gs : describes S r s -> all_some (map (rounds_before S) (groups C)) = Some gs ->
  Forall2 (fun g p => fst p = fst g /\ eval (snd p) r = before_cut (snd g) (history s)) (groups C) gs.
Proof.
  intros D. revert gs. induction (groups C) as [|[g [l cuts]] all IH]; intros gs E; cbn [map all_some] in E.
  - injection E as <-. constructor.
  - match type of E with match ?x with _ => _ end = _ => destruct x as [p|] eqn:B; [|discriminate] end.
    destruct (all_some (map (rounds_before S) all)) as [ps|] eqn:A; [|discriminate]. injection E as <-. constructor; [|auto].
    unfold rounds_before in B; cbn [fst snd] in B. unfold before_cut; cbn [fst snd]. destruct cuts as [|cut cuts].
    + injection B as <-. cbn [fst snd]. split; [reflexivity|]. rewrite eval_number. clear. symmetry.
      induction (history s) as [|[| |] t IH]; cbn [base find]; auto.
    + destruct (count S (Base (cut :: cuts) l)) as [f|] eqn:Cf; [|discriminate]. injection B as <-. split; [reflexivity|].
      exact (count_sound _ _ _ _ _ D Cf).
Qed.

Lemma owing_right_sound gs ws ps o r : owing_right gs ws ps o = true -> holds (fst o) r ->
  forall R, Forall (fun g => in_order (fst g) (eval (snd g) r) R) gs ->
  waits_pass (map (fun w => (fst w, eval (snd w) r)) ps) R ->
  (waits_pass (map (fun w => (fst w, eval (snd w) r)) ws) R
   <-> Forall (fun d => eval (snd d) r <= retirements (fst d) R) (snd o)).
Proof.
  intros E H R Gs Ps. destruct o as [hy ds]. unfold owing_right in E. cbn [fst snd] in *.
  repeat match type of E with _ && _ = true => let E' := fresh "E" in apply andb_true_iff in E as [E E'] end.
  rename E into A1, E5 into A2, E4 into A3, E3 into A0, E2 into A4, E1 into A5, E0 into A6.
  rewrite forallb_forall in A0, A2, A3, A4, A5, A6. rewrite Forall_forall in Gs.
  unfold waits_pass in Ps. rewrite Forall_forall in Ps.
  assert (Right : forall g, In g gs -> exists m j qs, 0 <= m /\ incl qs ps /\ position_right hy ws qs ds g j = true
    /\ (forall s, has_signal s (fst g) = true -> value_of s R = m * signalled s (fst g) + signalled s (firstn j (fst g)))
    /\ (forall i, has_label i (fst g) = true ->
         retirements i R = (eval (snd g) r + m) * labelled i (fst g) + labelled i (firstn j (fst g)))).
  { intros g Ig. destruct (Gs g Ig) as (m & j & Hm & Hj & Hs & Hi). specialize (A6 g Ig). rewrite forallb_forall in A6.
    assert (P : position_right hy ws [] ds g j || position_right hy ws ps ds g j = true) by (apply A6; apply in_seq; lia).
    apply orb_true_iff in P as [P|P]; [exists m, j, []|exists m, j, ps]; repeat split; auto; [intros x []|apply incl_refl]. }
  assert (Plain : forall f m, absent rounds f = true -> eval f (update r rounds m) = eval f r).
  { intros f m Af. unfold absent in Af. apply negb_true_iff in Af. now apply eval_update. }
  assert (Hy : forall m, holds hy (update r rounds m)) by (intros; now apply holds_update).
  assert (Reach : forall n c all f m, absent rounds f = true ->
    eval (reached n c all f) (update r rounds m) = n * eval all (update r rounds m) + c - eval f r).
  { intros n c all f m Af. unfold reached. autorewrite with eval. rewrite (Plain f m Af). lia. }
  assert (Now_ : forall m, eval (variable rounds) (update r rounds m) = m) by (intros; rewrite eval_variable; apply update_eq).
  assert (Values : forall g m j qs, In g gs -> incl qs (ws ++ ps) ->
    (forall s, has_signal s (fst g) = true -> value_of s R = m * signalled s (fst g) + signalled s (firstn j (fst g))) ->
    (forall w, In w qs -> eval (snd w) r <= value_of (fst w) R) ->
    holds (map (fun w => reached (signalled (fst w) (fst g)) (signalled (fst w) (firstn j (fst g))) (variable rounds) (snd w))
             (filter (fun w : semaphore * form => has_signal (fst w) (fst g)) qs)) (update r rounds m)).
  { intros g m j qs Ig Iq Hs W. apply Forall_map, Forall_forall. intros w Iw. apply filter_In in Iw as [Iw Sw].
    rewrite Reach by (apply A2, Iq, Iw). rewrite Now_. specialize (W w Iw). rewrite (Hs _ Sw) in W. lia. }
  assert (All : forall g m, In g gs -> eval (plus (snd g) (variable rounds)) (update r rounds m) = eval (snd g) r + m).
  { intros g m Ig. rewrite eval_plus, Now_, Plain by (exact (A0 g Ig)). reflexivity. }
  assert (Pass : forall qs, incl qs ps -> forall w, In w qs -> eval (snd w) r <= value_of (fst w) R).
  { intros qs Iq w Iw. exact (Ps _ (in_map (fun w => (fst w, eval (snd w) r)) _ _ (Iq _ Iw))). }
  unfold waits_pass. rewrite !Forall_forall. split.
  - intros W d Id. specialize (A5 d Id). apply existsb_exists in A5 as (g & Ig & Lg).
    destruct (Right g Ig) as (m & j & qs & Hm & Iq & P & Hs & Hi). destruct g as [g before]. cbn [fst snd] in *.
    unfold position_right in P. apply andb_true_iff in P as [P _]. rewrite forallb_forall in P.
    assert (Idg : In d (filter (fun d => has_label (fst d) g) ds)) by (apply filter_In; auto).
    specialize (P _ (in_map (fun d => reached (labelled (fst d) g) (labelled (fst d) (firstn j g))
      (plus before (variable rounds)) (snd d)) _ _ Idg)).
    destruct (Z_le_dec (eval (snd d) r) (retirements (fst d) R)) as [|N]; [auto|exfalso].
    eapply contradict_sound; [exact P|apply (Hy m)|]. constructor; [rewrite Now_; exact Hm|]. constructor.
    + rewrite eval_negation, Reach by (apply A3; auto). pose proof (All (g, before) m Ig) as Al. cbn [snd] in Al. rewrite Al. rewrite (Hi _ Lg) in N. lia.
    + apply Forall_app; split; apply (Values (g, before)); auto.
      * apply incl_appl, incl_refl.
      * intros w Iw. exact (W _ (in_map (fun w => (fst w, eval (snd w) r)) _ _ Iw)).
      * now apply incl_appr.
      * apply Pass, Iq.
  - intros Dn w' Iw'. apply in_map_iff in Iw' as (w & <- & Iw). cbn [fst snd].
    specialize (A4 w Iw). apply existsb_exists in A4 as (g & Ig & Sg).
    destruct (Right g Ig) as (m & j & qs & Hm & Iq & P & Hs & Hi). destruct g as [g before]. cbn [fst snd] in *.
    unfold position_right in P. apply andb_true_iff in P as [_ P]. rewrite forallb_forall in P.
    assert (Iwg : In w (filter (fun w => has_signal (fst w) g) ws)) by (apply filter_In; auto).
    specialize (P _ (in_map (fun w => reached (signalled (fst w) g) (signalled (fst w) (firstn j g))
      (variable rounds) (snd w)) _ _ Iwg)).
    destruct (Z_le_dec (eval (snd w) r) (value_of (fst w) R)) as [|N]; [auto|exfalso].
    eapply contradict_sound; [exact P|apply (Hy m)|]. constructor; [rewrite Now_; exact Hm|]. constructor.
    + rewrite eval_negation, Reach by (apply A2, in_or_app; auto). rewrite Now_. rewrite (Hs _ Sg) in N. lia.
    + apply Forall_app; split.
      * apply Forall_map. rewrite Forall_forall. intros d Id. apply filter_In in Id as [Id Ld].
        rewrite Reach by (apply A3; auto). pose proof (All (g, before) m Ig) as Al. cbn [snd] in Al. rewrite Al. specialize (Dn _ Id).
        rewrite (Hi _ Ld) in Dn. lia.
      * apply (Values (g, before)); auto; [now apply incl_appr|apply Pass, Iq].
Qed.

Lemma issue_right_sound S s i : possible S s -> issue_right S i = true -> needs C i <> None /\ claim i (waits s) (history s).
Proof.
  intros [r D] E. unfold issue_right in E. destruct (needs C i) as [ns|] eqn:N; [|discriminate].
  split; [congruence|]. intros ns' E' R Gs Gone. rewrite N in E'. injection E' as <-.
  destruct (all_some _) as [gs|] eqn:B; [|discriminate].
  destruct (owings S ns (facts S)) as [os|] eqn:O; [|discriminate]. rewrite forallb_forall in E.
  pose proof D as (F & V & W & P). destruct (owings_sound S r s ns D _ _ F O) as (o & Io & Ho & X).
  rewrite X, W. apply (owing_right_sound gs (pending S) (passed S)); auto.
  - pose proof (rounds_before_sound S r s gs D B) as Y. clear - Y Gs. induction Y as [|g p all ps [Y1 Y2] Y IH]; [constructor|].
    inversion_clear Gs. constructor; [now rewrite Y1, Y2|auto].
  - unfold waits_pass in *. rewrite Forall_forall in *. intros w Iw. apply in_map_iff in Iw as (p & <- & Ip). auto.
Qed.

Lemma execute_issue_sound S s i g Ss : possible S s -> execute_issue S i g = Some Ss ->
  (needs C i <> None /\ claim i (waits s) (history s)) /\ in_range C g (Issued i g (waits s) :: history s)
  /\ exists S', In S' Ss /\ possible S' (State (values s) [] (Issued i g (waits s) :: history s)).
Proof.
  intros P E. unfold execute_issue in E. destruct (change_all S (issued S i g) (ghosts C)) as [m|] eqn:M; [|discriminate].
  destruct (issue_right S i) eqn:I; [|discriminate]. destruct (range_right _ g) eqn:Rg; [|discriminate]. injection E as <-.
  split; [now apply (issue_right_sound S)|]. destruct P as [r D].
  set (t := Issued i g (waits s) :: history s).
  assert (D' : describes (Symbolic m (facts S) [] (fold_right remember (passed S) (pending S))) r (State (values s) [] t)).
  { pose proof D as (F & V & W & P). split; [exact F|]. split; [|split; [reflexivity|]].
    - apply (change_all_sound C S r s (issued S i g) m t D M). intros y h f Fx Ef. eapply issued_sound; eauto.
    - cbn [passed history]. unfold t. rewrite W. now apply remembered_sound. }
  split; [|eexists; split; [left; reflexivity|]; exists r; exact D'].
  unfold in_range, range_right in *. destruct g as [w|]; [|constructor].
  destruct (count _ (Sent w)) as [f|] eqn:Cf; [|discriminate].
  apply (entails_sound _ _ r) in Rg; [|exact (proj1 D')]. autorewrite with eval in Rg.
  apply (count_sound _ _ _ _ _ D') in Cf. cbn [States.counter history] in Cf. lia.
Qed.
End Execution.
