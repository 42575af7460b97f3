(** Counters of condition (1), as iterations begin, and loops: they are gone through once, from any state that one of
    their annotations allows; one must hold where the loop is come to, and again after an iteration. *)
From Coq Require Import ZArith List Bool Lia PArith FMapPositive.
From Checker Require Import Linear Language States.
Import ListNotations.
Local Open Scope Z_scope.

Section Execution.
Variable C : context.
Local Notation counter := (counter C). Local Notation all_values := (all_values C).
Local Notation within_bounds := (within_bounds C). Local Notation describes := (describes C).
Local Notation possible := (possible C). Local Notation count := (count C).
Local Notation count_sound := (count_sound C).

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

End Execution.
