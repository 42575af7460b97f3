(** Programs as every engine sees them: for each loop, the body that the engine runs.

    Loops and instructions are keys into the maps of the semantics, so identifiers are unique (UniqueLoopIds and
    UniqueInstrIds of the paper, section 7.4). The block of the program is one more body, that of [top]. Tree.v makes such tables
    of syntax trees. *)
From Coq Require Import Arith ZArith Lia List Bool.
Import ListNotations.

Definition engine := nat.
Definition loop := nat.         (* or a branch of a conditional *)
Definition instr := nat.
Definition top : loop := 0.

Inductive stmt :=
  | Instr (i : instr)
  | Loop (l : loop)
  | If (a b : loop).            (* then, else *)

Record program := {
  body : engine -> loop -> list stmt;
  parent : loop -> loop;
  depth : loop -> nat;
  loop_of : instr -> loop;
  engine_of : instr -> engine;
  signals : instr -> bool;      (* only what is waited for updates a semaphore: *)
  share : instr -> nat }.       (* of those of its loop and engine, that of this number *)

(** The bodies that a statement holds, and the instructions that stand directly in a body. *)
Definition child (s : stmt) : list loop := match s with Instr _ => [] | Loop l => [l] | If a b => [a; b] end.
Definition children (b : list stmt) : list loop := flat_map child b.
Definition instrs (b : list stmt) : list instr := flat_map (fun s => match s with Instr i => [i] | _ => [] end) b.

(** [under P A B]: B is A, or stands in it. *)
Inductive under (P : program) (A : loop) : loop -> Prop :=
  | under_refl : under P A A
  | under_step : forall B, B <> top -> under P A (parent P B) -> under P A B.

Record well_formed (P : program) : Prop := {
  wf_parent_top : parent P top = top;
  wf_depth : forall l, l <> top -> depth P l = S (depth P (parent P l));
  wf_child : forall e l c, In c (children (body P e l)) -> c <> top /\ parent P c = l;
  wf_instr : forall e l i, In (Instr i) (body P e l) -> loop_of P i = l /\ engine_of P i = e;
  wf_instrs : forall e l, NoDup (instrs (body P e l));
  wf_children : forall e l, NoDup (children (body P e l)) }.

(** ** Dependencies *)

(** A consumer waits for all that [producer] did up to the iteration [distance] back of [carrier]. [within]: of the run
    of [carrier] that it stands in, and for nothing where that iteration is of none. Not [within]: also for what earlier
    runs did, and the iteration in front of a run is the last of these. That is the order between reads of a value and its
    next write, and a dependency that all loops around carry too ([earlier_exact]). [clamp]: of the iteration [distance]
    back, only up to an iteration of the producer's loop, which is counted from that of the consumer, [Some z] back. *)
Record dep := { producer : instr; carrier : loop; distance : nat; within : bool; history : bool; clamp : option Z }.

(** A mask is only needed where a distance may point in front of the first iteration. *)
Definition masked (d : dep) : bool := within d && (0 <? distance d).

(** The cases that have an exact formula over the counters of the consumer's engine (section 5.2): *)
Inductive allocatable (P : program) (c : instr) (d : dep) : Prop :=
  (** the producer stands in the carrier itself; *)
  | back : loop_of P (producer d) = carrier d -> history d = false -> clamp d = None -> allocatable P c d
  (** the dependency is not carried, and the producer stands deeper; *)
  | now : loop_of P (producer d) <> carrier d -> under P (carrier d) (loop_of P (producer d)) -> distance d = 0 ->
      history d = false -> clamp d = None -> allocatable P c d
  (** it is carried at distance 1, the producer stands deeper and the consumer comes first; *)
  | passed : forall pre X rest B, loop_of P (producer d) <> carrier d -> distance d = 1 ->
      B <> top -> parent P B = carrier d -> under P B (loop_of P (producer d)) ->
      body P (engine_of P c) (carrier d) = pre ++ X :: rest -> In B (children rest) ->
      (X = Instr c \/ exists C, In C (child X) /\ under P C (loop_of P c)) ->
      history d = false -> clamp d = None -> allocatable P c d
  (** it is carried at distance 1, and they stand in the two branches of a conditional, of which one runs; *)
  | other_branch : forall pre a b rest A B, loop_of P (producer d) <> carrier d -> distance d = 1 ->
      body P (engine_of P c) (carrier d) = pre ++ If a b :: rest -> In A [a; b] -> In B [a; b] -> A <> B ->
      under P A (loop_of P c) -> under P B (loop_of P (producer d)) -> history d = false -> clamp d = None -> allocatable P c d
  (** a history tells: registers hold what the counter of the producer's loop was when an iteration ended; *)
  | ended : under P (carrier d) (loop_of P (producer d)) -> 1 <= distance d -> history d = true -> clamp d = None ->
      allocatable P c d
  (** or two of them, and consumer and producer share the producer's loop, whose iterations count as well. *)
  | clamped : forall z, clamp d = Some z -> within d = true -> 1 <= distance d -> loop_of P (producer d) <> carrier d ->
      under P (carrier d) (loop_of P (producer d)) -> under P (loop_of P (producer d)) (loop_of P c) -> allocatable P c d.

Definition well_placed (P : program) (c : instr) (d : dep) : Prop :=
  under P (carrier d) (loop_of P c) /\
  In (Instr (producer d)) (body P (engine_of P (producer d)) (loop_of P (producer d))) /\
  signals P (producer d) = true.

Definition Allocatable (P : program) (deps : instr -> list dep) : Prop :=
  forall c d, In d (deps c) -> well_placed P c d /\ allocatable P c d.

(** ** Places in a body: an instruction, and a body that is held, stand in one *)
Lemma head_child : forall x s rest, In x (child s) -> In x (children (s :: rest)).
Proof. intros. simpl. apply in_or_app; auto. Qed.
Lemma children_app : forall a b, children (a ++ b) = children a ++ children b.
Proof. intros. apply flat_map_app. Qed.
Lemma child_in : forall c X a b, In c (child X) -> In c (children (a ++ X :: b)).
Proof. intros. rewrite children_app. apply in_or_app. right. apply head_child. assumption. Qed.
Lemma disjoint : forall (l l' : list loop) c, NoDup (l ++ l') -> In c l -> In c l' -> False.
Proof.
  induction l as [|x l IH]; simpl; [tauto|]. intros l' c D [->|Hc] H'; inversion D; subst; [|eauto].
  apply H1. apply in_or_app; auto.
Qed.
Lemma nodup_right : forall (l l' : list loop), NoDup (l ++ l') -> NoDup l'.
Proof. induction l; simpl; intros l' D; [assumption|]. inversion D; auto. Qed.
Lemma same_rest : forall c X Y (a b a' b' : list stmt), NoDup (children (a ++ X :: b)) ->
  In c (child X) -> In c (child Y) -> a ++ X :: b = a' ++ Y :: b' -> b = b'.
Proof.
  induction a as [|y a IH]; intros b a' b' D HX HY E; destruct a' as [|z a']; simpl in *; injection E as E1 E2; auto.
  - exfalso. apply (disjoint _ _ c D); [assumption|]. rewrite E2. apply child_in; assumption.
  - exfalso. apply (disjoint _ _ c D); [congruence | apply child_in; assumption].
  - eapply IH; eauto using nodup_right.
Qed.
Lemma same_rest_instr : forall c (a b a' b' : list stmt), NoDup (instrs (a ++ Instr c :: b)) ->
  a ++ Instr c :: b = a' ++ Instr c :: b' -> b = b'.
Proof.
  assert (IN : forall c a b, In c (instrs (a ++ Instr c :: b))).
  { intros. unfold instrs. rewrite flat_map_app. apply in_or_app. right. left. reflexivity. }
  induction a as [|y a IH]; intros b a' b' D E; destruct a' as [|z a']; simpl in *; inversion E; subst; auto.
  - exfalso. inversion D; subst. apply H1. apply IN.
  - exfalso. inversion D; subst. apply H1. apply IN.
  - eapply IH; eauto. destruct z; simpl in D; [inversion D|..]; assumption.
Qed.
