(** The language of emitted streams, what its runs are, and what condition (1) of barrier-free asks of them.

    A stream is the program of one engine. A run of it is the sequence of what matters to others: iterations that begin,
    instructions that issue, these with the waits that they issue behind, and barriers at which engines meet. Trip counts
    and conditions are whatever they are, where nothing is assumed of them: all runs are considered. *)
From Coq Require Import ZArith List Bool Lia PArith Relations.
Import ListNotations.
Local Open Scope Z_scope.

Definition register := positive.
Definition loop := positive.
Definition label := positive.
Definition semaphore := positive.
Definition barrier := positive.
Bind Scope positive_scope with register loop label semaphore barrier.

(** The program itself, as a loop that is entered once. *)
Definition root : loop := 1%positive.

Inductive comparison := GeU | GtU | Eq | Ne.

(** What a value is computed from. Integers stand by their unsigned value, where nothing else is said; [m] is 2 to the
    number of bits. *)
Inductive expression :=
| Constant (z : Z)
| Add (m : Z) (a b : register)
| Sub (m : Z) (a b : register)
| Mul (m : Z) (a b : register)
| Truncate (m : Z) (a : register)
| Signed (m : Z) (a : register)            (** the signed value that the bits of [a] stand for *)
| Divide (a : register) (k : Z)
| Maximum (a b : register)
| Minimum (a b : register)
| Compare (c : comparison) (a b : register)
| Select (c a b : register)
| Move (a : register)
| Advance (a : register) (step : Z)      (** of an induction variable, which a loop keeps from wrapping *)
| Unknown (m : Z).                       (** any value below [m]: what no wait may depend on *)

(** What may hold at the head of a loop: what variables are, in terms of others, inequalities, the waits that stand in
    front of the next instruction, and waits that have passed. A loop bears some of these, one of which always holds;
    they say nothing of what a stream does. See [Iterations]. *)
Definition annotation (form : Type) : Type :=
  list (register * form) * list form * (list (semaphore * form) * list (semaphore * form)).

Inductive stream (form : Type) :=
| Skip
| Seq (a b : stream form)
| Let (x : register) (e : expression)
| Wait (s : semaphore) (x : register)
| Issue (i : label) (signal : option semaphore)
| Enter (l : loop)
| Assume (x : register) (b : bool)         (** this way is taken only where [x] is not 0, or is *)
| Meet (b : barrier) (ss : list semaphore) (** all that issued retires, engines meet, and these semaphores are 0 *)
| Choice (a b : stream form)
| Loop (hints : list (annotation form)) (body : stream form).
Arguments Skip {form}. Arguments Seq {form}. Arguments Let {form}. Arguments Wait {form}. Arguments Issue {form}.
Arguments Enter {form}. Arguments Assume {form}. Arguments Meet {form}. Arguments Choice {form}. Arguments Loop {form}.

Fixpoint block {form} (l : list (stream form)) : stream form :=
  match l with [] => Skip | [s] => s | s :: l => Seq s (block l) end.

(** ** Runs *)

Inductive event :=
| Entered (l : loop)
| Issued (i : label) (signal : option semaphore) (waits : list (semaphore * Z))
| Met (b : barrier) (ss : list semaphore).

(** The latest event stands first. *)
Definition trace := list event.

Definition environment := register -> Z.
Definition assign (env : environment) (x : register) (v : Z) : environment := fun y => if Pos.eqb y x then v else env y.

(** An engine: its variables, the waits in front of its next instruction, what it has done. *)
Record state := State { values : environment; waits : list (semaphore * Z); history : trace }.

Definition truth (b : bool) : Z := if b then 1 else 0.

Definition computes (e : expression) (env : environment) (v : Z) : Prop :=
  match e with
  | Constant z => v = z
  | Add m a b => v = (env a + env b) mod m
  | Sub m a b => v = (env a - env b) mod m
  | Mul m a b => v = (env a * env b) mod m
  | Truncate m a => v = env a mod m
  | Signed m a => v = if env a <? m / 2 then env a else env a - m
  | Divide a k => v = env a / k
  | Maximum a b => v = Z.max (env a) (env b)
  | Minimum a b => v = Z.min (env a) (env b)
  | Compare GeU a b => v = truth (env b <=? env a)
  | Compare GtU a b => v = truth (env b <? env a)
  | Compare Eq a b => v = truth (env a =? env b)
  | Compare Ne a b => v = truth (negb (env a =? env b))
  | Select c a b => v = if env c =? 0 then env b else env a
  | Move a => v = env a
  | Advance a step => v = env a + step
  | Unknown m => 0 <= v < m
  end.

Fixpoint run {form} (s : stream form) (x y : state) : Prop :=
  match s with
  | Skip => y = x
  | Seq a b => exists z, run a x z /\ run b z y
  | Let t e => exists v, computes e (values x) v /\ y = State (assign (values x) t v) (waits x) (history x)
  | Wait s t => y = State (values x) ((s, values x t) :: waits x) (history x)
  | Issue i g => y = State (values x) [] (Issued i g (waits x) :: history x)
  | Enter l => y = State (values x) (waits x) (Entered l :: history x)
  | Assume c b => y = x /\ b = negb (values x c =? 0)
  | Meet b ss => y = State (values x) (waits x) (Met b ss :: history x)
  | Choice a b => run a x y \/ run b x y
  | Loop _ b => clos_refl_trans_1n _ (run b) x y
  end.

(** A run from the start of a stream, at whose end it has done [t]. *)
Definition runs {form} (s : stream form) (t : trace) : Prop :=
  exists env y, run s (State env [] []) y /\ history y = t.

(** ** What a history says *)

Fixpoint entries (l : loop) (t : trace) : Z :=
  match t with
  | [] => if Pos.eqb l root then 1 else 0
  | Entered l' :: t => (if Pos.eqb l' l then 1 else 0) + entries l t
  | _ :: t => entries l t
  end.

(** The iteration of [l] that the engine is in, from 1, in the current run of [l]: one run for each iteration of the
    loop around. *)
Fixpoint iteration (parent : loop -> loop) (l : loop) (t : trace) : Z :=
  match t with
  | [] => 0
  | Entered l' :: t =>
      if Pos.eqb l' l then 1 + iteration parent l t else if Pos.eqb l' (parent l) then 0 else iteration parent l t
  | _ :: t => iteration parent l t
  end.

(** Before the latest iteration of [l] began. *)
Fixpoint before (l : loop) (t : trace) : trace :=
  match t with
  | [] => []
  | Entered l' :: t => if Pos.eqb l' l then t else before l t
  | _ :: t => before l t
  end.

(** When the iteration [k] back of [l] had ended. *)
Fixpoint back (l : loop) (k : nat) (t : trace) : trace :=
  match k with O => t | S k => back l k (before l t) end.

Definition among (x : positive) (l : list positive) : bool := existsb (Pos.eqb x) l.

(** The signals to a semaphore by what has issued, since it was 0. *)
Fixpoint sent (s : semaphore) (t : trace) : Z :=
  match t with
  | [] => 0
  | Issued _ (Some s') _ :: t => (if Pos.eqb s' s then 1 else 0) + sent s t
  | Met _ ss :: t => if among s ss then 0 else sent s t
  | _ :: t => sent s t
  end.

(** How often an instruction has issued. *)
Fixpoint issues_of (i : label) (t : trace) : Z :=
  match t with
  | [] => 0
  | Issued i' _ _ :: t => (if Pos.eqb i' i then 1 else 0) + issues_of i t
  | _ :: t => issues_of i t
  end.

Fixpoint find {A} (x : positive) (l : list (positive * A)) : option A :=
  match l with [] => None | (y, a) :: l => if Pos.eqb y x then Some a else find x l end.

(** The entries of [l] at the latest of some barriers, each with what is added to them there. *)
Fixpoint base (cuts : list (barrier * Z)) (l : loop) (t : trace) : Z :=
  match t with
  | [] => 0
  | Met b _ :: t => match find b cuts with Some d => entries l t + d | None => base cuts l t end
  | _ :: t => base cuts l t
  end.

(** How often an engine has met others at some barriers. *)
Fixpoint meetings (bs : list barrier) (t : trace) : Z :=
  match t with
  | [] => 0
  | Met b _ :: t => (if among b bs then 1 else 0) + meetings bs t
  | _ :: t => meetings bs t
  end.

(** The waits behind which an engine has issued since it last met others. *)
Fixpoint gone (t : trace) : list (semaphore * Z) :=
  match t with
  | [] => []
  | Issued _ _ ws :: t => ws ++ gone t
  | Met _ _ :: _ => []
  | Entered _ :: t => gone t
  end.

(** ** Condition (1)

    Up to where a consumer needs a producer: all executions so far, or those up to the end of the iteration [k] back of
    the loop that carries the dependency, none in the first [k] iterations of a run of that loop; or of that iteration
    only those up to the iteration [d] back of a loop in it, as it is numbered now, none in the first [d] of these. *)
Inductive target := Now | Back (carrier : loop) (k : nat) | Within (carrier : loop) (k : nat) (inner : loop) (d : Z).

Record need := Need { producer : label; producer_loop : loop; up_to : target }.

(** How often the producer must have retired: the iterations of its loop, up to the target, that came before. *)
Definition owed (parent : loop -> loop) (n : need) (t : trace) : Z :=
  match up_to n with
  | Now => entries (producer_loop n) t
  | Back c k => if Z.of_nat k <? iteration parent c t then entries (producer_loop n) (back c k t) else 0
  | Within c k l d =>
      if (Z.of_nat k <? iteration parent c t) && (d <? iteration parent l t)
      then Z.min (entries (producer_loop n) (back c k t))
             (entries (producer_loop n) (back c (S k) t) + iteration parent l t - d)
      else 0
  end.

(** Instructions that have retired, with what they signal, and semaphores that have become 0, in order. *)
Inductive item := Done (i : label) (signal : option semaphore) | Reset (ss : list semaphore).
Definition retired := list item.

Definition retirements (i : label) (r : retired) : Z :=
  fold_right (fun x n => (match x with Done i' _ => if Pos.eqb i' i then 1 else 0 | Reset _ => 0 end) + n) 0 r.

Definition advance (s : semaphore) (v : Z) (x : item) : Z :=
  match x with
  | Done _ (Some s') => if Pos.eqb s' s then v + 1 else v
  | Done _ None => v
  | Reset ss => if among s ss then 0 else v
  end.
Definition value_of (s : semaphore) (r : retired) : Z := fold_left (advance s) r 0.

(** The two conditions to issue: the implementation's and the specification's. *)
Definition waits_pass (ws : list (semaphore * Z)) (r : retired) : Prop :=
  Forall (fun w => snd w <= value_of (fst w) r) ws.
Definition satisfied (parent : loop -> loop) (needs : list need) (t : trace) (r : retired) : Prop :=
  Forall (fun n => owed parent n t <= retirements (producer n) r) needs.

(** ** Facts about histories *)

Lemma entries_app l d t : entries l t <= entries l (d ++ t).
Proof.
  induction d as [|[l'|i g ws|b ss] d IH]; cbn [entries app]; try lia. destruct (Pos.eqb l' l); lia.
Qed.

Lemma entries_nonnegative l t : 0 <= entries l t.
Proof. pose proof (entries_app l t []). rewrite app_nil_r in H. cbn [entries] in H. destruct (Pos.eqb l root); lia. Qed.

Lemma before_app l t : exists d, t = d ++ before l t.
Proof.
  induction t as [|e t [d IH]]; [now exists []|]. destruct e as [l'|i g ws|b ss]; cbn [before].
  - destruct (Pos.eqb l' l); [now exists [Entered l']|]. exists (Entered l' :: d). simpl. congruence.
  - exists (Issued i g ws :: d). simpl. congruence.
  - exists (Met b ss :: d). simpl. congruence.
Qed.

Lemma entries_before l t : l <> root -> entries l (before l t) = Z.max 0 (entries l t - 1).
Proof.
  intros N. induction t as [|[l'|i g ws|b ss] t IH]; cbn [entries before]; try exact IH.
  - destruct (Pos.eqb_spec l root); [congruence|reflexivity].
  - pose proof (entries_nonnegative l t). destruct (Pos.eqb_spec l' l); lia.
Qed.

(** What a loop was entered itself, [k] iterations back. *)
Lemma entries_back_self l k t : l <> root -> entries l (back l k t) = Z.max 0 (entries l t - Z.of_nat k).
Proof.
  intros N. revert t; induction k as [|k IH]; intros t.
  - cbn [back]. pose proof (entries_nonnegative l t). lia.
  - cbn [back]. rewrite IH, entries_before by auto. lia.
Qed.

Lemma back_issue l k i g ws t : back l (S k) (Issued i g ws :: t) = back l (S k) t.
Proof. reflexivity. Qed.

Lemma run_extends {form} (s : stream form) x y : run s x y -> exists d, history y = d ++ history x.
Proof.
  revert x y; induction s; intros p q R; cbn [run] in R.
  - subst. now exists [].
  - destruct R as (z & R1 & R2). destruct (IHs1 _ _ R1) as [d1 E1]. destruct (IHs2 _ _ R2) as [d2 E2].
    exists (d2 ++ d1). rewrite E2, E1. apply app_assoc.
  - destruct R as (v & _ & ->). now exists [].
  - subst. now exists [].
  - subst. eexists [_]. reflexivity.
  - subst. eexists [_]. reflexivity.
  - destruct R as [-> _]. now exists [].
  - subst. eexists [_]. reflexivity.
  - destruct R; eauto.
  - induction R as [x0|x0 y0 z0 R1 R2 [d2 E2]]; [now exists []|]. destruct (IHs _ _ R1) as [d1 E1].
    exists (d2 ++ d1). rewrite E2, E1. apply app_assoc.
Qed.
