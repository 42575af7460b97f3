(** Assignments, by cases: arithmetic that wraps, masks and maxima split a state in those that inequalities allow. *)
From Coq Require Import ZArith List Bool Lia PArith FMapPositive.
From Checker Require Import Linear Language States.
Import ListNotations.
Local Open Scope Z_scope.

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
Local Hint Resolve holds_cons holds_nil : core.

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

Section Execution.
Variable C : context.
Local Notation all_values := (all_values C). Local Notation describes := (describes C).
Local Notation possible := (possible C).

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
  Symbolic (PositiveMap.add x f (known S)) (news ++ facts S) (pending S) (passed S).

Definition absent (x : positive) (f : form) : bool := negb (mentions x f).
Definition forgets (S : symbolic) (x : register) (news : list form) : bool :=
  forallb (absent x) (facts S) && forallb (absent x) news
  && forallb (fun p => Pos.eqb (fst p) x || absent x (snd p)) (PositiveMap.elements (known S))
  && forallb (fun w => absent x (snd w)) (pending S) && forallb (fun w => absent x (snd w)) (passed S).

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
  intros G (F & V & W & P) A N. unfold forgets in A.
  apply andb_true_iff in A as [A A5]. apply andb_true_iff in A as [A A4]. apply andb_true_iff in A as [A A3]. apply andb_true_iff in A as [A1 A2].
  split; [now apply holds_update|]. split; [now apply holds_update|]. split.
  - intros y. cbn [values history]. rewrite all_values_assign, get_set_known by auto.
    destruct (Pos.eqb_spec y x) as [->|N'].
    + rewrite eval_variable. now rewrite update_eq.
    + rewrite V. unfold get. destruct (PositiveMap.find y (known S)) as [f|] eqn:E.
      * apply PositiveMap.elements_correct in E. rewrite forallb_forall in A3. specialize (A3 _ E). cbn [fst snd] in A3.
        destruct (Pos.eqb_spec y x); [congruence|]. cbn in A3. unfold absent in A3. apply negb_true_iff in A3.
        now rewrite eval_update.
      * rewrite !eval_variable. now rewrite update_neq.
  - assert (Same : forall ws w, forallb (fun w : semaphore * form => absent x (snd w)) ws = true -> In w ws ->
      eval (snd w) (update r x v) = eval (snd w) r).
    { intros ws w B I. rewrite forallb_forall in B. specialize (B _ I). unfold absent in B. apply negb_true_iff in B.
      now apply eval_update. }
    cbn [waits pending passed history set_known]. split.
    + rewrite W. apply map_ext_in. intros w I. f_equal. symmetry. exact (Same _ _ A4 I).
    + rewrite Forall_forall in *. intros w I. rewrite (Same _ _ A5 I). auto.
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

(** ** Assumptions *)

Definition assumptions (f : form) (b : bool) : list (list form) :=
  if b then [[shift f (-1)]; [shift (scale (-1) f) (-1)]] else [[f; scale (-1) f]].

Definition execute_assume (S : symbolic) (x : register) (b : bool) : option (list symbolic) :=
  if is_ghost x then None
  else Some (map (fun news => Symbolic (known S) (news ++ facts S) (pending S) (passed S))
         (filter (fun news => negb (contradict (facts S) news)) (assumptions (get S x) b))).

Lemma execute_assume_sound S s x b Ss : possible S s -> execute_assume S x b = Some Ss ->
  b = negb (values s x =? 0) -> exists S', In S' Ss /\ possible S' s.
Proof.
  intros [r D] E B. unfold execute_assume in E. destruct (is_ghost x) eqn:G; [discriminate|]. injection E as <-.
  assert (V : values s x = eval (get S x) r) by (eapply plain_sound; [exact D|now rewrite G]).
  assert (X : exists news, In news (assumptions (get S x) b) /\ holds news r).
  { rewrite V in B. unfold assumptions. destruct (Z.eqb_spec (eval (get S x) r) 0) as [Z0|N]; subst b; cbn [negb].
    - eexists; split; [left; reflexivity|]. cases_of.
    - destruct (Z_lt_dec 0 (eval (get S x) r)).
      + eexists; split; [left; reflexivity|]. cases_of.
      + eexists; split; [right; left; reflexivity|]. cases_of. }
  destruct X as (news & I & H). exists (Symbolic (known S) (news ++ facts S) (pending S) (passed S)). split.
  - apply in_map_iff. exists news. split; [reflexivity|]. apply filter_In. split; [exact I|]. apply negb_true_iff.
    destruct (contradict _ _) eqn:K; [|reflexivity]. exfalso. eapply contradict_sound; [exact K|apply D|exact H].
  - exists r. destruct D as (F & V' & W & P). split; [apply Forall_app; auto|]. split; [exact V'|]. split; [exact W|exact P].
Qed.
End Execution.
