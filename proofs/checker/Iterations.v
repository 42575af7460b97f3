(** Counters of condition (1), as iterations begin and engines meet; and loops: they are gone through once, from any state
    that one of their annotations allows; one must hold where the loop is come to, and again after an iteration. *)
From Coq Require Import ZArith List Bool Lia PArith FMapPositive.
From Checker Require Import Linear Language States.
Import ListNotations.
Local Open Scope Z_scope.

Section Execution.
Variable C : context.
Local Notation counter := (counter C). Local Notation all_values := (all_values C).
Local Notation within_bounds := (within_bounds C). Local Notation describes := (describes C).
Local Notation possible := (possible C). Local Notation count := (count C).
Local Notation count_sound := (count_sound C). Local Notation not_late := (not_late C).
Local Notation due := (due C). Local Notation rounds_done := (rounds_done C).

Definition same_form (hy : list form) (f g : form) : bool :=
  let d := minus f g in
  match terms d with
  | [] => constant d =? 0
  | _ => entails hy d && entails hy (scale (-1) d)
  end.

Lemma same_form_sound hy f g r : same_form hy f g = true -> holds hy r -> eval f r = eval g r.
Proof.
  unfold same_form. intros E H. assert (X : eval (minus f g) r = 0).
  { destruct (terms (minus f g)) as [|t ts] eqn:T.
    - apply Z.eqb_eq in E. unfold eval. rewrite T, E. reflexivity.
    - apply andb_true_iff in E as [E1 E2]. apply (entails_sound _ _ r) in E1, E2; auto. rewrite eval_scale in E2. lia. }
  rewrite eval_minus in X. lia.
Qed.

(** All counters changed at once. *)
Fixpoint change_all (S : symbolic) (news : positive -> ghost -> option form) (gs : list (positive * ghost))
  : option (PositiveMap.t form) :=
  match gs with
  | [] => Some (known S)
  | (x, g) :: gs =>
      match news x g, change_all S news gs with Some f, Some m => Some (PositiveMap.add x f m) | _, _ => None end
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
  forall x, all_values (values s) t x = eval (get (Symbolic m (facts S) (pending S) (passed S)) x) r.
Proof.
  intros (_ & V & _) M N x. pose proof (change_all_find S news (ghosts C) m x M) as L. specialize (V x).
  unfold all_values in *. unfold get in *; cbn [known] in *.
  destruct (find x (ghosts C)) as [g|] eqn:Fx.
  - destruct L as (f & Ef & ->). symmetry. eauto.
  - rewrite L. exact V.
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
  | Sent _ | Issues _ | Base _ _ => Some (get S x)
  end.

(** The entries of a loop since a barrier. *)
Definition count_since (S : symbolic) (b : barrier) (l : loop) : option form :=
  match count S (Entries l), count S (Base [(b, 0)] l) with Some f, Some g => Some (minus f g) | _, _ => None end.

Definition never_late (S : symbolic) (l : loop) : bool :=
  forallb (fun x => negb (Pos.eqb (fst (snd x)) l) ||
    match count_since S (fst x) l with
    | Some f => entails (facts S) (shift (scale (-1) f) (snd (snd x)))
    | None => false
    end) (dues C).

(** That a loop is not entered more often than is promised. *)
Definition promise (S : symbolic) (l : loop) : list form :=
  match find l (bounds C), count S (Entries l) with Some b, Some f => [shift (scale (-1) f) b] | _, _ => [] end.

Definition execute_enter (S : symbolic) (l : loop) : option (list symbolic) :=
  match change_all S (entered S l) (ghosts C) with
  | None => None
  | Some m =>
      let S' := Symbolic m (facts S) (pending S) (passed S) in
      let S' := Symbolic m (promise S' l ++ facts S) (pending S) (passed S) in
      if never_late S' l then Some [S'] else None
  end.

Lemma entered_sound S r s l x g f : describes S r s -> find x (ghosts C) = Some g -> entered S l x g = Some f ->
  eval f r = counter g (Entered l :: history s).
Proof.
  intros D F E. assert (X : eval (get S x) r = counter g (history s)).
  { destruct D as (_ & V & _). rewrite <- V. unfold all_values. now rewrite F. }
  destruct g as [l'|l'|c k l'|w|i|cuts l']; cbn [entered counter entries iteration sent issues_of base] in *.
  - injection E as <-. destruct (Pos.eqb l l'); autorewrite with eval; lia.
  - injection E as <-. destruct (Pos.eqb l l'); [autorewrite with eval; lia|].
    destruct (Pos.eqb l (parent C l')); [reflexivity|lia].
  - destruct k as [|k]; [destruct (Pos.eqb l c); discriminate|]. cbn [back before].
    destruct (Pos.eqb_spec l c) as [->|N].
    + destruct k as [|k]; apply (count_sound _ _ _ _ _ D) in E; exact E.
    + injection E as <-. exact X.
  - injection E as <-. exact X.
  - injection E as <-. exact X.
  - injection E as <-. exact X.
Qed.

Lemma count_since_sound S r s b l f : describes S r s -> count_since S b l = Some f -> eval f r = since b l (history s).
Proof.
  intros D E. unfold count_since in E. destruct (count S (Entries l)) as [e|] eqn:Ee; [|discriminate].
  destruct (count S (Base [(b, 0)] l)) as [g|] eqn:Eg; [|discriminate]. injection E as <-. rewrite eval_minus.
  rewrite (count_sound _ _ _ _ _ D Ee), (count_sound _ _ _ _ _ D Eg). reflexivity.
Qed.

Lemma never_late_sound S r s l : describes S r s -> never_late S l = true -> not_late l (history s).
Proof.
  intros D H b c I. unfold never_late in H. rewrite forallb_forall in H. specialize (H _ I). cbn [fst snd] in H.
  rewrite Pos.eqb_refl in H. cbn [negb orb] in H. destruct (count_since S b l) as [f|] eqn:E; [|discriminate].
  apply (entails_sound _ _ r) in H; [|apply D]. autorewrite with eval in H. rewrite (count_since_sound _ _ _ _ _ _ D E) in H.
  lia.
Qed.

Lemma execute_enter_sound S s l Ss : possible S s -> execute_enter S l = Some Ss ->
  within_bounds (Entered l :: history s) ->
  not_late l (Entered l :: history s)
  /\ exists S', In S' Ss /\ possible S' (State (values s) (waits s) (Entered l :: history s)).
Proof.
  intros [r D] E B. unfold execute_enter in E.
  destruct (change_all S (entered S l) (ghosts C)) as [m|] eqn:M; [|discriminate].
  set (s' := State (values s) (waits s) (Entered l :: history s)).
  assert (D' : describes (Symbolic m (facts S) (pending S) (passed S)) r s').
  { pose proof D as (F & V & W & P). split; [exact F|]. split; [|split; [exact W|exact P]].
    apply (change_all_sound S r s (entered S l)); [exact D|exact M|]. intros x g f Fx Ef. eapply entered_sound; eauto. }
  cbv zeta in E. set (told := promise _ l) in E. assert (H : holds told r).
  { unfold told, promise. destruct (find l (bounds C)) as [b|] eqn:Fb; [|constructor].
    destruct (count _ (Entries l)) as [f|] eqn:Cf; [|constructor]. constructor; [|constructor].
    pose proof (count_sound _ _ _ _ _ D' Cf) as X. cbn [counter history s'] in X.
    autorewrite with eval. rewrite X. specialize (B _ _ Fb). lia. }
  assert (D2 : describes (Symbolic m (told ++ facts S) (pending S) (passed S)) r s').
  { destruct D' as (F & V & W & P). split; [apply Forall_app; auto|]. split; [exact V|]. split; [exact W|exact P]. }
  destruct (never_late _ l) eqn:N; [|discriminate]. injection E as <-. split.
  - exact (never_late_sound _ r s' l D2 N).
  - eexists; split; [left; reflexivity|]. exists r. exact D2.
Qed.

(** ** Engines meet *)

Definition met (S : symbolic) (b : barrier) (ss : list semaphore) (x : positive) (g : ghost) : option form :=
  match g with
  | Sent s => Some (if among s ss then number 0 else get S x)
  | Base cuts l => match find b cuts with
                   | Some d => option_map (fun f => shift f d) (count S (Entries l))
                   | None => Some (get S x)
                   end
  | Past _ O _ => None
  | _ => Some (get S x)
  end.

Definition in_time (S : symbolic) (b : barrier) : bool :=
  existsb (fun x => Pos.eqb (fst x) b &&
    match count_since S b (fst (snd x)) with
    | Some f => same_form (facts S) f (number (snd (snd x)))
    | None => false
    end) (dues C).

Definition all_round (S : symbolic) (b : barrier) : bool :=
  forallb (fun g : group * place_of_group =>
    match find b (snd (snd g)), fst g with
    | Some d, (i, _) :: _ =>
        match count S (Issues i), count S (Entries (fst (snd g))) with
        | Some f, Some e => same_form (facts S) f (shift e d)
        | _, _ => false
        end
    | _, _ => true
    end) (own C).

Definition execute_meet (S : symbolic) (b : barrier) (ss : list semaphore) : option (list symbolic) :=
  match pending S, change_all S (met S b ss) (ghosts C) with
  | [], Some m => if in_time S b && all_round S b then Some [Symbolic m (facts S) [] []] else None
  | _, _ => None
  end.

Lemma met_sound S r s b ss x g f : describes S r s -> find x (ghosts C) = Some g -> met S b ss x g = Some f ->
  eval f r = counter g (Met b ss :: history s).
Proof.
  intros D F E. assert (X : eval (get S x) r = counter g (history s)).
  { destruct D as (_ & V & _). rewrite <- V. unfold all_values. now rewrite F. }
  destruct g as [l|l|c [|k] l|w|i|cuts l]; cbn [met counter entries iteration sent issues_of base] in *;
    try discriminate; try (injection E as <-; exact X).
  - injection E as <-. destruct (among w ss); [reflexivity|exact X].
  - destruct (find b cuts) as [d|]; [|injection E as <-; exact X].
    destruct (count S (Entries l)) as [e|] eqn:Ce; [|discriminate]. injection E as <-. rewrite eval_shift.
    rewrite (count_sound _ _ _ _ _ D Ce). reflexivity.
Qed.

Lemma execute_meet_sound S s b ss Ss : possible S s -> execute_meet S b ss = Some Ss ->
  (due b (history s) /\ rounds_done b (history s))
  /\ exists S', In S' Ss /\ possible S' (State (values s) (waits s) (Met b ss :: history s)).
Proof.
  intros [r D] E. unfold execute_meet in E. destruct (pending S) as [|w ws] eqn:Pe; [|discriminate].
  destruct (change_all S (met S b ss) (ghosts C)) as [m|] eqn:M; [|discriminate].
  destruct (in_time S b) eqn:T; [|discriminate]. destruct (all_round S b) eqn:A; [|discriminate]. injection E as <-.
  split; [split|].
  - unfold in_time in T. apply existsb_exists in T as ([b' [l c]] & I & H). cbn [fst snd] in H.
    apply andb_true_iff in H as [H1 H2]. apply Pos.eqb_eq in H1 as ->. exists l, c. split; [exact I|].
    destruct (count_since S b l) as [f|] eqn:Cs; [|discriminate].
    apply (same_form_sound _ _ _ r) in H2; [|apply D]. rewrite (count_since_sound _ _ _ _ _ _ D Cs) in H2. exact H2.
  - intros g p d I Fd. unfold all_round in A. rewrite forallb_forall in A. specialize (A _ I). cbn [fst snd] in A.
    rewrite Fd in A. destruct g as [|[i a] g]; [exact Logic.I|].
    destruct (count S (Issues i)) as [f|] eqn:Ci; [|discriminate].
    destruct (count S (Entries (fst p))) as [e|] eqn:Ce; [|discriminate].
    apply (same_form_sound _ _ _ r) in A; [|apply D]. rewrite eval_shift in A.
    rewrite (count_sound _ _ _ _ _ D Ci), (count_sound _ _ _ _ _ D Ce) in A. exact A.
  - eexists; split; [left; reflexivity|]. exists r. pose proof D as (F & V & W & P). split; [exact F|].
    split; [|split; [rewrite Pe in W; exact W|constructor]].
    apply (change_all_sound S r s (met S b ss) m (Met b ss :: history s) D M).
    intros x g f Fx Ef. eapply met_sound; eauto.
Qed.

(** ** Loops *)

Definition annotation_state (hint : annotation form) : symbolic :=
  let '(known, facts, (pending, passed)) := hint in
  Symbolic (fold_right (fun p m => PositiveMap.add (fst p) (snd p) m) (PositiveMap.empty form) known) facts pending passed.

Definition same_wait (S : symbolic) (w hint : semaphore * form) : bool :=
  Pos.eqb (fst w) (fst hint) && same_form (facts S) (snd w) (substitute (snd hint) (get S)).

Fixpoint same_waits (S : symbolic) (ws hints : list (semaphore * form)) : bool :=
  match ws, hints with
  | [], [] => true
  | w :: ws, h :: hints => same_wait S w h && same_waits S ws hints
  | _, _ => false
  end.

Definition meets (S : symbolic) (hint : annotation form) : bool :=
  let '(known, told, (waiting, gone)) := hint in
  same_waits S (pending S) waiting
  && forallb (fun p => same_form (facts S) (get S (fst p)) (substitute (snd p) (get S))) known
  && forallb (fun f => entails (facts S) (substitute f (get S))) told
  && forallb (fun h => existsb (fun w => same_wait S w h) (passed S)) gone.

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
  intros [r (F & V & W & P)] M. destruct hint as [[known told] [waiting gone]]. cbn [meets annotation_state] in *.
  apply andb_true_iff in M as [M M4]. apply andb_true_iff in M as [M M3]. apply andb_true_iff in M as [M1 M2].
  rewrite forallb_forall in M2, M3, M4. set (r' := all_values (values s) (history s)).
  assert (X : forall f, eval (substitute f (get S)) r = eval f r').
  { intros f. rewrite eval_substitute. apply eval_ext. intros x. symmetry. apply V. }
  assert (Y : forall w h, same_wait S w h = true -> (fst w, eval (snd w) r) = (fst h, eval (snd h) r')).
  { intros w h H. unfold same_wait in H. apply andb_true_iff in H as [H1 H2]. apply Pos.eqb_eq in H1. rewrite H1.
    apply (same_form_sound _ _ _ r) in H2; [|exact F]. now rewrite H2, X. }
  exists r'. split; [|split; [|split]].
  - unfold holds. apply Forall_forall. intros f I. rewrite <- X. eapply entails_sound; [apply M3; exact I|exact F].
  - intros x. fold r'. unfold get at 1; cbn [States.known].
    destruct (PositiveMap.find x _) as [f|] eqn:E; [|now rewrite eval_variable].
    apply annotation_find in E. specialize (M2 _ E). cbn [fst snd] in M2.
    apply (same_form_sound _ _ _ r) in M2; [|exact F]. rewrite X in M2. rewrite <- M2. apply V.
  - rewrite W. clear W. cbn [pending]. revert waiting M1. induction (pending S) as [|w ws IH]; intros [|h hs] H;
      cbn [same_waits map] in *; try discriminate; [reflexivity|]. apply andb_true_iff in H as [H1 H2].
    now rewrite (Y _ _ H1), (IH _ H2).
  - apply Forall_forall. intros h I. specialize (M4 _ I). apply existsb_exists in M4 as (w & Iw & H).
    rewrite Forall_forall in P. rewrite <- (Y _ _ H). exact (P _ Iw).
Qed.

Definition meets_one (hints : list (annotation form)) (S : symbolic) : bool := existsb (meets S) hints.

Lemma meets_one_sound S s hints : possible S s -> meets_one hints S = true ->
  exists S', In S' (map annotation_state hints) /\ possible S' s.
Proof.
  intros P M. apply existsb_exists in M as (hint & I & M). exists (annotation_state hint).
  split; [now apply in_map|]. eapply meets_sound; eauto.
Qed.

End Execution.
