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

(** ** An instruction issues *)

(** The facts of one case of what its needs owe, and what each then owes of which producer. *)
Definition owing : Type := list form * list (label * form).

Definition past (S : symbolic) (hy : list form) (c l : loop) (k : nat) : option form :=
  match (if Pos.eqb c l && negb (Pos.eqb c root) then count S (Entries l) else None) with
  | Some f =>
      let f := shift f (- Z.of_nat k) in
      if entails hy f then Some f else count S (Past c k l)
  | None => count S (Past c k l)
  end.

Fixpoint owings (S : symbolic) (ns : list need) (hy : list form) : option (list owing) :=
  match ns with
  | [] => Some [(hy, [])]
  | n :: ns =>
      let owe f := option_map (map (fun o => (fst o, (producer n, f) :: snd o))) in
      match up_to n with
      | Now =>
          match count S (Entries (producer_loop n)) with Some f => owe f (owings S ns hy) | None => None end
      | Back c k =>
          match count S (Iteration c) with
          | None => None
          | Some i =>
              let reached := shift i (- Z.of_nat k - 1) in
              let early := negation reached in
              let late :=
                if contradict hy [reached] then Some []
                else match past S (reached :: hy) c (producer_loop n) k with
                     | Some f => owe f (owings S ns (reached :: hy))
                     | None => None
                     end in
              let none := if contradict hy [early] then Some [] else owings S ns (early :: hy) in
              match late, none with Some a, Some b => Some (a ++ b) | _, _ => None end
          end
      end
  end.

(** The number of rounds that a group has retired in, as a variable. *)
Definition rounds : positive := 1%positive.
Definition reached (n c : Z) (f : form) : form := minus (shift (scale n (variable rounds)) c) f.

Definition position_right (hy : list form) (ws : list (semaphore * form)) (ds : list (label * form)) (g : group)
    (j : nat) : bool :=
  let done := firstn j g in
  let passed := map (fun w => reached (value_of (fst w) g) (value_of (fst w) done) (snd w))
    (filter (fun w => has_signal (fst w) g) ws) in
  let enough := map (fun d => reached (retirements (fst d) g) (retirements (fst d) done) (snd d))
    (filter (fun d => has_label (fst d) g) ds) in
  forallb (fun d => contradict hy (variable rounds :: negation d :: passed)) enough
  && forallb (fun w => contradict hy (variable rounds :: negation w :: enough)) passed.

Definition owing_right (ws : list (semaphore * form)) (o : owing) : bool :=
  let (hy, ds) := o in
  forallb (absent rounds) hy && forallb (fun w => absent rounds (snd w)) ws && forallb (fun d => absent rounds (snd d)) ds
  && forallb (fun w => existsb (has_signal (fst w)) (groups C)) ws
  && forallb (fun d => existsb (has_label (fst d)) (groups C)) ds
  && forallb (fun g => forallb (position_right hy ws ds g) (seq 0 (length g))) (groups C).

Definition issue_right (S : symbolic) (i : label) : bool :=
  match needs C i with
  | None => false
  | Some ns => match owings S ns (facts S) with
               | Some os => forallb (owing_right (pending S)) os
               | None => false
               end
  end.

Definition issued (S : symbolic) (signal : option semaphore) (x : positive) (g : ghost) : option form :=
  match g, signal with
  | Sent s, Some s' => Some (if Pos.eqb s' s then shift (get S x) 1 else get S x)
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

Definition execute_issue (S : symbolic) (i : label) (signal : option semaphore) : option (list symbolic) :=
  match change_all S (issued S signal) (ghosts C) with
  | Some m =>
      if issue_right S i && range_right (Symbolic m (facts S) []) signal
      then Some [Symbolic m (facts S) []] else None
  | None => None
  end.

Lemma issued_sound S r s i signal ws x g f : describes S r s -> find x (ghosts C) = Some g ->
  issued S signal x g = Some f -> eval f r = counter g (Issued i signal ws :: history s).
Proof.
  intros D F E. assert (X : eval (get S x) r = counter g (history s)).
  { destruct D as (_ & V & _). rewrite <- V. unfold all_values. now rewrite F. }
  destruct g as [l|l|c [|k] l|w]; cbn [issued counter] in *; try (injection E as <-; exact X).
  destruct signal as [w'|]; injection E as <-; cbn [sent]; [|exact X].
  destruct (Pos.eqb w' w); autorewrite with eval; lia.
Qed.
Lemma fold_nonnegative {A} (f : A -> Z) l : (forall a, 0 <= f a) -> 0 <= fold_right (fun x n => f x + n) 0 l.
Proof. intros H; induction l; simpl; [lia|]. specialize (H a). lia. Qed.
Lemma retirements_nonnegative i r : 0 <= retirements i r.
Proof. apply fold_nonnegative. intros a. destruct (Pos.eqb (fst a) i); lia. Qed.

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

Lemma owings_sound S r s ns : describes S r s -> forall hy os, holds hy r -> owings S ns hy = Some os ->
  exists o, In o os /\ holds (fst o) r
  /\ forall R, satisfied (parent C) ns (history s) R
     <-> Forall (fun d => eval (snd d) r <= retirements (fst d) R) (snd o).
Proof.
  intros D. induction ns as [|n ns IH]; intros hy os H E; cbn [owings] in E.
  { injection E as <-. exists (hy, []). split; [left; reflexivity|]. split; [exact H|]. intros R. split; constructor. }
  assert (Owe : forall hy f os', holds hy r -> eval f r = owed (parent C) n (history s) ->
    option_map (map (fun o : owing => (fst o, (producer n, f) :: snd o))) (owings S ns hy) = Some os' ->
    exists o, In o os' /\ holds (fst o) r
    /\ forall R, satisfied (parent C) (n :: ns) (history s) R
       <-> Forall (fun d => eval (snd d) r <= retirements (fst d) R) (snd o)).
  { intros hy' f os' H' Ef E'. destruct (owings S ns hy') as [os''|] eqn:O; [|discriminate]. injection E' as <-.
    destruct (IH _ _ H' O) as (o & Io & Ho & X). exists (fst o, (producer n, f) :: snd o).
    split; [apply (in_map (fun o : owing => (fst o, (producer n, f) :: snd o)) _ _ Io)|]. split; [exact Ho|].
    intros R. unfold satisfied. cbn [snd]. rewrite !Forall_cons_iff. cbn [fst snd]. rewrite Ef.
    split; intros [? ?]; (split; [assumption|]); apply X; assumption. }
  destruct (up_to n) as [|c k] eqn:T.
  - destruct (count S (Entries (producer_loop n))) as [f|] eqn:Cf; [|discriminate].
    apply (Owe hy f); auto. unfold owed. rewrite T. apply (count_sound _ _ _ _ _ D) in Cf. exact Cf.
  - destruct (count S (Iteration c)) as [i|] eqn:Ci; [|discriminate].
    apply (count_sound _ _ _ _ _ D) in Ci. cbn [counter] in Ci.
    set (rc := shift i (- Z.of_nat k - 1)) in *. assert (Er : eval rc r = iteration (parent C) c (history s) - Z.of_nat k - 1)
      by (unfold rc; autorewrite with eval; lia).
    match type of E with match ?l with _ => _ end = _ => destruct l as [late|] eqn:El; [|discriminate] end.
    match type of E with match ?l with _ => _ end = _ => destruct l as [none|] eqn:En; [|discriminate] end.
    injection E as <-. destruct (Z_lt_dec (Z.of_nat k) (iteration (parent C) c (history s))) as [L|L].
    + assert (Hr : holds [rc] r) by (constructor; [lia|constructor]).
      destruct (contradict hy [rc]) eqn:K; [exfalso; eapply contradict_sound; eauto|].
      assert (H' : holds (rc :: hy) r) by (constructor; [lia|exact H]).
      destruct (past S (rc :: hy) c (producer_loop n) k) as [f|] eqn:P; [|discriminate].
      destruct (Owe (rc :: hy) f late) as (o & Io & Ho & X); auto.
      * unfold owed. rewrite T. destruct (Z.ltb_spec (Z.of_nat k) (iteration (parent C) c (history s))); [|lia].
        eapply past_sound; eauto.
      * exists o. split; [apply in_or_app; auto|auto].
    + assert (He : 0 <= eval (negation rc) r) by (autorewrite with eval; lia).
      destruct (contradict hy [negation rc]) eqn:K.
      { exfalso. eapply contradict_sound; [exact K|exact H|]. constructor; [exact He|constructor]. }
      destruct (IH (negation rc :: hy) none) as (o & Io & Ho & X); [constructor; auto|exact En|].
      exists o. split; [apply in_or_app; auto|]. split; [exact Ho|]. intros R. rewrite <- X. unfold satisfied.
      rewrite Forall_cons_iff. split; [tauto|]. intros Y; split; [|exact Y]. unfold owed. rewrite T.
      destruct (Z.ltb_spec (Z.of_nat k) (iteration (parent C) c (history s))); [lia|]. apply retirements_nonnegative.
Qed.

Lemma owing_right_sound ws o r : owing_right ws o = true -> holds (fst o) r ->
  forall R, Forall (fun g => in_order g R) (groups C) ->
  (waits_pass (map (fun w => (fst w, eval (snd w) r)) ws) R
   <-> Forall (fun d => eval (snd d) r <= retirements (fst d) R) (snd o)).
Proof.
  intros E H R Gs. destruct o as [hy ds]. unfold owing_right in E. cbn [fst snd] in *.
  repeat match type of E with _ && _ = true => let E' := fresh "E" in apply andb_true_iff in E as [E E'] end.
  rename E into A1, E4 into A2, E3 into A3, E2 into A4, E1 into A5, E0 into A6.
  rewrite forallb_forall in A2, A3, A4, A5, A6. rewrite Forall_forall in Gs.
  assert (Right : forall g, In g (groups C) -> exists m j, 0 <= m /\ position_right hy ws ds g j = true
    /\ (forall s, has_signal s g = true -> value_of s R = m * value_of s g + value_of s (firstn j g))
    /\ (forall i, has_label i g = true -> retirements i R = m * retirements i g + retirements i (firstn j g))).
  { intros g Ig. destruct (Gs g Ig) as (m & j & Hm & Hj & Hs & Hi). exists m, j. repeat split; auto.
    specialize (A6 g Ig). rewrite forallb_forall in A6. apply A6. apply in_seq. lia. }
  assert (Plain : forall f m, absent rounds f = true -> eval f (update r rounds m) = eval f r).
  { intros f m Af. unfold absent in Af. apply negb_true_iff in Af. now apply eval_update. }
  assert (Hy : forall m, holds hy (update r rounds m)) by (intros; now apply holds_update).
  assert (Reach : forall n c f m, absent rounds f = true -> eval (reached n c f) (update r rounds m) = n * m + c - eval f r).
  { intros n c f m Af. unfold reached. autorewrite with eval. rewrite update_eq, Plain by auto. lia. }
  assert (Rounds : forall m, 0 <= m -> 0 <= eval (variable rounds) (update r rounds m)).
  { intros m Hm. rewrite eval_variable, update_eq. exact Hm. }
  unfold waits_pass. rewrite !Forall_forall. split.
  - intros W d Id. specialize (A5 d Id). apply existsb_exists in A5 as (g & Ig & Lg).
    destruct (Right g Ig) as (m & j & Hm & P & Hs & Hi). unfold position_right in P. apply andb_true_iff in P as [P _].
    rewrite forallb_forall in P.
    assert (Idg : In d (filter (fun d => has_label (fst d) g) ds)) by (apply filter_In; auto).
    specialize (P _ (in_map (fun d => reached (retirements (fst d) g) (retirements (fst d) (firstn j g)) (snd d)) _ _ Idg)).
    destruct (Z_le_dec (eval (snd d) r) (retirements (fst d) R)) as [|N]; [auto|exfalso].
    eapply contradict_sound; [exact P|apply (Hy m)|]. constructor; [auto|]. constructor.
    + rewrite eval_negation, Reach by (apply A3; auto). rewrite (Hi _ Lg) in N. lia.
    + apply Forall_map. rewrite Forall_forall. intros w Iw. apply filter_In in Iw as [Iw Sw].
      rewrite Reach by (apply A2; auto). rewrite <- (Z.mul_comm m), <- (Hs _ Sw).
      specialize (W _ (in_map (fun w => (fst w, eval (snd w) r)) _ _ Iw)). cbn [fst snd] in W. lia.
  - intros Dn w' Iw'. apply in_map_iff in Iw' as (w & <- & Iw). cbn [fst snd].
    specialize (A4 w Iw). apply existsb_exists in A4 as (g & Ig & Sg).
    destruct (Right g Ig) as (m & j & Hm & P & Hs & Hi). unfold position_right in P. apply andb_true_iff in P as [_ P].
    rewrite forallb_forall in P.
    assert (Iwg : In w (filter (fun w => has_signal (fst w) g) ws)) by (apply filter_In; auto).
    specialize (P _ (in_map (fun w => reached (value_of (fst w) g) (value_of (fst w) (firstn j g)) (snd w)) _ _ Iwg)).
    destruct (Z_le_dec (eval (snd w) r) (value_of (fst w) R)) as [|N]; [auto|exfalso].
    eapply contradict_sound; [exact P|apply (Hy m)|]. constructor; [auto|]. constructor.
    + rewrite eval_negation, Reach by (apply A2; auto). rewrite (Hs _ Sg) in N. lia.
    + apply Forall_map. rewrite Forall_forall. intros d Id. apply filter_In in Id as [Id Ld].
      rewrite Reach by (apply A3; auto). rewrite <- (Z.mul_comm m), <- (Hi _ Ld).
      specialize (Dn _ Id). lia.
Qed.

Lemma issue_right_sound S s i : possible S s -> issue_right S i = true -> needs C i <> None /\ claim i (waits s) (history s).
Proof.
  intros [r D] E. unfold issue_right in E. destruct (needs C i) as [ns|] eqn:N; [|discriminate].
  split; [congruence|]. intros ns' E' R Gs. rewrite N in E'. injection E' as <-.
  destruct (owings S ns (facts S)) as [os|] eqn:O; [|discriminate]. rewrite forallb_forall in E.
  pose proof D as (F & V & W). destruct (owings_sound S r s ns D _ _ F O) as (o & Io & Ho & X).
  rewrite X, W. apply owing_right_sound; auto.
Qed.

End Execution.
