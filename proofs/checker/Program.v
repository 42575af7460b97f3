(** Programs, which are the specification: a tree of loops, conditionals and instructions with their dependencies. From it
    alone follow what each instruction is owed, and the way that an engine goes. *)
From Coq Require Import ZArith List Bool Lia PArith Relations.
From Checker Require Import Linear Language Values.
Import ListNotations.
Local Open Scope Z_scope.

Definition engine := positive.

(** A component of a distance: so many iterations back, or all that the earlier iteration of an outer loop did. *)
Inductive distance := Far (k : Z) | All.

(** A dependency: the producer, and a component for each counted loop around both, outermost first. *)
Definition after : Type := label * list distance.

Inductive program :=
| Nothing
| Both (p q : program)
| Instruction (i : label) (e : engine) (afters : list after)
| For (l : loop) (p : program)
| If (l : loop) (p : program) (l' : loop) (p' : program)
| Gathering (b : barrier) (es : list engine) (every : Z).  (** a barrier, whenever it has been come to so often *)

Fixpoint body (l : list program) : program :=
  match l with [] => Nothing | [p] => p | p :: l => Both p (body l) end.

Fixpoint instructions (p : program) : list (label * (engine * list after)) :=
  match p with
  | Nothing | Gathering _ _ _ => []
  | Both p q => instructions p ++ instructions q
  | Instruction i e a => [(i, (e, a))]
  | For _ p => instructions p
  | If _ p _ q => instructions p ++ instructions q
  end.

(** The loop around each loop. *)
Fixpoint parents (around : loop) (p : program) : list (loop * loop) :=
  match p with
  | Nothing | Instruction _ _ _ | Gathering _ _ _ => []
  | Both p q => parents around p ++ parents around q
  | For l p => (l, around) :: parents l p
  | If l p l' p' => (l, around) :: (l', around) :: parents l p ++ parents l' p'
  end.
Definition parent_in (p : program) : loop -> loop :=
  let all := parents root p in fun l => match find l all with Some l' => l' | None => root end.

(** The barriers: who meets there, and after how many entries of which loop. *)
Fixpoint gatherings (around : loop) (p : program) : list (barrier * (list engine * (loop * Z))) :=
  match p with
  | Nothing | Instruction _ _ _ => []
  | Both p q => gatherings around p ++ gatherings around q
  | For l p => gatherings l p
  | If l p l' p' => gatherings l p ++ gatherings l' p'
  | Gathering b es n => [(b, (es, (around, n)))]
  end.

(** The loops around each instruction, outermost first, and whether distances count them. *)
Definition path : Type := list (loop * bool).
Fixpoint paths (p : program) : list (label * path) :=
  let inside l counted := map (fun x : label * path => (fst x, (l, counted) :: snd x)) in
  match p with
  | Nothing | Gathering _ _ _ => []
  | Both p q => paths p ++ paths q
  | Instruction i _ _ => [(i, [])]
  | For l p => inside l true (paths p)
  | If l p l' p' => inside l false (paths p) ++ inside l' false (paths p')
  end.

Fixpoint shared (a b : path) : list loop :=
  match a, b with
  | (l, counted) :: a, (l', _) :: b =>
      if Pos.eqb l l' then (if counted then [l] else []) ++ shared a b else []
  | _, _ => []
  end.

Definition innermost (a : path) : loop := fst (last a (root, true)).

(** Up to where a producer is needed. Behind the component that carries, all others are [All], or there is one. *)
Fixpoint carried (ls : list loop) (ds : list distance) : option target :=
  match ls, ds with
  | [], [] => Some Now
  | l :: ls, Far k :: ds =>
      if k =? 0 then carried ls ds
      else if (k <? 0) || negb (Nat.eqb (length ls) (length ds)) then None
      else if forallb (fun d => match d with All => true | Far _ => false end) ds then Some (Back l (Z.to_nat k))
      else match ls, ds with [l'], [Far d] => Some (Within l (Z.to_nat k) l' d) | _, _ => None end
  | _, _ => None
  end.

(** Iterations of an inner loop are those of the producer, which must be of that loop itself. *)
Definition covered (home : loop) (t : target) : bool :=
  match t with Within _ _ l _ => Pos.eqb l home | _ => true end.

(** The need of a dependency; none where it is carried by the program as a whole, which runs once. *)
Definition need_of (all : list (label * path)) (consumer : label) (a : after) : option (list need) :=
  let (producer, ds) := a in
  match find consumer all, find producer all with
  | Some there, Some here =>
      match shared there here, ds with
      | [], [Far (Zpos _)] => Some []
      | ls, _ => match carried ls ds with
                 | Some t => if covered (innermost here) t then Some [Need producer (innermost here) t] else None
                 | None => None
                 end
      end
  | _, _ => None
  end.

Definition needs_in (p : program) : label -> option (list need) :=
  let all := paths p in
  let afters := instructions p in
  fun i => match find i afters with
           | Some (_, l) => option_map (@concat _) (all_some (map (need_of all i) l))
           | None => None
           end.

(** ** Control: a stream goes the way that the program goes on its engine *)

Inductive step := Begin (l : loop) | Do (i : label) | Gather (b : barrier).

Inductive control :=
| Empty
| One (s : step)
| Then (a b : control)
| Many (a : control)
| Either (a b : control).

(** The runs of a control. *)
Inductive goes : control -> list step -> Prop :=
| goes_empty : goes Empty []
| goes_one s : goes (One s) [s]
| goes_then a b u v : goes a u -> goes b v -> goes (Then a b) (u ++ v)
| goes_none a : goes (Many a) []
| goes_more a u v : goes a u -> goes (Many a) v -> goes (Many a) (u ++ v)
| goes_left a b u : goes a u -> goes (Either a b) u
| goes_right a b u : goes b u -> goes (Either a b) u.

(** The same, without what holds nothing and with [Then] to the right. *)
Fixpoint follow (a b : control) : control :=
  match a with
  | Empty => b
  | Then c d => follow c (follow d b)
  | _ => match b with Empty => a | _ => Then a b end
  end.
Definition many (a : control) : control := match a with Empty => Empty | _ => Many a end.
Definition either (a b : control) : control := match a, b with Empty, Empty => Empty | _, _ => Either a b end.

Fixpoint control_of {form} (s : stream form) : control :=
  match s with
  | Skip | Let _ _ | Wait _ _ | Assume _ _ => Empty
  | Seq a b => follow (control_of a) (control_of b)
  | Issue i _ => One (Do i)
  | Enter l => One (Begin l)
  | Meet b _ => One (Gather b)
  | Choice a b => either (control_of a) (control_of b)
  | Loop _ b => many (control_of b)
  end.

(** What one engine runs of a program: its instructions, its barriers, and the beginnings of the iterations of the loops
    [told]. *)
Fixpoint projection (e : engine) (told : loop -> bool) (p : program) : control :=
  let iteration l p := follow (if told l then One (Begin l) else Empty) (projection e told p) in
  match p with
  | Nothing => Empty
  | Both p q => follow (projection e told p) (projection e told q)
  | Instruction i e' _ => if Pos.eqb e e' then One (Do i) else Empty
  | For l p => many (iteration l p)
  | If l p l' p' => either (iteration l p) (iteration l' p')
  | Gathering b es n =>
      if among e es then (if n =? 1 then One (Gather b) else Either (One (Gather b)) Empty) else Empty
  end.

Definition same_step (a b : step) : bool :=
  match a, b with
  | Begin l, Begin l' | Do l, Do l' | Gather l, Gather l' => Pos.eqb l l'
  | _, _ => false
  end.

Fixpoint leaves (c : control) : list step :=
  match c with
  | Empty => []
  | One s => [s]
  | Then a b | Either a b => leaves a ++ leaves b
  | Many a => leaves a
  end.

(** The steps that a stream takes, if any run does. *)
Definition mine {form} (s : stream form) (x : step) : bool := existsb (same_step x) (leaves (control_of s)).

Fixpoint same_control (a b : control) : bool :=
  match a, b with
  | Empty, Empty => true
  | One x, One y => same_step x y
  | Then a b, Then a' b' | Either a b, Either a' b' => same_control a a' && same_control b b'
  | Many a, Many a' => same_control a a'
  | _, _ => false
  end.

Fixpoint steps (t : trace) : list step :=
  match t with
  | [] => []
  | Entered l :: t => steps t ++ [Begin l]
  | Issued i _ _ :: t => steps t ++ [Do i]
  | Met b _ :: t => steps t ++ [Gather b]
  end.

Lemma steps_app d t : steps (d ++ t) = steps t ++ steps d.
Proof.
  induction d as [|[l|i g ws|b ss] d IH]; cbn [app steps]; [now rewrite app_nil_r| | |]; now rewrite IH, app_assoc.
Qed.

Lemma follow_goes a : forall b u v, goes a u -> goes b v -> goes (follow a b) (u ++ v).
Proof.
  induction a; intros b u v Ha Hb; cbn [follow].
  - inversion_clear Ha. exact Hb.
  - destruct b; try (constructor; assumption). inversion Hb. rewrite app_nil_r. exact Ha.
  - inversion_clear Ha. rewrite <- app_assoc. auto.
  - destruct b; try (constructor; assumption). inversion Hb. rewrite app_nil_r. exact Ha.
  - destruct b; try (constructor; assumption). inversion Hb. rewrite app_nil_r. exact Ha.
Qed.

Lemma many_goes a u : goes (Many a) u -> goes (many a) u.
Proof.
  destruct a; try exact (fun H => H). cbn [many]. intros H. remember (Many Empty) as c.
  induction H; try discriminate; [constructor|]. injection Heqc as ->. inversion H. subst. auto.
Qed.

Lemma either_goes a b u : goes (Either a b) u -> goes (either a b) u.
Proof.
  unfold either. destruct a, b; try exact (fun H => H). intros H. inversion H; assumption.
Qed.

Lemma control_sound {form} (s : stream form) : forall x y, run s x y ->
  exists d, history y = d ++ history x /\ goes (control_of s) (steps d).
Proof.
  induction s; intros p q R; cbn [run control_of] in *.
  - subst. exists []. split; [reflexivity|constructor].
  - destruct R as (z & R1 & R2). destruct (IHs1 _ _ R1) as (d1 & H1 & G1). destruct (IHs2 _ _ R2) as (d2 & H2 & G2).
    exists (d2 ++ d1). split; [rewrite H2, H1; apply app_assoc|]. rewrite steps_app. now apply follow_goes.
  - destruct R as (v & _ & ->). exists []. split; [reflexivity|constructor].
  - subst. exists []. split; [reflexivity|constructor].
  - subst. eexists [_]. split; [reflexivity|constructor].
  - subst. eexists [_]. split; [reflexivity|constructor].
  - destruct R as [-> _]. exists []. split; [reflexivity|constructor].
  - subst. eexists [_]. split; [reflexivity|constructor].
  - destruct R as [R|R]; [destruct (IHs1 _ _ R) as (d & H & G)|destruct (IHs2 _ _ R) as (d & H & G)];
      exists d; (split; [exact H|]); apply either_goes; [now apply goes_left|now apply goes_right].
  - assert (X : exists d, history q = d ++ history p /\ goes (Many (control_of s)) (steps d)).
    { induction R as [a|a b c R1 R2 IH]; [exists []; split; [reflexivity|constructor]|].
      destruct (IHs _ _ R1) as (d1 & H1 & G1). destruct IH as (d2 & H2 & G2).
      exists (d2 ++ d1). split; [rewrite H2, H1; apply app_assoc|]. rewrite steps_app. now apply goes_more. }
    destruct X as (d & H & G). exists d. split; [exact H|]. now apply many_goes.
Qed.

Lemma same_step_sound a b : same_step a b = true -> a = b.
Proof. destruct a, b; simpl; try discriminate; intros H; apply Pos.eqb_eq in H; congruence. Qed.

Lemma same_control_sound a b : same_control a b = true -> a = b.
Proof.
  revert b; induction a; intros [] H; simpl in H; try discriminate; try reflexivity.
  - apply same_step_sound in H. congruence.
  - apply andb_true_iff in H as [H1 H2]. f_equal; auto.
  - f_equal; auto.
  - apply andb_true_iff in H as [H1 H2]. f_equal; auto.
Qed.
