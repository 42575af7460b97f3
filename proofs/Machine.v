(** Specification and implementation of a multi-engine program, as transition systems (section 7, appendix A).

    Both run the same control and datapath: engines enter and leave loops, issue instructions, these commit in any order and
    retire in order. They differ in what an issue asks for. The specification asks condition (1) of a ghost history of
    loop entries; the implementation compares semaphores with thresholds from registers. *)
From Coq Require Import Arith ZArith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program.

Definition upd {A} (f : nat -> A) e v := fun x => if x =? e then v else f x.
Definition frames := list (loop * list stmt).           (* innermost first; what is left of each body *)
Definition loops (fs : frames) : list loop := map fst fs.

Inductive label :=
  | Enter (e : engine) (l : loop) | Exit (e : engine) (l : loop) | Back (e : engine)
  | Issue (e : engine) (i : instr) | Commit (e : engine) (i : instr) | Retire (e : engine) (i : instr).

(** The body that a statement enters under the decisions [g] of the control state, and what follows it. *)
Definition entered (g : loop -> bool) (s : stmt) : option loop :=
  match s with Instr _ => None | Loop l => if g l then Some l else None | If a b => Some (if g a then a else b) end.
Definition after (s : stmt) (rest : list stmt) : list stmt := match s with Loop _ => s :: rest | _ => rest end.

(** ** What both share; data, control state, guards and what instructions do are opaque *)
Record machine := {
  program_of :> program;
  deps : instr -> list dep;
  data : Type;
  control : Type;
  execute : instr -> data -> data;
  guard : engine -> loop -> control -> bool;
  on_enter : engine -> loop -> control -> control;
  on_exit : engine -> loop -> control -> control }.

Section Semantics.
Variable m : machine.
Notation P := (program_of m).

Record shared := Shared {
  datapath : data m; controls : engine -> control m; conts : engine -> frames;
  in_flight : engine -> list (instr * bool) }.          (* oldest first; whether it has committed *)

Inductive shared_step : shared -> label -> shared -> Prop :=
| step_enter : forall d c f q e x s l rest fs, f e = (x, s :: rest) :: fs ->
    entered (fun l => guard m e l (c e)) s = Some l ->
    shared_step (Shared d c f q) (Enter e l)
      (Shared d (upd c e (on_enter m e l (c e))) (upd f e ((l, body P e l) :: (x, s :: rest) :: fs)) q)
| step_exit : forall d c f q e x l rest fs, f e = (x, Loop l :: rest) :: fs -> guard m e l (c e) = false ->
    shared_step (Shared d c f q) (Exit e l)
      (Shared d (upd c e (on_exit m e l (c e))) (upd f e ((x, rest) :: fs)) q)
| step_back : forall d c f q e l y s rest fs, f e = (l, []) :: (y, s :: rest) :: fs ->
    shared_step (Shared d c f q) (Back e) (Shared d c (upd f e ((y, after s rest) :: fs)) q)
| step_issue : forall d c f q e x i rest fs, f e = (x, Instr i :: rest) :: fs ->
    shared_step (Shared d c f q) (Issue e i)
      (Shared d c (upd f e ((x, rest) :: fs)) (upd q e (q e ++ [(i, false)])))
| step_commit : forall d c f q e i a b, q e = a ++ (i, false) :: b ->
    shared_step (Shared d c f q) (Commit e i) (Shared (execute m i d) c f (upd q e (a ++ (i, true) :: b)))
| step_retire : forall d c f q e i b, q e = (i, true) :: b ->
    shared_step (Shared d c f q) (Retire e i) (Shared d c f (upd q e b)).

Definition start d c : shared := Shared d c (fun e => [(top, body P e top)]) (fun _ => []).

(** ** Specification *)

(** [H S n Q]: the entries of Q during the n-th iteration of S, over all runs of S. The program's block runs once. *)
Definition hist := loop -> nat -> loop -> nat.
Definition entries (H : hist) (l : loop) := H top 1 l.
Definition trip (H : hist) (l : loop) := H (parent P l) (entries H (parent P l)) l.
Fixpoint upto (H : hist) S n Q := match n with 0 => 0 | Datatypes.S n' => upto H S n' Q + H S n Q end.
Definition mem (l : loop) ls := existsb (Nat.eqb l) ls.
Definition enter_hist (active : list loop) (l : loop) (H : hist) : hist := fun S n Q =>
  H S n Q + (if (Q =? l) && mem S active && (n =? entries H S + (if S =? l then 1 else 0)) then 1 else 0).

(** Condition (1). [exempt]: an iteration is of none; [required]: as often the producer's loop ran up to it. *)
Definition behind (trip z : Z) : nat := Z.to_nat (trip - z).
Definition exempt (H : hist) (d : dep) : Prop := within d = true /\
  (trip H (carrier d) <= distance d \/ exists z, clamp d = Some z /\ behind (Z.of_nat (trip H (loop_of P (producer d)))) z = 0).
Definition required (H : hist) (d : dep) : nat :=
  let n := entries H (carrier d) in let Q := loop_of P (producer d) in
  match clamp d with
  | Some z => upto H (carrier d) (n - (distance d + 1)) Q +
      Nat.min (behind (Z.of_nat (trip H Q)) z) (H (carrier d) (n - distance d) Q)
  | None => upto H (carrier d) (n - (if within d then distance d else Nat.min (distance d) (trip H (carrier d)))) Q end.
Definition satisfied (H : hist) (R : instr -> nat) (d : dep) : Prop := exempt H d \/ required H d <= R (producer d).

Record spec := Spec { s_shared : shared; s_hist : engine -> hist; s_retired : instr -> nat }.
Definition spec_update (a : label) (sh' : shared) (s : spec) : spec :=
  match a with
  | Enter e l => Spec sh' (upd (s_hist s) e (enter_hist (loops (conts sh' e)) l (s_hist s e))) (s_retired s)
  | Retire e i => Spec sh' (s_hist s) (upd (s_retired s) i (s_retired s i + 1))
  | _ => Spec sh' (s_hist s) (s_retired s) end.
Inductive spec_step : spec -> label -> spec -> Prop :=
| spec_does : forall s a sh', shared_step (s_shared s) a sh' ->
    (forall e i, a = Issue e i -> Forall (satisfied (s_hist s e) (s_retired s)) (deps m i)) ->
    spec_step s a (spec_update a sh' s).

Definition hist_start : hist := fun S n Q => if (S =? top) && (n =? 1) && (Q =? top) then 1 else 0.
Definition spec_start d c : spec := Spec (start d c) (fun _ => hist_start) (fun _ => 0).

(** ** Implementation *)

(** The producers that share a semaphore of a loop and an engine, in program order; K counts from 1. One number for all is
    `per-loop`, one for each is `per-instruction`. *)
Definition semaphores := loop -> engine -> nat -> nat.
Definition member (g : nat) (i : instr) : bool := signals P i && (share P i =? g).
Definition members e l g := filter (member g) (instrs (body P e l)).
Fixpoint index (i : instr) (l : list instr) := match l with [] => 0 | x :: r => if x =? i then 0 else S (index i r) end.
Definition N_of (p : instr) := length (members (engine_of P p) (loop_of P p) (share P p)).
Definition K_of (p : instr) := S (index p (members (engine_of P p) (loop_of P p) (share P p))).

(** The registers of an engine: monotone counters, trip counters, and histories: [past S k Q] is what the counter of Q was
    when the iteration k back of S ended, [started S k Q] the same, but what it was when this run of S began in its first k
    iterations. Trip counters exist only for [tripped] loops. No register tells of the program's block, which is entered
    once. *)
Record regs := Regs { mono : loop -> nat; trips : loop -> nat; past : loop -> nat -> loop -> nat;
  started : loop -> nat -> loop -> nat }.
Definition reads_trip (d : dep) (l : loop) : Prop :=
  (l = carrier d /\ (masked d = true \/ within d = false /\ 1 < distance d)) \/
  (l = loop_of P (producer d) /\ clamp d <> None).
Definition tripped (l : loop) : Prop := exists c d, In d (deps m c) /\ reads_trip d l.
Definition value (r : loop -> nat) (l : loop) : nat := if l =? top then 1 else r l.

Variable keeps_trip : loop -> bool.
Definition enter_regs (l : loop) (r : regs) : regs := {|
  mono := upd (mono r) l (mono r l + 1);
  trips := fun c => if negb (keeps_trip c) then trips r c
    else if c =? l then trips r l + 1 else if parent P c =? l then 0 else trips r c;
  past := fun S k Q => if S =? l then match k with 0 | 1 => value (mono r) Q | Datatypes.S k' => past r S k' Q end
    else past r S k Q;
  started := fun S k Q => if S =? l then match k with 0 | 1 => value (mono r) Q | Datatypes.S k' => started r S k' Q end
    else if parent P S =? l then value (mono r) Q else started r S k Q |}.

(** What is owed, and the threshold of the wait (formula 5); the mask goes where nothing needs it. *)
Definition back_by (r : regs) (d : dep) : nat :=
  if within d || (distance d <=? 1) then distance d else Nat.min (distance d) (value (trips r) (carrier d)).
Definition owed (r : regs) (d : dep) : nat :=
  let S := carrier d in let Q := loop_of P (producer d) in let k := distance d in
  match clamp d with
  | Some z => started r S (k + 1) Q +
      Nat.min (behind (Z.of_nat (value (trips r) Q)) z) (started r S k Q - started r S (k + 1) Q)
  | None => if history d then if within d then past r S k Q else started r S k Q
      else if Q =? S then value (mono r) S - back_by r d else value (mono r) Q end.
Definition mask (r : regs) (d : dep) : nat :=
  (if masked d then isGT (value (trips r) (carrier d)) (distance d) else 1) *
  match clamp d with
  | Some z => isGT (behind (Z.of_nat (value (trips r) (loop_of P (producer d)))) z) 0 | None => 1 end.
Definition wait_value (r : regs) (d : dep) : nat :=
  threshold (N_of (producer d)) (K_of (producer d)) (mask r d * owed r d).
Definition reached (sema : semaphores) (p : instr) : nat := sema (loop_of P p) (engine_of P p) (share P p).
Definition passes (sema : semaphores) (r : regs) (d : dep) : Prop := wait_value r d <= reached sema (producer d).

Record impl := Impl { i_shared : shared; i_sema : semaphores; i_regs : engine -> regs }.
Definition signal (i : instr) (sema : semaphores) : semaphores := fun l e g =>
  if member g i && (l =? loop_of P i) && (e =? engine_of P i) then sema l e g + 1 else sema l e g.
Definition impl_update (a : label) (sh' : shared) (t : impl) : impl :=
  match a with
  | Enter e l => Impl sh' (i_sema t) (upd (i_regs t) e (enter_regs l (i_regs t e)))
  | Retire e i => Impl sh' (signal i (i_sema t)) (i_regs t)
  | _ => Impl sh' (i_sema t) (i_regs t) end.
Inductive impl_step : impl -> label -> impl -> Prop :=
| impl_does : forall t a sh', shared_step (i_shared t) a sh' ->
    (forall e i, a = Issue e i -> Forall (passes (i_sema t) (i_regs t e)) (deps m i)) ->
    impl_step t a (impl_update a sh' t).

Definition regs_start : regs := Regs (fun _ => 0) (fun _ => 0) (fun _ _ _ => 0) (fun _ _ _ => 0).
Definition impl_start d c : impl := Impl (start d c) (fun _ _ _ => 0) (fun _ => regs_start).
End Semantics.
