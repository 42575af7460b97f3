(** Linear forms over the integers, and a refutation procedure for conjunctions of inequalities.

    [refute cs = true] means that no integers satisfy all of [cs], each read as [form >= 0]. It is Fourier-Motzkin
    elimination with the rounding that integers allow: incomplete, which costs an acceptance and never soundness. *)
From Coq Require Import ZArith List Bool Lia PArith.
Import ListNotations.
Local Open Scope Z_scope.

Definition valuation := positive -> Z.

(** The terms, sorted by variable where this file made the form, and the constant. *)
Record form := Form { terms : list (positive * Z); constant : Z }.

Fixpoint sum (ts : list (positive * Z)) (r : valuation) : Z :=
  match ts with [] => 0 | (x, a) :: ts => a * r x + sum ts r end.

Definition eval (f : form) (r : valuation) : Z := sum (terms f) r + constant f.

Definition number (z : Z) : form := Form [] z.
Definition variable (x : positive) : form := Form [(x, 1)] 0.

Fixpoint insert (x : positive) (a : Z) (ts : list (positive * Z)) : list (positive * Z) :=
  match ts with
  | [] => [(x, a)]
  | (y, b) :: rest =>
      match Pos.compare x y with
      | Lt => (x, a) :: ts
      | Eq => if a + b =? 0 then rest else (x, a + b) :: rest
      | Gt => (y, b) :: insert x a rest
      end
  end.

Fixpoint merge (c : Z) (ts us : list (positive * Z)) : list (positive * Z) :=
  match ts with [] => us | (x, a) :: ts => insert x (c * a) (merge c ts us) end.

(** [c * f + g]; [c] is not 0. *)
Definition combine (c : Z) (f g : form) : form :=
  Form (merge c (terms f) (terms g)) (c * constant f + constant g).

Definition plus (f g : form) := combine 1 f g.
Definition minus (f g : form) := combine (-1) g f.
Definition scale (c : Z) (f : form) := if c =? 0 then number 0 else combine c f (number 0).
Definition shift (f : form) (z : Z) := Form (terms f) (constant f + z).
(** [not (f >= 0)] is [negation f >= 0]. *)
Definition negation (f : form) := shift (scale (-1) f) (-1).

Lemma sum_insert x a ts r : sum (insert x a ts) r = a * r x + sum ts r.
Proof.
  induction ts as [|[y b] ts IH]; simpl; [lia|].
  destruct (Pos.compare_spec x y) as [->| |]; [|simpl; lia|simpl; rewrite IH; lia].
  destruct (Z.eqb_spec (a + b) 0); simpl; [replace b with (- a) by lia|]; ring.
Qed.

Lemma sum_merge c ts us r : sum (merge c ts us) r = c * sum ts r + sum us r.
Proof. induction ts as [|[x a] ts IH]; simpl; [lia|]. rewrite sum_insert, IH. lia. Qed.

Lemma eval_combine c f g r : eval (combine c f g) r = c * eval f r + eval g r.
Proof. unfold eval, combine; simpl. rewrite sum_merge. lia. Qed.
Lemma eval_number z r : eval (number z) r = z.
Proof. reflexivity. Qed.
Lemma eval_variable x r : eval (variable x) r = r x.
Proof. unfold eval, variable; cbn [sum terms constant]; lia. Qed.
Lemma eval_plus f g r : eval (plus f g) r = eval f r + eval g r.
Proof. unfold plus. rewrite eval_combine. lia. Qed.
Lemma eval_minus f g r : eval (minus f g) r = eval f r - eval g r.
Proof. unfold minus. rewrite eval_combine. lia. Qed.
Lemma eval_scale c f r : eval (scale c f) r = c * eval f r.
Proof.
  unfold scale. destruct (Z.eqb_spec c 0) as [->|]; [reflexivity|]. rewrite eval_combine, eval_number. lia.
Qed.
Lemma eval_shift f z r : eval (shift f z) r = eval f r + z.
Proof. unfold eval, shift; cbn [terms constant]; lia. Qed.
Lemma eval_negation f r : eval (negation f) r = - eval f r - 1.
Proof. unfold negation. rewrite eval_shift, eval_scale. lia. Qed.
Global Hint Rewrite eval_combine eval_number eval_variable eval_plus eval_minus eval_scale eval_shift eval_negation
  : eval.

(** Substitution of forms for variables. *)
Fixpoint substitute_terms (ts : list (positive * Z)) (v : positive -> form) (z : Z) : form :=
  match ts with [] => number z | (x, a) :: ts => plus (scale a (v x)) (substitute_terms ts v z) end.
Definition substitute (f : form) (v : positive -> form) := substitute_terms (terms f) v (constant f).

Lemma eval_substitute f v r : eval (substitute f v) r = eval f (fun x => eval (v x) r).
Proof.
  unfold substitute, eval at 2. generalize (constant f). induction (terms f) as [|[x a] ts IH]; intros z; simpl.
  - reflexivity.
  - autorewrite with eval. rewrite IH. lia.
Qed.

Lemma sum_ext ts r r' : (forall x, r x = r' x) -> sum ts r = sum ts r'.
Proof. intros H; induction ts as [|[x a] ts IH]; simpl; [reflexivity|]. rewrite H, IH; reflexivity. Qed.
Lemma eval_ext f r r' : (forall x, r x = r' x) -> eval f r = eval f r'.
Proof. intros H; unfold eval; rewrite (sum_ext _ _ _ H); reflexivity. Qed.

Definition update (r : valuation) (x : positive) (v : Z) : valuation := fun y => if Pos.eqb y x then v else r y.

Definition mentions (x : positive) (f : form) : bool := existsb (fun t => Pos.eqb (fst t) x) (terms f).

Lemma eval_update f r x v : mentions x f = false -> eval f (update r x v) = eval f r.
Proof.
  unfold mentions, eval. intros H. f_equal. induction (terms f) as [|[y a] ts IH]; simpl in *; [reflexivity|].
  apply orb_false_iff in H as [H1 H2]. unfold update at 1. rewrite H1, IH; auto.
Qed.

Lemma update_eq r x v : update r x v x = v.
Proof. unfold update. now rewrite Pos.eqb_refl. Qed.
Lemma update_neq r x y v : y <> x -> update r x v y = r y.
Proof. unfold update. intros H. destruct (Pos.eqb_spec y x); congruence. Qed.

(** Division by a positive number where it divides all coefficients; the constant is rounded down. *)
Definition divides_terms (k : Z) (ts : list (positive * Z)) : bool := forallb (fun t => snd t mod k =? 0) ts.
Definition divide (k : Z) (f : form) : option form :=
  if (0 <? k) && divides_terms k (terms f)
  then Some (Form (map (fun t => (fst t, snd t / k)) (terms f)) (constant f / k)) else None.

Lemma divide_sound k f g r : divide k f = Some g -> eval g r = eval f r / k.
Proof.
  unfold divide. destruct (Z.ltb_spec 0 k) as [Hk|]; simpl; [|discriminate].
  destruct (divides_terms k (terms f)) eqn:D; [|discriminate]. intros E; injection E as <-.
  unfold eval; simpl.
  assert (S : sum (terms f) r = k * sum (map (fun t => (fst t, snd t / k)) (terms f)) r).
  { unfold divides_terms in D. induction (terms f) as [|[x a] ts IH]; simpl in *; [lia|].
    apply andb_true_iff in D as [D1 D2]. apply Z.eqb_eq in D1. rewrite (IH D2).
    assert (a = k * (a / k)) by (apply Z_div_exact_full_2; lia). nia. }
  rewrite S, (Z.mul_comm k), Z.div_add_l by lia. reflexivity.
Qed.

(** ** Refutation *)

Definition holds (cs : list form) (r : valuation) : Prop := Forall (fun f => 0 <= eval f r) cs.

Definition common_divisor (f : form) : Z := fold_right (fun t g => Z.gcd (snd t) g) 0 (terms f).
(** A stronger form of the same constraint. *)
Definition tighten (f : form) : form :=
  let g := common_divisor f in
  if g <=? 1 then f else match divide g f with Some f' => f' | None => f end.

Lemma tighten_sound f r : 0 <= eval f r -> 0 <= eval (tighten f) r.
Proof.
  unfold tighten. destruct (Z.leb_spec (common_divisor f) 1); [auto|].
  destruct (divide _ f) eqn:D; [|auto]. rewrite (divide_sound _ _ _ r D). intros. apply Z.div_pos; lia.
Qed.

Fixpoint coefficient (x : positive) (ts : list (positive * Z)) : Z :=
  match ts with [] => 0 | (y, a) :: ts => if Pos.eqb y x then a else coefficient x ts end.

Definition trivial (f : form) : bool := match terms f with [] => 0 <=? constant f | _ => false end.
Definition absurd (f : form) : bool := match terms f with [] => constant f <? 0 | _ => false end.

Fixpoint split (x : positive) (cs : list form) : list form * list (Z * form) * list (Z * form) :=
  match cs with
  | [] => ([], [], [])
  | f :: cs =>
      let '(zero, pos, neg) := split x cs in
      let a := coefficient x (terms f) in
      if a =? 0 then (f :: zero, pos, neg)
      else if 0 <? a then (zero, (a, f) :: pos, neg) else (zero, pos, (- a, f) :: neg)
  end.

(** Resolves each constraint that bounds [x] from below with each that bounds it from above. *)
Definition resolve (pos neg : list (Z * form)) : list form :=
  flat_map (fun p =>
    flat_map (fun n =>
      let f := tighten (combine (fst n) (snd p) (scale (fst p) (snd n))) in if trivial f then [] else [f]) neg) pos.

Definition eliminate (x : positive) (cs : list form) : list form :=
  let '(zero, pos, neg) := split x cs in zero ++ resolve pos neg.

Lemma split_sound x cs r zero pos neg : split x cs = (zero, pos, neg) -> holds cs r ->
  holds zero r /\ Forall (fun p => 0 < fst p /\ 0 <= eval (snd p) r) pos
  /\ Forall (fun p => 0 < fst p /\ 0 <= eval (snd p) r) neg.
Proof.
  revert zero pos neg. induction cs as [|f cs IH]; simpl; intros zero pos neg E H.
  - injection E as <- <- <-. repeat split; constructor.
  - inversion_clear H as [|? ? Hf Hcs]. destruct (split x cs) as [[z p] n] eqn:S.
    destruct (IH z p n eq_refl Hcs) as (Hz & Hp & Hn).
    destruct (Z.eqb_spec (coefficient x (terms f)) 0); [injection E as <- <- <-; repeat split; auto; constructor; auto|].
    destruct (Z.ltb_spec 0 (coefficient x (terms f))); injection E as <- <- <-; repeat split; auto; constructor; auto;
      simpl; split; auto; lia.
Qed.

Lemma holds_flat_map {A} (g : A -> list form) (l : list A) r :
  (forall a, In a l -> holds (g a) r) -> holds (flat_map g l) r.
Proof.
  intros H; induction l as [|a l IH]; simpl; [constructor|].
  apply Forall_app; split; [apply H; simpl; auto | apply IH; intros; apply H; simpl; auto].
Qed.

Lemma resolve_sound pos neg r :
  Forall (fun p => 0 < fst p /\ 0 <= eval (snd p) r) pos -> Forall (fun p => 0 < fst p /\ 0 <= eval (snd p) r) neg ->
  holds (resolve pos neg) r.
Proof.
  intros Hp Hn. apply holds_flat_map. intros p Ip. apply holds_flat_map. intros n In.
  rewrite Forall_forall in Hp, Hn. destruct (Hp p Ip) as [? ?]. destruct (Hn n In) as [? ?].
  cbv zeta. match goal with |- context [trivial ?f] => destruct (trivial f) end; [constructor|].
  constructor; [|constructor].
  apply tighten_sound. autorewrite with eval. nia.
Qed.

Lemma eliminate_sound x cs r : holds cs r -> holds (eliminate x cs) r.
Proof.
  intros H. unfold eliminate. destruct (split x cs) as [[zero pos] neg] eqn:S.
  destruct (split_sound _ _ _ _ _ _ S H) as (? & ? & ?). apply Forall_app; split; [assumption|].
  now apply resolve_sound.
Qed.

(** The variable whose elimination adds the fewest constraints. *)
Definition cost (x : positive) (cs : list form) : Z :=
  let count := fold_left (fun n f =>
    let a := coefficient x (terms f) in
    if a =? 0 then n else if 0 <? a then (fst n + 1, snd n) else (fst n, snd n + 1)) cs (0, 0) in
  fst count * snd count - fst count - snd count.

Fixpoint add_variable (x : positive) (xs : list positive) : list positive :=
  match xs with [] => [x] | y :: ys => if Pos.eqb x y then xs else y :: add_variable x ys end.
Definition variables (cs : list form) : list positive :=
  fold_left (fun xs f => fold_left (fun xs t => add_variable (fst t) xs) (terms f) xs) cs [].
Definition choose (cs : list form) : option positive :=
  option_map fst (fold_left (fun best x =>
    let c := cost x cs in
    match best with Some (_, b) => if c <? b then Some (x, c) else best | None => Some (x, c) end)
    (variables cs) None).

Fixpoint refute_within (fuel : nat) (cs : list form) : bool :=
  if existsb absurd cs then true
  else match fuel, choose cs with
       | S fuel, Some x => refute_within fuel (eliminate x cs)
       | _, _ => false
       end.

Lemma absurd_sound cs r : existsb absurd cs = true -> ~ holds cs r.
Proof.
  intros H Hs. apply existsb_exists in H as (f & If & A). eapply Forall_forall in Hs; [|exact If].
  unfold absurd, eval in *. destruct (terms f); [|discriminate]. apply Z.ltb_lt in A. simpl in Hs. lia.
Qed.

Lemma refute_within_sound fuel cs r : refute_within fuel cs = true -> ~ holds cs r.
Proof.
  revert cs; induction fuel as [|fuel IH]; intros cs; simpl; destruct (existsb absurd cs) eqn:A;
    try (intros; eapply absurd_sound; eassumption); [destruct (choose cs); discriminate|].
  destruct (choose cs) as [x|]; [|discriminate]. intros E H. eapply IH; [exact E|]. now apply eliminate_sound.
Qed.

(** Only what a constraint shares variables with, directly or not, can contradict it. *)
Fixpoint related (fuel : nat) (xs : list positive) (chosen left : list form) : list form :=
  match fuel with
  | O => chosen ++ left
  | S fuel =>
      let touches f := existsb (fun t => existsb (Pos.eqb (fst t)) xs) (terms f) in
      match filter touches left with
      | [] => chosen
      | more => related fuel (fold_left (fun xs f => fold_left (fun xs t => add_variable (fst t) xs) (terms f) xs) more xs)
                  (more ++ chosen) (filter (fun f => negb (touches f)) left)
      end
  end.

Lemma related_sound fuel xs chosen left r :
  holds chosen r -> holds left r -> holds (related fuel xs chosen left) r.
Proof.
  revert xs chosen left; induction fuel as [|fuel IH]; intros xs chosen left Hc Hl; simpl;
    [apply Forall_app; auto|].
  destruct (filter _ left) as [|f more] eqn:F; [auto|]. apply IH; [|eapply incl_Forall; [apply incl_filter | exact Hl]].
  change (f :: more ++ chosen) with ((f :: more) ++ chosen). apply Forall_app; split; [|auto]. rewrite <- F.
  eapply incl_Forall; [apply incl_filter | exact Hl].
Qed.

Definition FUEL : nat := 60.
(** Whether [hyps], which may well hold together, contradict [news]. *)
Definition contradict (hyps news : list form) : bool :=
  let news := map tighten news in
  existsb absurd news || refute_within FUEL (related FUEL (variables news) news hyps).
Definition entails (hyps : list form) (goal : form) : bool :=
  trivial goal || contradict hyps [negation goal].

Lemma contradict_sound hyps news r : contradict hyps news = true -> holds hyps r -> ~ holds news r.
Proof.
  unfold contradict. intros E Hh Hn.
  assert (T : holds (map tighten news) r).
  { apply Forall_map. eapply Forall_impl; [|exact Hn]. intros f. apply tighten_sound. }
  apply orb_true_iff in E as [E|E]; [exact (absurd_sound _ _ E T)|].
  apply (refute_within_sound _ _ r E). apply related_sound; auto.
Qed.

Lemma entails_sound hyps goal r : entails hyps goal = true -> holds hyps r -> 0 <= eval goal r.
Proof.
  unfold entails. intros E H. apply orb_true_iff in E as [E|E].
  - unfold trivial, eval in *. destruct (terms goal); [|discriminate]. apply Z.leb_le in E. simpl. lia.
  - destruct (Z_le_dec 0 (eval goal r)) as [|N]; [auto|]. exfalso.
    eapply contradict_sound; [exact E|exact H|]. constructor; [|constructor]. autorewrite with eval. lia.
Qed.
