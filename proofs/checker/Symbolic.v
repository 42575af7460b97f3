(** All runs of a stream at once: symbolic execution, and what it proves where an instruction issues. *)
From Coq Require Import ZArith List Bool Lia PArith Relations FMapPositive.
From Checker Require Import Linear Language States Values Iterations Waits.
Import ListNotations.
Local Open Scope Z_scope.

Section Execution.
Variable C : context.
Local Notation counter := (counter C). Local Notation all_values := (all_values C).
Local Notation within_bounds := (within_bounds C). Local Notation claims := (claims C).
Local Notation describes := (describes C). Local Notation possible := (possible C).
Local Notation count := (count C). Local Notation count_sound := (count_sound C).
Local Notation plain_sound := (plain_sound C). Local Notation execute_let := (execute_let C).
Local Notation execute_let_sound := (execute_let_sound C). Local Notation execute_enter := (execute_enter C).
Local Notation execute_enter_sound := (execute_enter_sound C). Local Notation is_ghost := (is_ghost C).
Local Notation meets_one_sound := (meets_one_sound C). Local Notation change_all_sound := (change_all_sound C).
Local Notation execute_issue := (execute_issue C). Local Notation issue_right_sound := (issue_right_sound C).
Local Notation issued_sound := (issued_sound C). Local Notation issue_right := (issue_right C).
Local Notation range_right := (range_right C). Local Notation in_range := (in_range C).

Fixpoint execute (s : stream form) (S : symbolic) : option (list symbolic) :=
  match s with
  | Skip => Some [S]
  | Seq a b =>
      match execute a S with
      | Some Ss => option_map (@concat _) (all_some (map (execute b) Ss))
      | None => None
      end
  | Let x e => execute_let S x e
  | Wait w x => if is_ghost x then None else Some [Symbolic (known S) (facts S) ((w, get S x) :: pending S)]
  | Issue i g => execute_issue S i g
  | Enter l => execute_enter S l
  | Choice a b =>
      match execute a S, execute b S with Some x, Some y => Some (x ++ y) | _, _ => None end
  | Loop hints b =>
      let heads := map annotation_state hints in
      if meets_one hints S
      then match all_some (map (execute b) heads) with
           | Some Sss => if forallb (forallb (meets_one hints)) Sss then Some heads else None
           | None => None
           end
      else None
  end.

Lemma within_bounds_shorter d t : within_bounds (d ++ t) -> within_bounds t.
Proof. intros B l b F. specialize (B l b F). pose proof (entries_app l d t). lia. Qed.

Lemma within_bounds_before {f} (s : stream f) x y : run s x y -> within_bounds (history y) -> within_bounds (history x).
Proof. intros R B. destruct (run_extends s x y R) as [d E]. rewrite E in B. eauto using within_bounds_shorter. Qed.

Definition sound (s : stream form) : Prop := forall S Ss x y,
  execute s S = Some Ss -> possible S x -> run s x y -> within_bounds (history y) -> claims (history x) ->
  claims (history y) /\ exists S', In S' Ss /\ possible S' y.

Theorem execute_sound s : sound s.
Proof.
  induction s; intros S Ss p q E P R B K; cbn [execute run] in *.
  - injection E as <-. subst q. split; [exact K|]. exists S. split; [left; reflexivity|exact P].
  - destruct R as (z & R1 & R2). destruct (execute s1 S) as [Ss1|] eqn:E1; [|discriminate].
    destruct (all_some (map (execute s2) Ss1)) as [Sss|] eqn:E2; [|discriminate]. injection E as <-.
    pose proof (within_bounds_before _ _ _ R2 B) as B1.
    destruct (IHs1 _ _ _ _ E1 P R1 B1 K) as (K1 & S1 & I1 & P1).
    destruct (all_some_in _ _ _ E2 (in_map (execute s2) _ _ I1)) as (Ss2 & E3 & I2).
    destruct (IHs2 _ _ _ _ E3 P1 R2 B K1) as (K2 & S2 & I3 & P2).
    split; [exact K2|]. exists S2. split; [|exact P2]. apply in_concat. eauto.
  - destruct R as (v & V & ->). split; [exact K|]. eapply execute_let_sound; eauto.
  - subst q. destruct (is_ghost x) eqn:G; [discriminate|]. injection E as <-. split; [exact K|].
    eexists; split; [left; reflexivity|]. destruct P as [r D]. exists r. pose proof D as (F & V & W).
    split; [exact F|]. split; [exact V|]. cbn [waits pending map fst snd]. rewrite W. f_equal. f_equal.
    eapply plain_sound; [exact D|]. now rewrite G.
  - subst q. unfold execute_issue in E. destruct (change_all S (issued S signal) (ghosts C)) as [m|] eqn:M; [|discriminate].
    destruct (issue_right S i) eqn:I; [|discriminate].
    destruct (range_right _ signal) eqn:Rg; [|discriminate]. injection E as <-.
    destruct P as [r D].
    assert (D' : describes (Symbolic m (facts S) []) r (State (values p) [] (Issued i signal (waits p) :: history p))).
    { pose proof D as (F & V & W). split; [exact F|]. split; [|reflexivity].
      intros x. apply (change_all_sound S r p (issued S signal) m (Issued i signal (waits p) :: history p) D M).
      intros y g f Fx Ef. eapply issued_sound; eauto. }
    split; [|eexists; split; [left; reflexivity|]; exists r; exact D'].
    split; [eapply issue_right_sound; [exists r; exact D|exact I]|]. split; [|exact K].
    unfold in_range, range_right in *. destruct signal as [w|]; [|constructor].
    destruct (count _ (Sent w)) as [f|] eqn:Cf; [|discriminate].
    apply (entails_sound _ _ r) in Rg; [|exact (proj1 D')]. autorewrite with eval in Rg.
    apply (count_sound _ _ _ _ _ D') in Cf. cbn [counter history] in Cf. lia.
  - subst q. split; [exact K|]. eapply execute_enter_sound; eauto.
  - destruct (execute s1 S) as [Sa|] eqn:E1; [|discriminate]. destruct (execute s2 S) as [Sb|] eqn:E2; [|discriminate].
    injection E as <-. destruct R as [R|R].
    + destruct (IHs1 _ _ _ _ E1 P R B K) as (? & S' & ? & ?). split; [auto|]. exists S'. split; [apply in_or_app; auto|auto].
    + destruct (IHs2 _ _ _ _ E2 P R B K) as (? & S' & ? & ?). split; [auto|]. exists S'. split; [apply in_or_app; auto|auto].
  - destruct (meets_one hints S) eqn:M; [|discriminate].
    destruct (all_some _) as [Sss|] eqn:Eb; [|discriminate].
    destruct (forallb _ Sss) eqn:Mb; [|discriminate]. injection E as <-. rewrite forallb_forall in Mb.
    pose proof (meets_one_sound _ _ _ P M) as P0. clear P M S.
    induction R as [x0|x0 y0 z0 R1 R2 IH].
    + split; [exact K|]. exact P0.
    + pose proof (within_bounds_before (Loop hints s) y0 z0 R2 B) as B1. destruct P0 as (S0 & I0 & P0).
      destruct (all_some_in _ _ _ Eb (in_map (execute s) _ _ I0)) as (Sb & Es & Ib).
      destruct (IHs _ _ _ _ Es P0 R1 B1 K) as (K1 & S1 & I1 & P1).
      apply IH; auto. specialize (Mb _ Ib). rewrite forallb_forall in Mb. eapply meets_one_sound; eauto.
Qed.

(** At the start: nothing has been entered, the variables are anything. *)
Definition start : symbolic :=
  Symbolic (fold_right (fun p m => PositiveMap.add (fst p)
    (number (match snd p with Entries l => if Pos.eqb l root then 1 else 0 | Past _ _ l => if Pos.eqb l root then 1 else 0
             | Iteration _ | Sent _ => 0 end)) m) (PositiveMap.empty form) (ghosts C)) [] [].

Lemma back_nil c k : back c k [] = [].
Proof. induction k; simpl; auto. Qed.

Lemma start_sound env : possible start (State env [] []).
Proof.
  exists env. split; [constructor|]. split; [|reflexivity]. intros x. cbn [values history].
  unfold all_values, get, start; cbn [known]. induction (ghosts C) as [|[y g] gs IH]; cbn [fold_right find fst snd].
  - now rewrite PositiveMap.gempty, eval_variable.
  - destruct (Pos.eqb_spec y x) as [->|N].
    + rewrite PositiveMap.gss, eval_number. destruct g; cbn [counter entries iteration]; auto. now rewrite back_nil.
    + rewrite PositiveMap.gso by congruence. exact IH.
Qed.

Theorem execute_claims s Ss t : execute s start = Some Ss -> runs s t -> within_bounds t -> claims t.
Proof.
  intros E (env & y & R & <-) B. eapply (execute_sound s); eauto; [apply start_sound|exact I].
Qed.
End Execution.
