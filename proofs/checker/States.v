(** What symbolic execution knows of an engine, and what it is to prove.

    A symbolic state gives each variable, and each counter of condition (1), as a linear form over numbers that only
    inequalities are known of. *)
From Coq Require Import ZArith List Bool Lia PArith FMapPositive.
From Checker Require Import Linear Language.
Import ListNotations.
Local Open Scope Z_scope.


(** Counters that no stream has. *)
Inductive ghost :=
| Entries (l : loop)
| Iteration (l : loop)
| Past (carrier : loop) (k : nat) (l : loop)
| Sent (s : semaphore)
| Issues (i : label)
| Base (cuts : list (barrier * Z)) (l : loop).

Fixpoint same_cuts (a b : list (barrier * Z)) : bool :=
  match a, b with
  | [], [] => true
  | (x, d) :: a, (y, d') :: b => Pos.eqb x y && (d =? d') && same_cuts a b
  | _, _ => false
  end.

Definition same_ghost (a b : ghost) : bool :=
  match a, b with
  | Entries l, Entries l' | Iteration l, Iteration l' | Sent l, Sent l' | Issues l, Issues l' => Pos.eqb l l'
  | Base a l, Base b l' => same_cuts a b && Pos.eqb l l'
  | Past c k l, Past c' k' l' => Pos.eqb c c' && Nat.eqb k k' && Pos.eqb l l'
  | _, _ => false
  end.

Lemma same_cuts_sound a b : same_cuts a b = true -> a = b.
Proof.
  revert b; induction a as [|[x d] a IH]; intros [|[y d'] b]; simpl; try discriminate; [auto|]. intros H.
  apply andb_true_iff in H as [H H3]. apply andb_true_iff in H as [H1 H2]. apply Pos.eqb_eq in H1. apply Z.eqb_eq in H2.
  rewrite (IH _ H3). congruence.
Qed.

Lemma same_ghost_sound a b : same_ghost a b = true -> a = b.
Proof.
  destruct a, b; simpl; try discriminate; intros H.
  1, 2, 4, 5: apply Pos.eqb_eq in H; congruence.
  - apply andb_true_iff in H as [H H3]. apply andb_true_iff in H as [H1 H2].
    apply Pos.eqb_eq in H1, H3. apply Nat.eqb_eq in H2. congruence.
  - apply andb_true_iff in H as [H1 H2]. apply same_cuts_sound in H1. apply Pos.eqb_eq in H2. congruence.
Qed.

(** What issues in one block of one engine, in order. *)
Definition group := list (label * option semaphore).

Definition has_label (i : label) (g : group) : bool := existsb (fun x => Pos.eqb (fst x) i) g.
Definition has_signal (s : semaphore) (g : group) : bool :=
  existsb (fun x => match snd x with Some s' => Pos.eqb s' s | None => false end) g.

(** How often an instruction stands in a group, and how often a semaphore. *)
Definition labelled (i : label) (g : group) : Z :=
  fold_right (fun x n => (if Pos.eqb (fst x) i then 1 else 0) + n) 0 g.
Definition signalled (s : semaphore) (g : group) : Z :=
  fold_right (fun x n => match snd x with Some s' => if Pos.eqb s' s then 1 else 0 | None => 0 end + n) 0 g.

(** What instructions of a group have retired in: [n] rounds before its semaphores were last 0, [m] whole rounds since,
    and the first [j] of the next one. *)
Definition in_order (g : group) (n : Z) (r : retired) : Prop :=
  exists m j, 0 <= m /\ (j < length g)%nat
  /\ (forall s, has_signal s g = true -> value_of s r = m * signalled s g + signalled s (firstn j g))
  /\ (forall i, has_label i g = true -> retirements i r = (n + m) * labelled i g + labelled i (firstn j g)).

(** The loop whose entries are the rounds of a group, and the barriers at which its semaphores become 0: of the entries
    by then, all have had their round, or all but one. *)
Definition place_of_group : Type := loop * list (barrier * Z).
Definition before_cut (p : place_of_group) (t : trace) : Z := base (snd p) (fst p) t.

Record context := Context {
  ghosts : list (positive * ghost);
  parent : loop -> loop;
  bounds : list (loop * Z);
  groups : list (group * place_of_group);   (** those that the engine may wait for *)
  limit : Z;                                (** what a semaphore holds at most *)
  needs : label -> option (list need);
  dues : list (barrier * (loop * Z));       (** each barrier comes with so many entries of a loop since the last time *)
  own : list (group * place_of_group)       (** the groups that the engine issues *)
}.

Section Execution.
Variable C : context.

Definition counter (g : ghost) (t : trace) : Z :=
  match g with
  | Entries l => entries l t
  | Iteration l => iteration (parent C) l t
  | Past c k l => entries l (back c k t)
  | Sent s => sent s t
  | Issues i => issues_of i t
  | Base cuts l => base cuts l t
  end.

(** Variables and counters as one valuation. *)
Definition all_values (env : environment) (t : trace) : valuation :=
  fun x => match find x (ghosts C) with Some g => counter g t | None => env x end.

Definition within_bounds (t : trace) : Prop := forall l b, find l (bounds C) = Some b -> entries l t <= b.

(** ** What is claimed where an instruction issues *)

Definition claim (i : label) (ws : list (semaphore * Z)) (t : trace) : Prop :=
  forall ns, needs C i = Some ns ->
  forall r, Forall (fun g => in_order (fst g) (before_cut (snd g) t) r) (groups C) -> waits_pass (gone t) r ->
  (waits_pass ws r <-> satisfied (parent C) ns t r).

(** No semaphore passes what it holds. *)
Definition in_range (signal : option semaphore) (t : trace) : Prop :=
  match signal with Some s => sent s t <= limit C | None => True end.

Definition since (b : barrier) (l : loop) (t : trace) : Z := entries l t - base [(b, 0)] l t.

(** No barrier is left out, *)
Definition not_late (l : loop) (t : trace) : Prop := forall b c, In (b, (l, c)) (dues C) -> since b l t <= c.
(** none is there too early, *)
Definition due (b : barrier) (t : trace) : Prop := exists l c, In (b, (l, c)) (dues C) /\ since b l t = c.
(** and groups have gone their rounds by then. *)
Definition rounds_done (b : barrier) (t : trace) : Prop :=
  forall g p d, In (g, p) (own C) -> find b (snd p) = Some d ->
  match g with (i, _) :: _ => issues_of i t = entries (fst p) t + d | [] => True end.

Fixpoint claims (t : trace) : Prop :=
  match t with
  | [] => True
  | Entered l :: t => not_late l (Entered l :: t) /\ claims t
  | Issued i g ws :: t => (needs C i <> None /\ claim i ws t) /\ in_range g (Issued i g ws :: t) /\ claims t
  | Met b ss :: t => due b t /\ rounds_done b t /\ claims t
  end.

(** ** Symbolic states *)

Record symbolic := Symbolic {
  known : PositiveMap.t form;
  facts : list form;
  pending : list (semaphore * form);
  passed : list (semaphore * form)
}.

Definition get (S : symbolic) (x : positive) : form :=
  match PositiveMap.find x (known S) with Some f => f | None => variable x end.

Definition describes (S : symbolic) (r : valuation) (s : state) : Prop :=
  holds (facts S) r
  /\ (forall x, all_values (values s) (history s) x = eval (get S x) r)
  /\ waits s = map (fun w => (fst w, eval (snd w) r)) (pending S)
  /\ Forall (fun w => In (fst w, eval (snd w) r) (gone (history s))) (passed S).

Definition possible (S : symbolic) (s : state) : Prop := exists r, describes S r s.

Definition index (g : ghost) : option positive :=
  match List.find (fun p => same_ghost (snd p) g) (ghosts C) with
  | Some (x, _) => match find x (ghosts C) with Some g' => if same_ghost g' g then Some x else None | None => None end
  | None => None
  end.

Definition count (S : symbolic) (g : ghost) : option form := option_map (get S) (index g).

Lemma count_sound S r s g f : describes S r s -> count S g = Some f -> eval f r = counter g (history s).
Proof.
  intros (_ & V & _) E. unfold count, index in E.
  destruct (List.find _ (ghosts C)) as [[x g0]|]; [|discriminate].
  destruct (find x (ghosts C)) as [g'|] eqn:F; [|discriminate].
  destruct (same_ghost g' g) eqn:G; [|discriminate]. injection E as <-. apply same_ghost_sound in G as ->.
  rewrite <- V. unfold all_values. now rewrite F.
Qed.
End Execution.
