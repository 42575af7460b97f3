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
| Sent (s : semaphore).

Definition same_ghost (a b : ghost) : bool :=
  match a, b with
  | Entries l, Entries l' | Iteration l, Iteration l' | Sent l, Sent l' => Pos.eqb l l'
  | Past c k l, Past c' k' l' => Pos.eqb c c' && Nat.eqb k k' && Pos.eqb l l'
  | _, _ => false
  end.

Lemma same_ghost_sound a b : same_ghost a b = true -> a = b.
Proof.
  destruct a, b; simpl; try discriminate; intros H.
  1, 2, 4: apply Pos.eqb_eq in H; congruence.
  apply andb_true_iff in H as [H H3]. apply andb_true_iff in H as [H1 H2].
  apply Pos.eqb_eq in H1, H3. apply Nat.eqb_eq in H2. congruence.
Qed.

(** What issues in one block of one engine, in order. *)
Definition group := list (label * option semaphore).

Definition has_label (i : label) (g : group) : bool := existsb (fun x => Pos.eqb (fst x) i) g.
Definition has_signal (s : semaphore) (g : group) : bool :=
  existsb (fun x => match snd x with Some s' => Pos.eqb s' s | None => false end) g.

(** What instructions of a group have retired in: [m] whole rounds, and the first [j] of the next one. *)
Definition in_order (g : group) (r : retired) : Prop :=
  exists m j, 0 <= m /\ (j < length g)%nat
  /\ (forall s, has_signal s g = true -> value_of s r = m * value_of s g + value_of s (firstn j g))
  /\ (forall i, has_label i g = true -> retirements i r = m * retirements i g + retirements i (firstn j g)).

Fixpoint find {A} (x : positive) (l : list (positive * A)) : option A :=
  match l with [] => None | (y, a) :: l => if Pos.eqb y x then Some a else find x l end.

Record context := Context {
  ghosts : list (positive * ghost);
  parent : loop -> loop;
  bounds : list (loop * Z);
  groups : list group;
  limit : Z;                                (** what a semaphore holds at most *)
  needs : label -> option (list need)
}.

Section Execution.
Variable C : context.

Definition counter (g : ghost) (t : trace) : Z :=
  match g with
  | Entries l => entries l t
  | Iteration l => iteration (parent C) l t
  | Past c k l => entries l (back c k t)
  | Sent s => sent s t
  end.

(** Variables and counters as one valuation. *)
Definition all_values (env : environment) (t : trace) : valuation :=
  fun x => match find x (ghosts C) with Some g => counter g t | None => env x end.

Definition within_bounds (t : trace) : Prop := forall l b, find l (bounds C) = Some b -> entries l t <= b.

(** ** What is claimed where an instruction issues *)

Definition claim (i : label) (ws : list (semaphore * Z)) (t : trace) : Prop :=
  forall ns, needs C i = Some ns -> forall r, Forall (fun g => in_order g r) (groups C) ->
  (waits_pass ws r <-> satisfied (parent C) ns t r).

(** No semaphore passes what it holds. *)
Definition in_range (signal : option semaphore) (t : trace) : Prop :=
  match signal with Some s => sent s t <= limit C | None => True end.

Fixpoint claims (t : trace) : Prop :=
  match t with
  | [] => True
  | Issued i g ws :: t => (needs C i <> None /\ claim i ws t) /\ in_range g (Issued i g ws :: t) /\ claims t
  | _ :: t => claims t
  end.

(** ** Symbolic states *)

Record symbolic := Symbolic {
  known : PositiveMap.t form;
  facts : list form;
  pending : list (semaphore * form)
}.

Definition get (S : symbolic) (x : positive) : form :=
  match PositiveMap.find x (known S) with Some f => f | None => variable x end.

Definition describes (S : symbolic) (r : valuation) (s : state) : Prop :=
  holds (facts S) r
  /\ (forall x, all_values (values s) (history s) x = eval (get S x) r)
  /\ waits s = map (fun w => (fst w, eval (snd w) r)) (pending S).

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
