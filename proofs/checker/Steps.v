(** Bisimulation, down to what is emitted: under a certificate, specification and implementation take the same steps.

    A state is what each engine has done and what of it has retired. Both systems have the same states; they differ in
    when an instruction may issue. Control and the datapath are whatever they are, so the steps are those that some run of
    the streams can take: this is the strong bisimulation of theorem 7.1, whose relation is equality. *)
From Coq Require Import ZArith List Bool Lia PArith.
From Checker Require Import Language States Order Certificate.
Import ListNotations.
Local Open Scope Z_scope.

Section Steps.
Variable c : certificate.

(** Of one engine: what it has done, and what of that has retired, in order. *)
Definition place : Type := trace * retired.

Definition promised (t : trace) : Prop := forall l b, find l (maxima c) = Some b -> entries l t <= b.

(** An engine on its way through its stream: there is a run that goes on from here. *)
Definition on_its_way (es : engine * stream Linear.form) (p : place) : Prop :=
  (exists later, runs (snd es) (later ++ fst p) /\ promised (later ++ fst p))
  /\ exists rest, issues (fst p) = snd p ++ rest.

Definition consistent (x : list place) : Prop := Forall2 on_its_way (streams c) x.

Definition all_retired (x : list place) : retired := concat (map snd x).

(** What an engine can do next; [may] says whether an instruction, with its waits, may issue after a history. *)
Inductive next (may : label -> list (semaphore * Z) -> trace -> retired -> Prop) : list place -> list place -> Prop :=
| next_begins front t r back l :
    next may (front ++ (t, r) :: back) (front ++ (Entered l :: t, r) :: back)
| next_issues front t r back i g ws :
    may i ws t (all_retired (front ++ (t, r) :: back)) ->
    next may (front ++ (t, r) :: back) (front ++ (Issued i g ws :: t, r) :: back)
| next_retires front t r back x :
    next may (front ++ (t, r) :: back) (front ++ (t, r ++ [x]) :: back).

Definition steps_to (may : label -> list (semaphore * Z) -> trace -> retired -> Prop) (x y : list place) : Prop :=
  next may x y /\ consistent y.

(** The waits have passed. *)
Definition implemented (i : label) (ws : list (semaphore * Z)) (t : trace) (r : retired) : Prop := waits_pass ws r.

(** Condition (1) holds for all dependencies. *)
Definition specified_by (i : label) (ws : list (semaphore * Z)) (t : trace) (r : retired) : Prop :=
  exists ns, needs_in (specification c) i = Some ns /\ satisfied (parent_in (specification c)) ns t r.

Lemma consistent_retirement x : consistent x -> retirement (map snd (streams c)) (all_retired x).
Proof.
  intros H. exists (map snd x). split; [|reflexivity]. unfold consistent in H.
  induction H as [|[e s] [t r] ss ps [(later & R & _) [rest E]] H IH]; cbn [map snd fst] in *; constructor; [|exact IH].
  exists (later ++ t), (rest ++ issues later). split; [exact R|]. rewrite issues_app, E. now rewrite app_assoc.
Qed.

Lemma may_issue front t r back i g ws : certified c = true ->
  consistent (front ++ (t, r) :: back) -> consistent (front ++ (Issued i g ws :: t, r) :: back) ->
  (implemented i ws t (all_retired (front ++ (t, r) :: back))
   <-> specified_by i ws t (all_retired (front ++ (t, r) :: back))).
Proof.
  intros Ok Before After. destruct (certified_sound c Ok) as [_ Exact].
  apply consistent_retirement in Before. unfold consistent in After.
  apply Forall2_app_inv_r in After as (sf & sb & _ & After & Es).
  inversion After as [|[e s] ? sb' ? [(later & R & P) _] Rest]; subst. cbn [fst snd] in *.
  assert (I : In (e, s) (streams c)) by (rewrite Es; apply in_or_app; right; left; reflexivity).
  destruct (Exact e s _ i g ws later t I R P eq_refl) as (_ & ns & N & X). unfold implemented, specified_by.
  rewrite (X _ Before). split; [intros; exists ns; auto|]. intros (ns' & N' & S). rewrite N in N'. injection N' as <-. exact S.
Qed.

Theorem same_steps x y : certified c = true -> consistent x ->
  (steps_to implemented x y <-> steps_to specified_by x y).
Proof.
  intros Ok Cx. split; intros [N Cy]; (split; [|exact Cy]); inversion N; subst; try constructor;
    eapply may_issue; eauto.
Qed.

(** From any states that are the same: each step of one is a step of the other, to the same state. *)
Definition bisimulation (related : list place -> list place -> Prop) : Prop :=
  forall x y, related x y ->
  (forall x', steps_to specified_by x x' -> exists y', steps_to implemented y y' /\ related x' y')
  /\ (forall y', steps_to implemented y y' -> exists x', steps_to specified_by x x' /\ related x' y').

Theorem certified_bisimilar : certified c = true -> bisimulation (fun x y => x = y /\ consistent x).
Proof.
  intros Ok x y [<- Cx]. split; intros z S; exists z; pose proof (proj2 S) as Cz; (split; [|auto]);
    apply (same_steps x z Ok Cx); exact S.
Qed.
End Steps.
