(** All runs of a stream at once: symbolic execution, and what it proves where an instruction issues.

    A symbolic state gives each variable, and each counter of condition (1), as a linear form over numbers that only
    inequalities are known of. Arithmetic that wraps, masks, maxima and conditionals split a state in cases, of which
    those are left that the inequalities allow. A loop is gone through once, from any state that one of its annotations
    allows; one must hold where the loop is come to, and again after an iteration. *)
From Coq Require Import ZArith List Bool Lia PArith Relations FMapPositive.
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

(** ** Expressions, by cases *)

Definition alternative : Type := list form * option form.

Definition wrapped (m : Z) (f : form) : list alternative :=
  [([f; shift (scale (-1) f) (m - 1)], Some f);
   ([shift f (- m); shift (scale (-1) f) (2 * m - 1)], Some (shift f (- m)));
   ([shift (scale (-1) f) (-1); shift f m], Some (shift f m));
   ([shift f (- (2 * m))], None);
   ([shift (scale (-1) f) (- m - 1)], None)].

Definition is_number (f : form) : option Z := match terms f with [] => Some (constant f) | _ => None end.

Definition comparison_cases (c : comparison) (a b : form) : list alternative :=
  let above := minus a b in
  let strictly := shift above (-1) in
  let below := minus b a in
  let one := Some (number 1) in
  let zero := Some (number 0) in
  match c with
  | GeU => [([above], one); ([shift below (-1)], zero)]
  | GtU => [([strictly], one); ([below], zero)]
  | Eq => [([above; below], one); ([strictly], zero); ([shift below (-1)], zero)]
  | Ne => [([above; below], zero); ([strictly], one); ([shift below (-1)], one)]
  end.

(** The cases, and a bound of a value that nothing else is known of. *)
Definition alternatives (S : symbolic) (e : expression) : list alternative * option Z :=
  let unknown := [([], None)] in
  match e with
  | Constant z => ([([], Some (number z))], None)
  | Add m a b => (wrapped m (plus (get S a) (get S b)), Some m)
  | Sub m a b => (wrapped m (minus (get S a) (get S b)), Some m)
  | Mul m a b =>
      (match is_number (get S a), is_number (get S b) with
       | Some z, _ => wrapped m (scale z (get S b))
       | _, Some z => wrapped m (scale z (get S a))
       | _, _ => unknown
       end, Some m)
  | Truncate m a => (wrapped m (get S a), Some m)
  | Signed m a =>
      let a := get S a in
      ([([shift (scale (-1) a) (m / 2 - 1)], Some a); ([shift a (- (m / 2))], Some (shift a (- m)))], None)
  | Divide a k => (match divide k (get S a) with Some f => [([], Some f)] | None => unknown end, None)
  | Maximum a b =>
      let (a, b) := (get S a, get S b) in
      ([([minus a b], Some a); ([shift (minus b a) (-1)], Some b)], None)
  | Minimum a b =>
      let (a, b) := (get S a, get S b) in
      ([([minus a b], Some b); ([shift (minus b a) (-1)], Some a)], None)
  | Compare c a b => (comparison_cases c (get S a) (get S b), Some 2)
  | Select c a b =>
      let c := get S c in
      ([([shift c (-1)], Some (get S a)); ([shift (scale (-1) c) (-1)], Some (get S a));
        ([c; scale (-1) c], Some (get S b))], None)
  | Move a => ([([], Some (get S a))], None)
  | Advance a step => ([([], Some (shift (get S a) step))], None)
  | Unknown m => (unknown, Some m)
  end.

Definition modulus (e : expression) : Z :=
  match e with Add m _ _ | Sub m _ _ | Mul m _ _ | Truncate m _ => m | _ => 1 end.

(** Whether [v] is what an alternative says, or anything below a bound where it says nothing. *)
Definition fits (a : alternative) (bound : option Z) (r : valuation) (v : Z) : Prop :=
  holds (fst a) r
  /\ match snd a with Some f => v = eval f r | None => match bound with Some m => 0 <= v < m | None => True end end.

Lemma holds_cons f cs r : 0 <= eval f r -> holds cs r -> holds (f :: cs) r.
Proof. constructor; auto. Qed.
Lemma holds_nil r : holds [] r.
Proof. constructor. Qed.
Hint Resolve holds_cons holds_nil : core.

Ltac cases_of := repeat (apply holds_cons || apply holds_nil); autorewrite with eval; try lia.

Lemma mod_shifted x m q : 0 <= x - q * m < m -> x mod m = x - q * m.
Proof.
  intros B. replace x with (x - q * m + q * m) at 1 by ring. rewrite Z.mod_add by lia. apply Z.mod_small; lia.
Qed.

Lemma wrapped_sound m f r : 0 < m ->
  exists a, In a (wrapped m f) /\ fits a (Some m) r (eval f r mod m).
Proof.
  intros Hm. pose proof (Z.mod_pos_bound (eval f r) m Hm). unfold wrapped.
  destruct (Z_lt_dec (eval f r) (- m)).
  { eexists; split; [do 4 right; left; reflexivity|]. split; cbn [fst snd]; [cases_of|auto]. }
  destruct (Z_lt_dec (eval f r) 0).
  { eexists; split; [do 2 right; left; reflexivity|]. split; cbn [fst snd]; [cases_of|].
    autorewrite with eval. rewrite (mod_shifted _ _ (-1)); lia. }
  destruct (Z_lt_dec (eval f r) m).
  { eexists; split; [left; reflexivity|]. split; cbn [fst snd]; [cases_of|]. apply Z.mod_small; lia. }
  destruct (Z_lt_dec (eval f r) (2 * m)).
  { eexists; split; [do 1 right; left; reflexivity|]. split; cbn [fst snd]; [cases_of|].
    autorewrite with eval. rewrite (mod_shifted _ _ 1); lia. }
  eexists; split; [do 3 right; left; reflexivity|]. split; cbn [fst snd]; [cases_of|auto].
Qed.

Lemma is_number_sound f z r : is_number f = Some z -> eval f r = z.
Proof. unfold is_number, eval. destruct (terms f); [|discriminate]. intros E; injection E as <-. reflexivity. Qed.

Lemma comparison_sound c a b r v :
  v = truth (match c with
             | GeU => eval b r <=? eval a r | GtU => eval b r <? eval a r
             | Eq => eval a r =? eval b r | Ne => negb (eval a r =? eval b r) end) ->
  exists x, In x (comparison_cases c a b) /\ fits x (Some 2) r v.
Proof.
  intros ->. unfold comparison_cases, truth.
  destruct c;
    [ destruct (Z.leb_spec (eval b r) (eval a r)) | destruct (Z.ltb_spec (eval b r) (eval a r))
    | destruct (Z.eqb_spec (eval a r) (eval b r)) | destruct (Z.eqb_spec (eval a r) (eval b r)) ]; cbn [negb].
  1, 3, 5, 7: eexists; split; [left; reflexivity | split; cbn [fst snd]; [cases_of | reflexivity]].
  1, 2: eexists; split; [right; left; reflexivity | split; cbn [fst snd]; [cases_of | reflexivity]].
  all: destruct (Z_lt_dec (eval b r) (eval a r));
    [ eexists; split; [right; left; reflexivity | split; cbn [fst snd]; [cases_of | reflexivity]]
    | eexists; split; [right; right; left; reflexivity | split; cbn [fst snd]; [cases_of | reflexivity]] ].
Qed.

Definition is_ghost (x : positive) : bool := match find x (ghosts C) with Some _ => true | None => false end.
(** The variables that an expression reads are none of the counters. *)
Definition reads_variables (e : expression) : bool :=
  let plain x := negb (is_ghost x) in
  match e with
  | Constant _ | Unknown _ => true
  | Add _ a b | Sub _ a b | Mul _ a b | Maximum a b | Minimum a b | Compare _ a b => plain a && plain b
  | Truncate _ a | Signed _ a | Divide a _ | Move a | Advance a _ => plain a
  | Select c a b => plain c && plain a && plain b
  end.

Lemma plain_sound S r s x : describes S r s -> negb (is_ghost x) = true -> values s x = eval (get S x) r.
Proof.
  intros (_ & V & _) P. rewrite <- V. unfold all_values, is_ghost in *. destruct (find x (ghosts C)); [discriminate|auto].
Qed.

Lemma alternatives_sound S r s e v :
  describes S r s -> reads_variables e = true -> 0 < modulus e -> computes e (values s) v ->
  exists a, In a (fst (alternatives S e)) /\ fits a (snd (alternatives S e)) r v.
Proof.
  intros D P M V.
  assert (Q : forall x, negb (is_ghost x) = true -> values s x = eval (get S x) r) by (eauto using plain_sound).
  destruct e; cbn [alternatives fst snd computes reads_variables modulus] in *;
    repeat match goal with H : _ && _ = true |- _ => apply andb_true_iff in H as [? ?] end;
    repeat match goal with H : negb (is_ghost ?x) = true |- _ => rewrite (Q x H) in V; clear H end.
  - eexists; split; [left; reflexivity|]. split; cbn [fst snd]; [cases_of|]. now autorewrite with eval.
  - subst v. rewrite <- eval_plus. now apply wrapped_sound.
  - subst v. rewrite <- eval_minus. now apply wrapped_sound.
  - destruct (is_number (get S a)) as [z|] eqn:Na; [|destruct (is_number (get S b)) as [z|] eqn:Nb].
    + subst v. rewrite (is_number_sound _ _ r Na), <- eval_scale. now apply wrapped_sound.
    + subst v. rewrite (is_number_sound _ _ r Nb), Z.mul_comm, <- eval_scale. now apply wrapped_sound.
    + eexists; split; [left; reflexivity|]. split; cbn [fst snd]; [cases_of|]. subst v. apply Z.mod_pos_bound; lia.
  - subst v. now apply wrapped_sound.
  - destruct (Z.ltb_spec (eval (get S a) r) (m / 2)).
    + eexists; split; [left; reflexivity|]. split; cbn [fst snd]; [cases_of|exact V].
    + eexists; split; [right; left; reflexivity|]. split; cbn [fst snd]; [cases_of|]. autorewrite with eval. lia.
  - destruct (divide k (get S a)) as [f|] eqn:Dv.
    + eexists; split; [left; reflexivity|]. split; cbn [fst snd]; [cases_of|]. now rewrite (divide_sound _ _ _ r Dv).
    + eexists; split; [left; reflexivity|]. split; cbn [fst snd]; [cases_of|auto].
  - destruct (Z_le_dec (eval (get S b) r) (eval (get S a) r)).
    + eexists; split; [left; reflexivity|]. split; cbn [fst snd]; [cases_of|lia].
    + eexists; split; [right; left; reflexivity|]. split; cbn [fst snd]; [cases_of|lia].
  - destruct (Z_le_dec (eval (get S b) r) (eval (get S a) r)).
    + eexists; split; [left; reflexivity|]. split; cbn [fst snd]; [cases_of|lia].
    + eexists; split; [right; left; reflexivity|]. split; cbn [fst snd]; [cases_of|lia].
  - apply comparison_sound. destruct c; exact V.
  - subst v. destruct (Z.eqb_spec (eval (get S c) r) 0).
    + eexists; split; [right; right; left; reflexivity|]. split; cbn [fst snd]; [cases_of|auto].
    + destruct (Z_lt_dec 0 (eval (get S c) r)).
      * eexists; split; [left; reflexivity|]. split; cbn [fst snd]; [cases_of|auto].
      * eexists; split; [right; left; reflexivity|]. split; cbn [fst snd]; [cases_of|auto].
  - eexists; split; [left; reflexivity|]. split; cbn [fst snd]; [cases_of|auto].
  - eexists; split; [left; reflexivity|]. split; cbn [fst snd]; [cases_of|]. autorewrite with eval. lia.
  - eexists; split; [left; reflexivity|]. split; cbn [fst snd]; [cases_of|auto].
Qed.

(** ** Assignments *)

Definition set_known (S : symbolic) (x : register) (f : form) (news : list form) : symbolic :=
  Symbolic (PositiveMap.add x f (known S)) (news ++ facts S) (pending S).

Definition absent (x : positive) (f : form) : bool := negb (mentions x f).
Definition forgets (S : symbolic) (x : register) (news : list form) : bool :=
  forallb (absent x) (facts S) && forallb (absent x) news
  && forallb (fun p => Pos.eqb (fst p) x || absent x (snd p)) (PositiveMap.elements (known S))
  && forallb (fun w => absent x (snd w)) (pending S).

(** After an assignment of what an alternative says; a value that nothing is known of stands for itself. *)
Definition assigned (S : symbolic) (x : register) (bound : option Z) (news : list form) (f : option form)
  : option symbolic :=
  match f with
  | Some f => Some (set_known S x f news)
  | None =>
      if forgets S x news
      then Some (set_known S x (variable x)
             (match bound with Some m => [variable x; shift (scale (-1) (variable x)) (m - 1)] | None => [] end ++ news))
      else None
  end.

Lemma all_values_assign env t x v y : is_ghost x = false ->
  all_values (assign env x v) t y = if Pos.eqb y x then v else all_values env t y.
Proof.
  unfold all_values, is_ghost, assign. intros G. destruct (Pos.eqb_spec y x) as [->|].
  - destruct (find x (ghosts C)); [discriminate|]. reflexivity.
  - destruct (find y (ghosts C)); [reflexivity|]. reflexivity.
Qed.

Lemma get_set_known S x f news y : get (set_known S x f news) y = if Pos.eqb y x then f else get S y.
Proof.
  unfold get, set_known; cbn [known]. destruct (Pos.eqb_spec y x) as [->|N].
  - now rewrite PositiveMap.gss.
  - now rewrite PositiveMap.gso.
Qed.

Lemma set_known_sound S r s x v f news : is_ghost x = false -> describes S r s -> v = eval f r -> holds news r ->
  describes (set_known S x f news) r (State (assign (values s) x v) (waits s) (history s)).
Proof.
  intros G (F & V & W) -> N. split; [apply Forall_app; auto|]. split; [|exact W]. intros y.
  cbn [values history]. rewrite all_values_assign, get_set_known by auto. destruct (Pos.eqb y x); auto.
Qed.

Lemma holds_update cs r x v : forallb (absent x) cs = true -> holds cs r -> holds cs (update r x v).
Proof.
  intros A H. rewrite forallb_forall in A. unfold holds in *. rewrite Forall_forall in *. intros f I.
  rewrite eval_update; [auto|]. specialize (A f I). unfold absent in A. now apply negb_true_iff in A.
Qed.

Lemma forget_sound S r s x v news : is_ghost x = false -> describes S r s -> forgets S x news = true -> holds news r ->
  holds news (update r x v)
  /\ describes (set_known S x (variable x) []) (update r x v) (State (assign (values s) x v) (waits s) (history s)).
Proof.
  intros G (F & V & W) A N. unfold forgets in A.
  apply andb_true_iff in A as [A A4]. apply andb_true_iff in A as [A A3]. apply andb_true_iff in A as [A1 A2].
  split; [now apply holds_update|]. split; [now apply holds_update|]. split.
  - intros y. cbn [values history]. rewrite all_values_assign, get_set_known by auto.
    destruct (Pos.eqb_spec y x) as [->|N'].
    + rewrite eval_variable. now rewrite update_eq.
    + rewrite V. unfold get. destruct (PositiveMap.find y (known S)) as [f|] eqn:E.
      * apply PositiveMap.elements_correct in E. rewrite forallb_forall in A3. specialize (A3 _ E). cbn [fst snd] in A3.
        destruct (Pos.eqb_spec y x); [congruence|]. cbn in A3. unfold absent in A3. apply negb_true_iff in A3.
        now rewrite eval_update.
      * rewrite !eval_variable. now rewrite update_neq.
  - cbn [waits pending set_known]. rewrite W. apply map_ext_in. intros w I. f_equal.
    rewrite forallb_forall in A4. specialize (A4 _ I). unfold absent in A4. apply negb_true_iff in A4.
    now rewrite eval_update.
Qed.

Lemma assigned_sound S r s x v bound news f S' : is_ghost x = false -> describes S r s ->
  fits (news, f) bound r v -> assigned S x bound news f = Some S' ->
  possible S' (State (assign (values s) x v) (waits s) (history s)).
Proof.
  intros G D [H E] A. unfold assigned in A. cbn [fst snd] in *. destruct f as [f|].
  - injection A as <-. exists r. now apply set_known_sound.
  - destruct (forgets S x news) eqn:Fg; [|discriminate]. injection A as <-. exists (update r x v).
    destruct (forget_sound S r s x v news G D Fg H) as [N (F' & V' & W')].
    split; [|split; [exact V'|exact W']]. apply Forall_app; split; [|exact F']. apply Forall_app; split; [|exact N].
    destruct bound as [m|]; [|constructor]. repeat constructor; autorewrite with eval; rewrite update_eq; lia.
Qed.

Fixpoint all_some {A} (l : list (option A)) : option (list A) :=
  match l with
  | [] => Some []
  | Some a :: l => match all_some l with Some l => Some (a :: l) | None => None end
  | None :: _ => None
  end.

Lemma all_some_in {A} (l : list (option A)) l' o : all_some l = Some l' -> In o l -> exists a, o = Some a /\ In a l'.
Proof.
  revert l'; induction l as [|[a|] l IH]; simpl; intros l' E I; [contradiction| |discriminate].
  destruct (all_some l) as [l''|]; [|discriminate]. injection E as <-. destruct I as [<-|I]; [exists a; simpl; auto|].
  destruct (IH _ eq_refl I) as (b & -> & ?). exists b; simpl; auto.
Qed.

Definition feasible (S : symbolic) (a : alternative) : bool := negb (contradict (facts S) (fst a)).

(** What one case alone says beyond the facts, these say already. *)
Definition execute_let (S : symbolic) (x : register) (e : expression) : option (list symbolic) :=
  if is_ghost x || negb (reads_variables e) || negb (0 <? modulus e) then None
  else
    let (all, bound) := alternatives S e in
    match filter (feasible S) all with
    | [(_, f)] => match assigned S x bound [] f with Some S' => Some [S'] | None => None end
    | some => all_some (map (fun a => assigned S x bound (fst a) (snd a)) some)
    end.

Lemma execute_let_sound S s x e v Ss : possible S s -> execute_let S x e = Some Ss -> computes e (values s) v ->
  exists S', In S' Ss /\ possible S' (State (assign (values s) x v) (waits s) (history s)).
Proof.
  intros [r D] E V. unfold execute_let in E.
  destruct (is_ghost x) eqn:G; [discriminate|]. destruct (reads_variables e) eqn:P; [|discriminate].
  destruct (Z.ltb_spec 0 (modulus e)) as [M|]; [|discriminate]. cbn in E.
  destruct (alternatives_sound S r s e v D P M V) as (a & Ia & Fa).
  destruct (alternatives S e) as [all bound]. cbn [fst snd] in *.
  assert (I : In a (filter (feasible S) all)).
  { apply filter_In. split; [exact Ia|]. unfold feasible. apply negb_true_iff. destruct (contradict _ _) eqn:K; [|auto].
    exfalso. eapply contradict_sound; [exact K | apply D | apply Fa]. }
  assert (General : all_some (map (fun a => assigned S x bound (fst a) (snd a)) (filter (feasible S) all)) = Some Ss ->
    exists S', In S' Ss /\ possible S' (State (assign (values s) x v) (waits s) (history s))).
  { intros E'. destruct (all_some_in _ _ _ E' (in_map (fun a => assigned S x bound (fst a) (snd a)) _ _ I))
      as (S' & A & IS). exists S'. split; [exact IS|]. destruct a as [news f]. eapply assigned_sound; eauto. }
  destruct (filter (feasible S) all) as [|[news f] [|b rest]]; [exact (General E) | | exact (General E)].
  destruct I as [<-|[]]. destruct (assigned S x bound [] f) as [S'|] eqn:A; [|discriminate]. injection E as <-.
  exists S'. split; [left; reflexivity|]. apply (assigned_sound S r s x v bound [] f); auto.
  destruct Fa as [_ Fa]. split; [constructor|exact Fa].
Qed.

(** ** An iteration begins *)

Definition entered (S : symbolic) (l : loop) (x : positive) (g : ghost) : option form :=
  match g with
  | Entries l' => Some (if Pos.eqb l l' then shift (get S x) 1 else get S x)
  | Iteration l' =>
      Some (if Pos.eqb l l' then shift (get S x) 1 else if Pos.eqb l (parent C l') then number 0 else get S x)
  | Past c k l' =>
      if Pos.eqb l c then match k with O => None | 1%nat => count S (Entries l') | S k => count S (Past c k l') end
      else match k with O => None | _ => Some (get S x) end
  | Sent _ => Some (get S x)
  end.

(** All counters changed at once. *)
Fixpoint change_all (S : symbolic) (news : positive -> ghost -> option form) (gs : list (positive * ghost))
  : option (PositiveMap.t form) :=
  match gs with
  | [] => Some (known S)
  | (x, g) :: gs =>
      match news x g, change_all S news gs with Some f, Some m => Some (PositiveMap.add x f m) | _, _ => None end
  end.

Definition execute_enter (S : symbolic) (l : loop) : option (list symbolic) :=
  match change_all S (entered S l) (ghosts C) with
  | None => None
  | Some m =>
      let S' := Symbolic m (facts S) (pending S) in
      match find l (bounds C), count S' (Entries l) with
      | Some b, Some f => Some [Symbolic m (shift (scale (-1) f) b :: facts S) (pending S)]
      | _, _ => Some [S']
      end
  end.

Lemma change_all_find S news gs m x : change_all S news gs = Some m ->
  match find x gs with
  | Some g => exists f, news x g = Some f /\ PositiveMap.find x m = Some f
  | None => PositiveMap.find x m = PositiveMap.find x (known S)
  end.
Proof.
  revert m; induction gs as [|[y g] gs IH]; intros m E; cbn [change_all find] in *; [injection E as <-; reflexivity|].
  destruct (news y g) as [f|] eqn:Ey; [|discriminate].
  destruct (change_all S news gs) as [m'|]; [|discriminate]. injection E as <-.
  destruct (Pos.eqb_spec y x) as [->|N].
  - exists f. split; [exact Ey|]. apply PositiveMap.gss.
  - specialize (IH _ eq_refl). rewrite PositiveMap.gso by congruence. exact IH.
Qed.

Lemma change_all_sound S r s news m t : describes S r s -> change_all S news (ghosts C) = Some m ->
  (forall x g f, find x (ghosts C) = Some g -> news x g = Some f -> eval f r = counter g t) ->
  forall x, all_values (values s) t x = eval (get (Symbolic m (facts S) (pending S)) x) r.
Proof.
  intros (_ & V & _) M N x. pose proof (change_all_find S news (ghosts C) m x M) as L. specialize (V x).
  unfold all_values in *. unfold get in *; cbn [known] in *.
  destruct (find x (ghosts C)) as [g|] eqn:Fx.
  - destruct L as (f & Ef & ->). symmetry. eauto.
  - rewrite L. exact V.
Qed.

Lemma entered_sound S r s l x g f : describes S r s -> find x (ghosts C) = Some g -> entered S l x g = Some f ->
  eval f r = counter g (Entered l :: history s).
Proof.
  intros D F E. assert (X : eval (get S x) r = counter g (history s)).
  { destruct D as (_ & V & _). rewrite <- V. unfold all_values. now rewrite F. }
  destruct g as [l'|l'|c k l'|w]; cbn [entered counter entries iteration sent] in *.
  - injection E as <-. destruct (Pos.eqb l l'); autorewrite with eval; lia.
  - injection E as <-. destruct (Pos.eqb l l'); [autorewrite with eval; lia|].
    destruct (Pos.eqb l (parent C l')); [reflexivity|lia].
  - destruct k as [|k]; [destruct (Pos.eqb l c); discriminate|]. cbn [back before].
    destruct (Pos.eqb_spec l c) as [->|N].
    + destruct k as [|k]; apply (count_sound _ _ _ _ _ D) in E; exact E.
    + injection E as <-. exact X.
  - injection E as <-. exact X.
Qed.

Lemma execute_enter_sound S s l Ss : possible S s -> execute_enter S l = Some Ss ->
  within_bounds (Entered l :: history s) ->
  exists S', In S' Ss /\ possible S' (State (values s) (waits s) (Entered l :: history s)).
Proof.
  intros [r D] E B. unfold execute_enter in E. destruct (change_all S (entered S l) (ghosts C)) as [m|] eqn:M; [|discriminate].
  assert (D' : describes (Symbolic m (facts S) (pending S)) r (State (values s) (waits s) (Entered l :: history s))).
  { pose proof D as (F & V & W). split; [exact F|]. split; [|exact W].
    apply (change_all_sound S r s (entered S l)); [exact D|exact M|]. intros x g f Fx Ef. eapply entered_sound; eauto. }
  destruct (find l (bounds C)) as [b|] eqn:Fb.
  - destruct (count _ (Entries l)) as [f|] eqn:Cf; injection E as <-; (eexists; split; [left; reflexivity|]); exists r.
    + destruct D' as (F' & V' & W'). split; [|split; [exact V'|exact W']]. constructor; [|exact F'].
      pose proof (count_sound _ _ _ _ _ (conj F' (conj V' W')) Cf) as X. cbn [counter history] in X.
      autorewrite with eval. rewrite X. specialize (B _ _ Fb). lia.
    + exact D'.
  - injection E as <-. eexists; split; [left; reflexivity|]. exists r. exact D'.
Qed.

(** ** Loops *)

Definition annotation_state (hint : annotation form) : symbolic :=
  Symbolic (fold_right (fun p m => PositiveMap.add (fst p) (snd p) m) (PositiveMap.empty form) (fst hint)) (snd hint) [].

Definition same_form (hy : list form) (f g : form) : bool :=
  let d := minus f g in
  match terms d with
  | [] => constant d =? 0
  | _ => entails hy d && entails hy (scale (-1) d)
  end.

Definition meets (S : symbolic) (hint : annotation form) : bool :=
  (match pending S with [] => true | _ => false end)
  && forallb (fun p => same_form (facts S) (get S (fst p)) (substitute (snd p) (get S))) (fst hint)
  && forallb (fun f => entails (facts S) (substitute f (get S))) (snd hint).

Lemma same_form_sound hy f g r : same_form hy f g = true -> holds hy r -> eval f r = eval g r.
Proof.
  unfold same_form. intros E H. assert (X : eval (minus f g) r = 0).
  { destruct (terms (minus f g)) as [|t ts] eqn:T.
    - apply Z.eqb_eq in E. unfold eval. rewrite T, E. reflexivity.
    - apply andb_true_iff in E as [E1 E2]. apply (entails_sound _ _ r) in E1, E2; auto. rewrite eval_scale in E2. lia. }
  rewrite eval_minus in X. lia.
Qed.

Lemma annotation_find (l : list (positive * form)) x f :
  PositiveMap.find x (fold_right (fun p m => PositiveMap.add (fst p) (snd p) m) (PositiveMap.empty form) l) = Some f ->
  In (x, f) l.
Proof.
  induction l as [|[y g] l IH]; cbn [fold_right fst snd]; [rewrite PositiveMap.gempty; discriminate|].
  destruct (Pos.eq_dec x y) as [->|N].
  - rewrite PositiveMap.gss. intros E; injection E as <-. left; reflexivity.
  - rewrite PositiveMap.gso by auto. intros E. right. auto.
Qed.

Lemma meets_sound S s hint : possible S s -> meets S hint = true -> possible (annotation_state hint) s.
Proof.
  intros [r (F & V & W)] M. unfold meets in M. apply andb_true_iff in M as [M M3]. apply andb_true_iff in M as [M1 M2].
  rewrite forallb_forall in M2, M3. set (r' := all_values (values s) (history s)).
  assert (X : forall f, eval (substitute f (get S)) r = eval f r').
  { intros f. rewrite eval_substitute. apply eval_ext. intros x. symmetry. apply V. }
  exists r'. split; [|split].
  - unfold holds. apply Forall_forall. intros f I. rewrite <- X. eapply entails_sound; [apply M3; exact I|exact F].
  - intros x. fold r'. unfold get at 1, annotation_state; cbn [known].
    destruct (PositiveMap.find x _) as [f|] eqn:E; [|now rewrite eval_variable].
    apply annotation_find in E. specialize (M2 _ E). cbn [fst snd] in M2.
    apply (same_form_sound _ _ _ r) in M2; [|exact F]. rewrite X in M2. rewrite <- M2. apply V.
  - destruct (pending S); [exact W|discriminate].
Qed.

Definition meets_one (hints : list (annotation form)) (S : symbolic) : bool := existsb (meets S) hints.

Lemma meets_one_sound S s hints : possible S s -> meets_one hints S = true ->
  exists S', In S' (map annotation_state hints) /\ possible S' s.
Proof.
  intros P M. apply existsb_exists in M as (hint & I & M). exists (annotation_state hint).
  split; [now apply in_map|]. eapply meets_sound; eauto.
Qed.

(** ** An instruction issues *)

(** The facts of one case of what its needs owe, and what each then owes of which producer. *)
Definition owing : Type := list form * list (label * form).

Definition past (S : symbolic) (hy : list form) (c l : loop) (k : nat) : option form :=
  match (if Pos.eqb c l && negb (Pos.eqb c root) then count S (Entries l) else None) with
  | Some f =>
      let f := shift f (- Z.of_nat k) in
      if entails hy f then Some f else count S (Past c k l)
  | None => count S (Past c k l)
  end.

Fixpoint owings (S : symbolic) (ns : list need) (hy : list form) : option (list owing) :=
  match ns with
  | [] => Some [(hy, [])]
  | n :: ns =>
      let owe f := option_map (map (fun o => (fst o, (producer n, f) :: snd o))) in
      match up_to n with
      | Now =>
          match count S (Entries (producer_loop n)) with Some f => owe f (owings S ns hy) | None => None end
      | Back c k =>
          match count S (Iteration c) with
          | None => None
          | Some i =>
              let reached := shift i (- Z.of_nat k - 1) in
              let early := negation reached in
              let late :=
                if contradict hy [reached] then Some []
                else match past S (reached :: hy) c (producer_loop n) k with
                     | Some f => owe f (owings S ns (reached :: hy))
                     | None => None
                     end in
              let none := if contradict hy [early] then Some [] else owings S ns (early :: hy) in
              match late, none with Some a, Some b => Some (a ++ b) | _, _ => None end
          end
      end
  end.

(** The number of rounds that a group has retired in, as a variable. *)
Definition rounds : positive := 1%positive.
Definition reached (n c : Z) (f : form) : form := minus (shift (scale n (variable rounds)) c) f.

Definition position_right (hy : list form) (ws : list (semaphore * form)) (ds : list (label * form)) (g : group)
    (j : nat) : bool :=
  let done := firstn j g in
  let passed := map (fun w => reached (value_of (fst w) g) (value_of (fst w) done) (snd w))
    (filter (fun w => has_signal (fst w) g) ws) in
  let enough := map (fun d => reached (retirements (fst d) g) (retirements (fst d) done) (snd d))
    (filter (fun d => has_label (fst d) g) ds) in
  forallb (fun d => contradict hy (variable rounds :: negation d :: passed)) enough
  && forallb (fun w => contradict hy (variable rounds :: negation w :: enough)) passed.

Definition owing_right (ws : list (semaphore * form)) (o : owing) : bool :=
  let (hy, ds) := o in
  forallb (absent rounds) hy && forallb (fun w => absent rounds (snd w)) ws && forallb (fun d => absent rounds (snd d)) ds
  && forallb (fun w => existsb (has_signal (fst w)) (groups C)) ws
  && forallb (fun d => existsb (has_label (fst d)) (groups C)) ds
  && forallb (fun g => forallb (position_right hy ws ds g) (seq 0 (length g))) (groups C).

Definition issue_right (S : symbolic) (i : label) : bool :=
  match needs C i with
  | None => false
  | Some ns => match owings S ns (facts S) with
               | Some os => forallb (owing_right (pending S)) os
               | None => false
               end
  end.

Definition issued (S : symbolic) (signal : option semaphore) (x : positive) (g : ghost) : option form :=
  match g, signal with
  | Sent s, Some s' => Some (if Pos.eqb s' s then shift (get S x) 1 else get S x)
  | _, _ => Some (get S x)
  end.

Definition range_right (S : symbolic) (signal : option semaphore) : bool :=
  match signal with
  | None => true
  | Some s => match count S (Sent s) with
              | Some f => entails (facts S) (shift (scale (-1) f) (limit C))
              | None => false
              end
  end.

Definition execute_issue (S : symbolic) (i : label) (signal : option semaphore) : option (list symbolic) :=
  match change_all S (issued S signal) (ghosts C) with
  | Some m =>
      if issue_right S i && range_right (Symbolic m (facts S) []) signal
      then Some [Symbolic m (facts S) []] else None
  | None => None
  end.

Lemma issued_sound S r s i signal ws x g f : describes S r s -> find x (ghosts C) = Some g ->
  issued S signal x g = Some f -> eval f r = counter g (Issued i signal ws :: history s).
Proof.
  intros D F E. assert (X : eval (get S x) r = counter g (history s)).
  { destruct D as (_ & V & _). rewrite <- V. unfold all_values. now rewrite F. }
  destruct g as [l|l|c [|k] l|w]; cbn [issued counter] in *; try (injection E as <-; exact X).
  destruct signal as [w'|]; injection E as <-; cbn [sent]; [|exact X].
  destruct (Pos.eqb w' w); autorewrite with eval; lia.
Qed.

Fixpoint execute (s : stream form) (S : symbolic) : option (list symbolic) :=
  match s with
  | Skip => Some [S]
  | Seq a b =>
      match execute a S with
      | Some Ss => option_map (@concat _) (all_some (map (execute b) Ss))
      | None => None
      end
  | Let x e => execute_let S x e
  | Wait w x => if is_ghost x then None else Some [Symbolic (known S) (facts S) ((w, get S x) :: pending S)]
  | Issue i g => execute_issue S i g
  | Enter l => execute_enter S l
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

Lemma fold_nonnegative {A} (f : A -> Z) l : (forall a, 0 <= f a) -> 0 <= fold_right (fun x n => f x + n) 0 l.
Proof. intros H; induction l; simpl; [lia|]. specialize (H a). lia. Qed.
Lemma retirements_nonnegative i r : 0 <= retirements i r.
Proof. apply fold_nonnegative. intros a. destruct (Pos.eqb (fst a) i); lia. Qed.

Lemma past_sound S r s hy c l k f : describes S r s -> holds hy r -> past S hy c l k = Some f ->
  eval f r = entries l (back c k (history s)).
Proof.
  intros D H E. unfold past in E. destruct (Pos.eqb c l && negb (Pos.eqb c root)) eqn:Cl.
  - destruct (count S (Entries l)) as [g|] eqn:G; [|apply (count_sound _ _ _ _ _ D) in E; exact E].
    destruct (entails hy _) eqn:En; [|apply (count_sound _ _ _ _ _ D) in E; exact E]. injection E as <-.
    apply (entails_sound _ _ r) in En; [|exact H]. autorewrite with eval in *.
    apply (count_sound _ _ _ _ _ D) in G. cbn [counter] in G.
    apply andb_true_iff in Cl as [Cl R]. apply Pos.eqb_eq in Cl as ->. apply negb_true_iff in R. apply Pos.eqb_neq in R.
    rewrite entries_back_self by auto. lia.
  - apply (count_sound _ _ _ _ _ D) in E. exact E.
Qed.

Lemma owings_sound S r s ns : describes S r s -> forall hy os, holds hy r -> owings S ns hy = Some os ->
  exists o, In o os /\ holds (fst o) r
  /\ forall R, satisfied (parent C) ns (history s) R
     <-> Forall (fun d => eval (snd d) r <= retirements (fst d) R) (snd o).
Proof.
  intros D. induction ns as [|n ns IH]; intros hy os H E; cbn [owings] in E.
  { injection E as <-. exists (hy, []). split; [left; reflexivity|]. split; [exact H|]. intros R. split; constructor. }
  assert (Owe : forall hy f os', holds hy r -> eval f r = owed (parent C) n (history s) ->
    option_map (map (fun o : owing => (fst o, (producer n, f) :: snd o))) (owings S ns hy) = Some os' ->
    exists o, In o os' /\ holds (fst o) r
    /\ forall R, satisfied (parent C) (n :: ns) (history s) R
       <-> Forall (fun d => eval (snd d) r <= retirements (fst d) R) (snd o)).
  { intros hy' f os' H' Ef E'. destruct (owings S ns hy') as [os''|] eqn:O; [|discriminate]. injection E' as <-.
    destruct (IH _ _ H' O) as (o & Io & Ho & X). exists (fst o, (producer n, f) :: snd o).
    split; [apply (in_map (fun o : owing => (fst o, (producer n, f) :: snd o)) _ _ Io)|]. split; [exact Ho|].
    intros R. unfold satisfied. cbn [snd]. rewrite !Forall_cons_iff. cbn [fst snd]. rewrite Ef.
    split; intros [? ?]; (split; [assumption|]); apply X; assumption. }
  destruct (up_to n) as [|c k] eqn:T.
  - destruct (count S (Entries (producer_loop n))) as [f|] eqn:Cf; [|discriminate].
    apply (Owe hy f); auto. unfold owed. rewrite T. apply (count_sound _ _ _ _ _ D) in Cf. exact Cf.
  - destruct (count S (Iteration c)) as [i|] eqn:Ci; [|discriminate].
    apply (count_sound _ _ _ _ _ D) in Ci. cbn [counter] in Ci.
    set (rc := shift i (- Z.of_nat k - 1)) in *. assert (Er : eval rc r = iteration (parent C) c (history s) - Z.of_nat k - 1)
      by (unfold rc; autorewrite with eval; lia).
    match type of E with match ?l with _ => _ end = _ => destruct l as [late|] eqn:El; [|discriminate] end.
    match type of E with match ?l with _ => _ end = _ => destruct l as [none|] eqn:En; [|discriminate] end.
    injection E as <-. destruct (Z_lt_dec (Z.of_nat k) (iteration (parent C) c (history s))) as [L|L].
    + assert (Hr : holds [rc] r) by (constructor; [lia|constructor]).
      destruct (contradict hy [rc]) eqn:K; [exfalso; eapply contradict_sound; eauto|].
      assert (H' : holds (rc :: hy) r) by (constructor; [lia|exact H]).
      destruct (past S (rc :: hy) c (producer_loop n) k) as [f|] eqn:P; [|discriminate].
      destruct (Owe (rc :: hy) f late) as (o & Io & Ho & X); auto.
      * unfold owed. rewrite T. destruct (Z.ltb_spec (Z.of_nat k) (iteration (parent C) c (history s))); [|lia].
        eapply past_sound; eauto.
      * exists o. split; [apply in_or_app; auto|auto].
    + assert (He : 0 <= eval (negation rc) r) by (autorewrite with eval; lia).
      destruct (contradict hy [negation rc]) eqn:K.
      { exfalso. eapply contradict_sound; [exact K|exact H|]. constructor; [exact He|constructor]. }
      destruct (IH (negation rc :: hy) none) as (o & Io & Ho & X); [constructor; auto|exact En|].
      exists o. split; [apply in_or_app; auto|]. split; [exact Ho|]. intros R. rewrite <- X. unfold satisfied.
      rewrite Forall_cons_iff. split; [tauto|]. intros Y; split; [|exact Y]. unfold owed. rewrite T.
      destruct (Z.ltb_spec (Z.of_nat k) (iteration (parent C) c (history s))); [lia|]. apply retirements_nonnegative.
Qed.

Lemma owing_right_sound ws o r : owing_right ws o = true -> holds (fst o) r ->
  forall R, Forall (fun g => in_order g R) (groups C) ->
  (waits_pass (map (fun w => (fst w, eval (snd w) r)) ws) R
   <-> Forall (fun d => eval (snd d) r <= retirements (fst d) R) (snd o)).
Proof.
  intros E H R Gs. destruct o as [hy ds]. unfold owing_right in E. cbn [fst snd] in *.
  repeat match type of E with _ && _ = true => let E' := fresh "E" in apply andb_true_iff in E as [E E'] end.
  rename E into A1, E4 into A2, E3 into A3, E2 into A4, E1 into A5, E0 into A6.
  rewrite forallb_forall in A2, A3, A4, A5, A6. rewrite Forall_forall in Gs.
  assert (Right : forall g, In g (groups C) -> exists m j, 0 <= m /\ position_right hy ws ds g j = true
    /\ (forall s, has_signal s g = true -> value_of s R = m * value_of s g + value_of s (firstn j g))
    /\ (forall i, has_label i g = true -> retirements i R = m * retirements i g + retirements i (firstn j g))).
  { intros g Ig. destruct (Gs g Ig) as (m & j & Hm & Hj & Hs & Hi). exists m, j. repeat split; auto.
    specialize (A6 g Ig). rewrite forallb_forall in A6. apply A6. apply in_seq. lia. }
  assert (Plain : forall f m, absent rounds f = true -> eval f (update r rounds m) = eval f r).
  { intros f m Af. unfold absent in Af. apply negb_true_iff in Af. now apply eval_update. }
  assert (Hy : forall m, holds hy (update r rounds m)) by (intros; now apply holds_update).
  assert (Reach : forall n c f m, absent rounds f = true -> eval (reached n c f) (update r rounds m) = n * m + c - eval f r).
  { intros n c f m Af. unfold reached. autorewrite with eval. rewrite update_eq, Plain by auto. lia. }
  assert (Rounds : forall m, 0 <= m -> 0 <= eval (variable rounds) (update r rounds m)).
  { intros m Hm. rewrite eval_variable, update_eq. exact Hm. }
  unfold waits_pass. rewrite !Forall_forall. split.
  - intros W d Id. specialize (A5 d Id). apply existsb_exists in A5 as (g & Ig & Lg).
    destruct (Right g Ig) as (m & j & Hm & P & Hs & Hi). unfold position_right in P. apply andb_true_iff in P as [P _].
    rewrite forallb_forall in P.
    assert (Idg : In d (filter (fun d => has_label (fst d) g) ds)) by (apply filter_In; auto).
    specialize (P _ (in_map (fun d => reached (retirements (fst d) g) (retirements (fst d) (firstn j g)) (snd d)) _ _ Idg)).
    destruct (Z_le_dec (eval (snd d) r) (retirements (fst d) R)) as [|N]; [auto|exfalso].
    eapply contradict_sound; [exact P|apply (Hy m)|]. constructor; [auto|]. constructor.
    + rewrite eval_negation, Reach by (apply A3; auto). rewrite (Hi _ Lg) in N. lia.
    + apply Forall_map. rewrite Forall_forall. intros w Iw. apply filter_In in Iw as [Iw Sw].
      rewrite Reach by (apply A2; auto). rewrite <- (Z.mul_comm m), <- (Hs _ Sw).
      specialize (W _ (in_map (fun w => (fst w, eval (snd w) r)) _ _ Iw)). cbn [fst snd] in W. lia.
  - intros Dn w' Iw'. apply in_map_iff in Iw' as (w & <- & Iw). cbn [fst snd].
    specialize (A4 w Iw). apply existsb_exists in A4 as (g & Ig & Sg).
    destruct (Right g Ig) as (m & j & Hm & P & Hs & Hi). unfold position_right in P. apply andb_true_iff in P as [_ P].
    rewrite forallb_forall in P.
    assert (Iwg : In w (filter (fun w => has_signal (fst w) g) ws)) by (apply filter_In; auto).
    specialize (P _ (in_map (fun w => reached (value_of (fst w) g) (value_of (fst w) (firstn j g)) (snd w)) _ _ Iwg)).
    destruct (Z_le_dec (eval (snd w) r) (value_of (fst w) R)) as [|N]; [auto|exfalso].
    eapply contradict_sound; [exact P|apply (Hy m)|]. constructor; [auto|]. constructor.
    + rewrite eval_negation, Reach by (apply A2; auto). rewrite (Hs _ Sg) in N. lia.
    + apply Forall_map. rewrite Forall_forall. intros d Id. apply filter_In in Id as [Id Ld].
      rewrite Reach by (apply A3; auto). rewrite <- (Z.mul_comm m), <- (Hi _ Ld).
      specialize (Dn _ Id). lia.
Qed.

Lemma issue_right_sound S s i : possible S s -> issue_right S i = true -> needs C i <> None /\ claim i (waits s) (history s).
Proof.
  intros [r D] E. unfold issue_right in E. destruct (needs C i) as [ns|] eqn:N; [|discriminate].
  split; [congruence|]. intros ns' E' R Gs. rewrite N in E'. injection E' as <-.
  destruct (owings S ns (facts S)) as [os|] eqn:O; [|discriminate]. rewrite forallb_forall in E.
  pose proof D as (F & V & W). destruct (owings_sound S r s ns D _ _ F O) as (o & Io & Ho & X).
  rewrite X, W. apply owing_right_sound; auto.
Qed.

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
    eexists; split; [left; reflexivity|]. destruct P as [r D]. exists r. pose proof D as (F & V & W).
    split; [exact F|]. split; [exact V|]. cbn [waits pending map fst snd]. rewrite W. f_equal. f_equal.
    eapply plain_sound; [exact D|]. now rewrite G.
  - subst q. unfold execute_issue in E. destruct (change_all S (issued S signal) (ghosts C)) as [m|] eqn:M; [|discriminate].
    destruct (issue_right S i) eqn:I; [|discriminate].
    destruct (range_right _ signal) eqn:Rg; [|discriminate]. injection E as <-.
    destruct P as [r D].
    assert (D' : describes (Symbolic m (facts S) []) r (State (values p) [] (Issued i signal (waits p) :: history p))).
    { pose proof D as (F & V & W). split; [exact F|]. split; [|reflexivity].
      intros x. apply (change_all_sound S r p (issued S signal) m (Issued i signal (waits p) :: history p) D M).
      intros y g f Fx Ef. eapply issued_sound; eauto. }
    split; [|eexists; split; [left; reflexivity|]; exists r; exact D'].
    split; [eapply issue_right_sound; [exists r; exact D|exact I]|]. split; [|exact K].
    unfold in_range, range_right in *. destruct signal as [w|]; [|constructor].
    destruct (count _ (Sent w)) as [f|] eqn:Cf; [|discriminate].
    apply (entails_sound _ _ r) in Rg; [|exact (proj1 D')]. autorewrite with eval in Rg.
    apply (count_sound _ _ _ _ _ D') in Cf. cbn [counter history] in Cf. lia.
  - subst q. split; [exact K|]. eapply execute_enter_sound; eauto.
  - destruct (execute s1 S) as [Sa|] eqn:E1; [|discriminate]. destruct (execute s2 S) as [Sb|] eqn:E2; [|discriminate].
    injection E as <-. destruct R as [R|R].
    + destruct (IHs1 _ _ _ _ E1 P R B K) as (? & S' & ? & ?). split; [auto|]. exists S'. split; [apply in_or_app; auto|auto].
    + destruct (IHs2 _ _ _ _ E2 P R B K) as (? & S' & ? & ?). split; [auto|]. exists S'. split; [apply in_or_app; auto|auto].
  - destruct (meets_one hints S) eqn:M; [|discriminate].
    destruct (all_some _) as [Sss|] eqn:Eb; [|discriminate].
    destruct (forallb _ Sss) eqn:Mb; [|discriminate]. injection E as <-. rewrite forallb_forall in Mb.
    pose proof (meets_one_sound _ _ _ P M) as P0. clear P M S.
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
             | Iteration _ | Sent _ => 0 end)) m) (PositiveMap.empty form) (ghosts C)) [] [].

Lemma back_nil c k : back c k [] = [].
Proof. induction k; simpl; auto. Qed.

Lemma start_sound env : possible start (State env [] []).
Proof.
  exists env. split; [constructor|]. split; [|reflexivity]. intros x. cbn [values history].
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
