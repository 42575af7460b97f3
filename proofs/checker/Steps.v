(** Bisimulation, down to what is emitted: under a certificate, specification and implementation take the same steps.

    A state is what each engine has done and what of it has retired. Both systems have the same states; they differ in
    when an instruction may issue. Control and the datapath are whatever they are, so the steps are those that some run of
    the streams can take: this is the strong bisimulation of theorem 7.1, whose relation is equality. Barriers, where there
    are any, are steps of both. *)
From Coq Require Import ZArith List Bool Lia PArith.
From Checker Require Import Language States Order Engines Program Certificate.
Import ListNotations.
Local Open Scope Z_scope.

Section Steps.
Variable c : certificate.

(** All who come to a barrier do so at once, when all that they issued has retired. *)
Inductive gather (b : barrier) : list (engine * stream Linear.form) -> list place -> list place -> Prop :=
| gather_none : gather b [] [] []
| gather_in es ss t x y zeroes : mine (snd es) (Gather b) = true -> gather b ss x y ->
    gather b (es :: ss) ((t, issues t) :: x) ((Met b zeroes :: t, issues t ++ [Reset zeroes]) :: y)
| gather_out es ss q x y : mine (snd es) (Gather b) = false -> gather b ss x y -> gather b (es :: ss) (q :: x) (q :: y).

(** What can happen next; [may] says whether an instruction, with its waits, may issue after a history. *)
Inductive next (may : label -> list (semaphore * Z) -> trace -> retired -> Prop) : list place -> list place -> Prop :=
| next_begins front t r back l :
    next may (front ++ (t, r) :: back) (front ++ (Entered l :: t, r) :: back)
| next_issues front t r back i g ws :
    may i ws t (all_retired (front ++ (t, r) :: back)) ->
    next may (front ++ (t, r) :: back) (front ++ (Issued i g ws :: t, r) :: back)
| next_retires front t r back i g :
    next may (front ++ (t, r) :: back) (front ++ (t, r ++ [Done i g]) :: back)
| next_gathers x y b : gather b (streams c) x y -> next may x y.

Definition steps_to (may : label -> list (semaphore * Z) -> trace -> retired -> Prop) (x y : list place) : Prop :=
  next may x y /\ consistent c y.

(** The waits have passed. *)
Definition implemented (i : label) (ws : list (semaphore * Z)) (t : trace) (r : retired) : Prop := waits_pass ws r.

(** Condition (1) holds for all dependencies. *)
Definition specified_by (i : label) (ws : list (semaphore * Z)) (t : trace) (r : retired) : Prop :=
  exists ns, needs_in (specification c) i = Some ns /\ satisfied (parent_in (specification c)) ns t r.

Lemma combine_here {A B} (front : list A) (x : list B) a b back z : length front = length x ->
  In (a, b) (List.combine (front ++ a :: back) (x ++ b :: z)).
Proof.
  revert x; induction front as [|f front IH]; intros [|x0 x] L; simpl in *; try discriminate; [auto|].
  right. apply IH. congruence.
Qed.

Lemma may_issue front t r back i g ws : certified c = true ->
  consistent c (front ++ (t, r) :: back) -> consistent c (front ++ (Issued i g ws :: t, r) :: back) ->
  (implemented i ws t (all_retired (front ++ (t, r) :: back))
   <-> specified_by i ws t (all_retired (front ++ (t, r) :: back))).
Proof.
  intros Ok Before (After & _). destruct (certified_sound c Ok) as (_ & _ & Exact).
  apply Forall2_app_inv_r in After as (sf & sb & Af & After & Es).
  inversion After as [|[e s] ? sb' ? [(later & R & P) _] Rest]; subst. cbn [fst snd] in *.
  assert (Here : In ((e, s), (t, r)) (List.combine (streams c) (front ++ (t, r) :: back))).
  { rewrite Es. apply (combine_here sf front). clear - Af. induction Af; simpl; congruence. }
  destruct (Exact _ e s t r i g ws later Before Here R P) as (_ & ns & N & X). unfold implemented, specified_by.
  rewrite X. split; [intros; exists ns; auto|]. intros (ns' & N' & S). rewrite N in N'. injection N' as <-. exact S.
Qed.

Theorem same_steps x y : certified c = true -> consistent c x ->
  (steps_to implemented x y <-> steps_to specified_by x y).
Proof.
  intros Ok Cx. split; intros [N Cy]; (split; [|exact Cy]); inversion N; subst; try (now econstructor; eauto);
    constructor; eapply may_issue; eauto.
Qed.

(** From any states that are the same: each step of one is a step of the other, to the same state. *)
Definition bisimulation (related : list place -> list place -> Prop) : Prop :=
  forall x y, related x y ->
  (forall x', steps_to specified_by x x' -> exists y', steps_to implemented y y' /\ related x' y')
  /\ (forall y', steps_to implemented y y' -> exists x', steps_to specified_by x x' /\ related x' y').

Theorem certified_bisimilar : certified c = true -> bisimulation (fun x y => x = y /\ consistent c x).
Proof.
  intros Ok x y [<- Cx]. split; intros z S; exists z; pose proof (proj2 S) as Cz; (split; [|auto]);
    apply (same_steps x z Ok Cx); exact S.
Qed.
End Steps.
