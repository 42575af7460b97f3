(** All runs of a stream at once: symbolic execution, and what it proves where an instruction issues. *)
From Coq Require Import ZArith List Bool Lia PArith Relations FMapPositive.
From Checker Require Import Linear Language States Values Iterations Waits.
Import ListNotations.
Local Open Scope Z_scope.

Section Execution.
Variable C : context.
Local Notation all_values := (all_values C). Local Notation within_bounds := (within_bounds C).
Local Notation claims := (claims C). Local Notation possible := (possible C).
Local Notation is_ghost := (is_ghost C).

Fixpoint execute (s : stream form) (S : symbolic) : option (list symbolic) :=
  match s with
  | Skip => Some [S]
  | Seq a b =>
      match execute a S with
      | Some Ss => option_map (@concat _) (all_some (map (execute b) Ss))
      | None => None
      end
  | Let x e => execute_let C S x e
  | Wait w x => if is_ghost x then None else Some [Symbolic (known S) (facts S) ((w, get S x) :: pending S) (passed S)]
  | Issue i g => execute_issue C S i g
  | Enter l => execute_enter C S l
  | Assume x b => execute_assume C S x b
  | Meet b ss => execute_meet C S b ss
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
    eexists; split; [left; reflexivity|]. destruct P as [r D]. exists r. pose proof D as (F & V & W & P).
    split; [exact F|]. split; [exact V|]. split; [|exact P]. cbn [waits pending map fst snd]. rewrite W. f_equal. f_equal.
    eapply plain_sound; [exact D|]. now rewrite G.
  - subst q. destruct (execute_issue_sound C S p i signal Ss P E) as (Cl & Rg & X). split; [|exact X].
    split; [exact Cl|]. split; [exact Rg|exact K].
  - subst q. destruct (execute_enter_sound C S p l Ss P E B) as (N & X). split; [|exact X]. split; [exact N|exact K].
  - destruct R as [-> R]. split; [exact K|]. eapply execute_assume_sound; eauto.
  - subst q. destruct (execute_meet_sound C S p b ss Ss P E) as ((T & A) & X). split; [|exact X].
    split; [exact T|]. split; [exact A|exact K].
  - destruct (execute s1 S) as [Sa|] eqn:E1; [|discriminate]. destruct (execute s2 S) as [Sb|] eqn:E2; [|discriminate].
    injection E as <-. destruct R as [R|R].
    + destruct (IHs1 _ _ _ _ E1 P R B K) as (? & S' & ? & ?). split; [auto|]. exists S'. split; [apply in_or_app; auto|auto].
    + destruct (IHs2 _ _ _ _ E2 P R B K) as (? & S' & ? & ?). split; [auto|]. exists S'. split; [apply in_or_app; auto|auto].
  - destruct (meets_one hints S) eqn:M; [|discriminate].
    destruct (all_some _) as [Sss|] eqn:Eb; [|discriminate].
    destruct (forallb _ Sss) eqn:Mb; [|discriminate]. injection E as <-. rewrite forallb_forall in Mb.
    pose proof (meets_one_sound C _ _ _ P M) as P0. clear P M S.
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
             | _ => 0 end)) m) (PositiveMap.empty form) (ghosts C)) [] [] [].

Lemma back_nil c k : back c k [] = [].
Proof. induction k; simpl; auto. Qed.

Lemma start_sound env : possible start (State env [] []).
Proof.
  exists env. split; [constructor|]. split; [|split; [reflexivity|constructor]]. intros x. cbn [values history].
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
