(** Certificates: a program, the streams that were emitted for it, and the check that they ask for the same.

    The program is the specification: a tree of loops, conditionals and instructions with their dependencies. From it
    alone follows what each instruction is owed. *)
From Coq Require Import ZArith List Bool Lia PArith Relations.
From Checker Require Import Linear Language States Values Symbolic Order.
Import ListNotations.
Local Open Scope Z_scope.

Definition engine := positive.

(** A component of a distance: so many iterations back, or all that the earlier iteration of an outer loop did. *)
Inductive distance := Far (k : nat) | All.

(** A dependency: the producer, and a component for each counted loop around both, outermost first. *)
Definition after : Type := label * list distance.

Inductive program :=
| Nothing
| Both (p q : program)
| Instruction (i : label) (e : engine) (afters : list after)
| For (l : loop) (p : program)
| If (l : loop) (p : program) (l' : loop) (p' : program).

Fixpoint body (l : list program) : program :=
  match l with [] => Nothing | [p] => p | p :: l => Both p (body l) end.

Fixpoint instructions (p : program) : list (label * (engine * list after)) :=
  match p with
  | Nothing => []
  | Both p q => instructions p ++ instructions q
  | Instruction i e a => [(i, (e, a))]
  | For _ p => instructions p
  | If _ p _ q => instructions p ++ instructions q
  end.

(** The loop around each loop. *)
Fixpoint parents (around : loop) (p : program) : list (loop * loop) :=
  match p with
  | Nothing | Instruction _ _ _ => []
  | Both p q => parents around p ++ parents around q
  | For l p => (l, around) :: parents l p
  | If l p l' p' => (l, around) :: (l', around) :: parents l p ++ parents l' p'
  end.
Definition parent_in (p : program) : loop -> loop :=
  let all := parents root p in fun l => match find l all with Some l' => l' | None => root end.

(** The loops around each instruction, outermost first, and whether distances count them. *)
Definition path : Type := list (loop * bool).
Fixpoint paths (p : program) : list (label * path) :=
  let inside l counted := map (fun x : label * path => (fst x, (l, counted) :: snd x)) in
  match p with
  | Nothing => []
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

(** Up to where a producer is needed. Not covered: a component that is not [All] behind the one that carries. *)
Fixpoint carried (ls : list loop) (ds : list distance) : option target :=
  match ls, ds with
  | [], [] => Some Now
  | _ :: ls, Far O :: ds => carried ls ds
  | l :: ls, Far k :: ds =>
      if Nat.eqb (length ls) (length ds) && forallb (fun d => match d with All => true | Far _ => false end) ds
      then Some (Back l k) else None
  | _, _ => None
  end.

(** The need of a dependency; none where it is carried by the program as a whole, which runs once. *)
Definition need_of (all : list (label * path)) (consumer : label) (a : after) : option (list need) :=
  let (producer, ds) := a in
  match find consumer all, find producer all with
  | Some there, Some here =>
      match shared there here, ds with
      | [], [Far (S _)] => Some []
      | ls, _ => match carried ls ds with Some t => Some [Need producer (innermost here) t] | None => None end
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

Inductive step := Begin (l : loop) | Do (i : label).

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
  | Skip | Let _ _ | Wait _ _ => Empty
  | Seq a b => follow (control_of a) (control_of b)
  | Issue i _ => One (Do i)
  | Enter l => One (Begin l)
  | Choice a b => either (control_of a) (control_of b)
  | Loop _ b => many (control_of b)
  end.

(** What one engine runs of a program: its instructions, and the beginnings of the iterations of the loops [told]. *)
Fixpoint projection (e : engine) (told : loop -> bool) (p : program) : control :=
  let iteration l p := follow (if told l then One (Begin l) else Empty) (projection e told p) in
  match p with
  | Nothing => Empty
  | Both p q => follow (projection e told p) (projection e told q)
  | Instruction i e' _ => if Pos.eqb e e' then One (Do i) else Empty
  | For l p => many (iteration l p)
  | If l p l' p' => either (iteration l p) (iteration l' p')
  end.

Fixpoint begins (c : control) : list loop :=
  match c with
  | Empty | One (Do _) => []
  | One (Begin l) => [l]
  | Then a b | Either a b => begins a ++ begins b
  | Many a => begins a
  end.

Fixpoint same_control (a b : control) : bool :=
  match a, b with
  | Empty, Empty => true
  | One (Begin l), One (Begin l') => Pos.eqb l l'
  | One (Do i), One (Do i') => Pos.eqb i i'
  | Then a b, Then a' b' | Either a b, Either a' b' => same_control a a' && same_control b b'
  | Many a, Many a' => same_control a a'
  | _, _ => false
  end.

Fixpoint steps (t : trace) : list step :=
  match t with
  | [] => []
  | Entered l :: t => steps t ++ [Begin l]
  | Issued i _ _ :: t => steps t ++ [Do i]
  end.

Lemma steps_app d t : steps (d ++ t) = steps t ++ steps d.
Proof.
  induction d as [|[l|i g ws] d IH]; cbn [app steps]; [now rewrite app_nil_r| |]; now rewrite IH, app_assoc.
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
  - destruct R as [R|R]; [destruct (IHs1 _ _ R) as (d & H & G)|destruct (IHs2 _ _ R) as (d & H & G)];
      exists d; (split; [exact H|]); apply either_goes; [now apply goes_left|now apply goes_right].
  - assert (X : exists d, history q = d ++ history p /\ goes (Many (control_of s)) (steps d)).
    { induction R as [a|a b c R1 R2 IH]; [exists []; split; [reflexivity|constructor]|].
      destruct (IHs _ _ R1) as (d1 & H1 & G1). destruct IH as (d2 & H2 & G2).
      exists (d2 ++ d1). split; [rewrite H2, H1; apply app_assoc|]. rewrite steps_app. now apply goes_more. }
    destruct X as (d & H & G). exists d. split; [exact H|]. now apply many_goes.
Qed.

Lemma same_control_sound a b : same_control a b = true -> a = b.
Proof.
  revert b; induction a; intros [] H; simpl in H; try discriminate; try reflexivity;
    try (destruct s; discriminate).
  - destruct s, s0; try discriminate; apply Pos.eqb_eq in H; congruence.
  - apply andb_true_iff in H as [H1 H2]. f_equal; auto.
  - f_equal; auto.
  - apply andb_true_iff in H as [H1 H2]. f_equal; auto.
Qed.

(** ** The check *)

Record certificate := Certificate {
  specification : program;
  streams : list (engine * stream form);
  maxima : list (loop * Z);                      (** how often an engine enters a loop at most, in all *)
  most : Z;                                      (** what a semaphore holds at most *)
  blocks : list group;                           (** what issues together: see [Order] *)
  counters : list (engine * list (positive * ghost))
}.

Fixpoint distinct (l : list positive) : bool :=
  match l with [] => true | x :: l => negb (existsb (Pos.eqb x) l) && distinct l end.

Definition context_of (c : certificate) (e : engine) : context :=
  Context (match find e (counters c) with Some l => l | None => [] end)
    (parent_in (specification c)) (maxima c) (blocks c) (most c) (needs_in (specification c)).

Definition told_by (s : stream form) : loop -> bool :=
  let all := begins (control_of s) in fun l => existsb (Pos.eqb l) all.

(** Whether a stream tells when each loop begins that a need of its engine speaks of. *)
Definition tells (p : program) (e : engine) (s : stream form) : bool :=
  let told := told_by s in
  let known l := Pos.eqb l root || told l in
  forallb (fun x => negb (Pos.eqb (fst (snd x)) e) ||
    match needs_in p (fst x) with
    | None => false
    | Some ns => forallb (fun n =>
        known (producer_loop n)
        && match up_to n with Now => true | Back c _ => told c && known (parent_in p c) end) ns
    end) (instructions p).

Definition stream_certified (c : certificate) (es : engine * stream form) : bool :=
  let (e, s) := es in
  same_control (control_of s) (projection e (told_by s) (specification c))
  && tells (specification c) e s
  && match execute (context_of c e) s (start (context_of c e)) with Some _ => true | None => false end.

Definition certified (c : certificate) : bool :=
  let p := specification c in
  distinct (map fst (instructions p))
  && distinct (root :: map fst (parents root p))
  && distinct (map fst (streams c))
  && forallb (fun x => existsb (fun es => Pos.eqb (fst es) (fst (snd x))) (streams c)) (instructions p)
  && forallb (fun g => Nat.ltb 0 (length g) && in_one g (map snd (streams c))) (blocks c)
  && forallb (stream_certified c) (streams c).

(** ** What it says *)

(** Wherever an engine comes to an instruction, after whatever trip counts, and whatever has retired by then: its waits
    let it issue exactly when the specification does, and its semaphore, if it signals one, holds all signals so far. The
    engine has entered no loop more often than is promised. *)
Definition exact (c : certificate) : Prop :=
  forall e s t i g ws later earlier,
    In (e, s) (streams c) -> runs s t ->
    (forall l b, find l (maxima c) = Some b -> entries l t <= b) ->
    t = later ++ Issued i g ws :: earlier ->
    (match g with Some s' => sent s' (Issued i g ws :: earlier) <= most c | None => True end)
    /\ exists ns, needs_in (specification c) i = Some ns
    /\ forall r, retirement (map snd (streams c)) r ->
       (waits_pass ws r <-> satisfied (parent_in (specification c)) ns earlier r).

(** The way of an engine through its stream is one of its ways through the program. *)
Definition structured (c : certificate) : Prop :=
  forall e s t, In (e, s) (streams c) -> runs s t ->
  goes (projection e (told_by s) (specification c)) (steps t).

Lemma claims_at C later i g ws earlier :
  claims C (later ++ Issued i g ws :: earlier) ->
  needs C i <> None /\ claim C i ws earlier /\ in_range C g (Issued i g ws :: earlier).
Proof. induction later as [|[l|j g' ws'] later IH]; cbn [app claims]; tauto. Qed.

Theorem certified_sound c : certified c = true -> structured c /\ exact c.
Proof.
  intros H. unfold certified in H.
  repeat match type of H with _ && _ = true => let H' := fresh "H" in apply andb_true_iff in H as [H H'] end.
  rewrite forallb_forall in H0, H1. split.
  - intros e s t I (env & y & R & <-). specialize (H0 _ I). unfold stream_certified in H0.
    apply andb_true_iff in H0 as [H0 _]. apply andb_true_iff in H0 as [H0 _]. apply same_control_sound in H0.
    destruct (control_sound s _ _ R) as (d & Hd & G). cbn [history] in Hd. rewrite app_nil_r in Hd. subst d.
    now rewrite <- H0.
  - intros e s t i g ws later earlier I R B E. specialize (H0 _ I). unfold stream_certified in H0.
    apply andb_true_iff in H0 as [_ H0].
    destruct (execute (context_of c e) s (start (context_of c e))) as [Ss|] eqn:X; [|discriminate].
    pose proof (execute_claims (context_of c e) s Ss t X R B) as K. rewrite E in K.
    destruct (claims_at _ _ _ _ _ _ K) as (N & Cl & Rg).
    unfold claim, in_range, context_of in *; cbn [needs parent groups limit] in *. split; [exact Rg|].
    destruct (needs_in (specification c) i) as [ns|] eqn:Ns; [|congruence]. exists ns. split; [reflexivity|].
    intros r Rt. apply (Cl ns eq_refl). apply Forall_forall. intros gr Ig. specialize (H1 _ Ig).
    apply andb_true_iff in H1 as [L O]. apply Nat.ltb_lt in L. eauto using in_one_sound.
Qed.
