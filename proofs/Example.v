(** The theorems are about something: a program with two loops, a conditional and two engines, whose dependencies are of
    every kind, satisfies all that they ask ([example_right]). It runs to its end ([example_runs]), also in words of 32 bits
    ([example_in_words]).

    for A { C1 | for B { P, X | C2 } if (A is odd) { C3 } else { Y } C0 }       engine 0: P, X, Y; engine 1: all others *)
From Coq Require Import Arith ZArith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program Machine Registers Owed Retirement Bisimulation Corollaries Words Tree.

Definition A : loop := 1.  Definition B : loop := 2.  Definition Then : loop := 3.  Definition Else : loop := 4.
Definition P : instr := 0.  Definition X : instr := 1.
Definition C0 : instr := 2.  Definition C1 : instr := 3.  Definition C2 : instr := 4.  Definition C3 : instr := 5.
Definition Y : instr := 6.

Definition example_tree : list tree :=
  [TLoop A [TInstr 1 C1; TLoop B [TInstr 0 P; TInstr 0 X; TInstr 1 C2]; TIf Then Else [TInstr 1 C3] [TInstr 0 Y]; TInstr 1 C0]].
Definition example_deps (c : instr) : list dep := match c with
  | 0 => [Build_dep C2 B 1 false false None;        (* P overwrites what C2 has read *)
          Build_dep C2 B 2 false false None]        (* and two iterations of B back, which A carries too *)
  | 1 => [Build_dep X B 1 true false None]          (* X after itself, one engine *)
  | 2 => [Build_dep P A 0 true false None;          (* not carried; the next one conditional *)
          Build_dep C3 A 0 true false None]
  | 3 => [Build_dep P A 1 true false None]          (* one iteration of A back, the consumer first *)
  | 4 => [Build_dep P B 2 true false None;          (* two iterations of B back *)
          Build_dep X B 0 true false None;
          Build_dep P A 1 true true (Some (-1)%Z)]  (* one iteration of A back, there up to the next one of B *)
  | 5 => [Build_dep X A 2 true true None;           (* two of A back, from a history *)
          Build_dep Y A 1 true false None]          (* one back, in the other branch *)
  | _ => [] end.
Definition example_program : program := tables example_tree (fun _ => true) (fun i => if i =? X then 1 else 0).

(** The control state of an engine says how often it entered each loop in its current run. *)
Definition with_deps (ds : instr -> list dep) : machine := {|
  program_of := example_program;
  deps := ds;
  data := list instr;
  control := loop -> nat;
  execute := fun i done => i :: done;
  guard := fun e l c => match l with 1 => c A <? 3 | 2 => c B <? 2 | 3 => Nat.odd (c A) | _ => false end;
  on_enter := fun e l c x => if x =? l then c x + 1 else c x;
  on_exit := fun e l c x => if x =? l then 0 else c x |}.
Definition example : machine := with_deps example_deps.
Definition keeps (l : loop) : bool := (l =? A) || (l =? B).

Lemma nodup_computed : forall l, nodup Nat.eq_dec l = l -> NoDup l.
Proof. intros l E. rewrite <- E. apply NoDup_nodup. Qed.
Lemma example_unique : unique example_tree.
Proof.
  constructor; try (apply nodup_computed; reflexivity).
  intros k H. simpl in H. repeat destruct H as [<-|H]; try contradiction; apply nodup_computed; reflexivity.
Qed.
Ltac stands := solve [constructor | apply under_step; [discriminate | simpl; stands]].
Theorem example_right : well_formed example /\ Allocatable example (deps example) /\
  forall l, tripped example l -> keeps l = true.
Proof.
  split; [apply tree_well_formed, example_unique|]. split.
  - intros c d H. destruct c as [|[|[|[|[|[|c]]]]]]; simpl in H; repeat destruct H as [<-|H]; try contradiction;
    (split; [split; [simpl; stands | split; [simpl; tauto | reflexivity]]|]).
    1, 2, 3: apply back; reflexivity.
    1, 2: apply now; try reflexivity; [discriminate | simpl; stands].
    + eapply (passed example C1 _ [] (Instr C1) [Loop B; If Then Else; Instr C0] B); try reflexivity; try discriminate; simpl; auto.
      stands.
    + apply back; reflexivity.
    + apply back; reflexivity.
    + apply (clamped _ _ _ (-1)%Z); simpl; try reflexivity; [discriminate | stands | stands].
    + apply ended; simpl; try reflexivity; [stands | lia].
    + eapply (other_branch example C3 _ [Instr C1; Loop B] Then Else [Instr C0] Then Else); try reflexivity; try discriminate;
      simpl; auto; stands.
  - intros l (c & d & H & R). destruct c as [|[|[|[|[|[|c]]]]]]; simpl in H; repeat destruct H as [<-|H]; try contradiction;
    (destruct R as [[-> [R|[R _]]]|[-> R]]; simpl in R; try discriminate; try reflexivity; congruence).
Qed.

(** ** A run, found by Coq *)
Section Run.
Variable ds : instr -> list dep.
Notation ex := (with_deps ds).
Notation state := (spec ex).
Definition try_shared (sh : shared ex) (a : label) : option (shared ex) :=
  let '(Shared _ d c f q) := sh in
  match a with
  | Enter e l => match f e with
      | (x, s :: rest) :: fs => match entered (fun l => guard ex e l (c e)) s with
          | Some l' => if l' =? l then Some (Shared ex d (upd c e (on_enter ex e l (c e)))
              (upd f e ((l, body ex e l) :: (x, s :: rest) :: fs)) q) else None
          | None => None end
      | _ => None end
  | Exit e l => match f e with
      | (x, Loop l' :: rest) :: fs => if (l' =? l) && negb (guard ex e l (c e))
          then Some (Shared ex d (upd c e (on_exit ex e l (c e))) (upd f e ((x, rest) :: fs)) q) else None
      | _ => None end
  | Back e => match f e with
      | (l, []) :: (y, s :: rest) :: fs => Some (Shared ex d c (upd f e ((y, after s rest) :: fs)) q)
      | _ => None end
  | Issue e i => match f e with
      | (x, Instr i' :: rest) :: fs => if i' =? i
          then Some (Shared ex d c (upd f e ((x, rest) :: fs)) (upd q e (q e ++ [(i, false)]))) else None
      | _ => None end
  | Commit e i => match q e with
      | (i', false) :: b => if i' =? i then Some (Shared ex (execute ex i d) c f (upd q e ((i, true) :: b))) else None
      | _ => None end
  | Retire e i => match q e with
      | (i', true) :: b => if i' =? i then Some (Shared ex d c f (upd q e b)) else None
      | _ => None end end.
Lemma try_shared_right : forall sh a sh', try_shared sh a = Some sh' -> shared_step ex sh a sh'.
Proof.
  intros [d c f q] a sh' H. destruct a; simpl in H.
  - destruct (f e) as [|[x [|s rest]] fs] eqn:F; try discriminate.
    destruct (entered _ s) as [l'|] eqn:E; try discriminate. destruct (Nat.eqb_spec l' l) as [->|]; try discriminate.
    injection H as <-. apply step_enter; assumption.
  - destruct (f e) as [|[x [|[i|l'|a b] rest]] fs] eqn:F; try discriminate.
    destruct (Nat.eqb_spec l' l) as [->|]; try discriminate. destruct (negb _) eqn:G; try discriminate.
    injection H as <-. apply step_exit; [assumption | apply negb_true_iff; assumption].
  - destruct (f e) as [|[l [|s0 r0]] [|[y [|s rest]] fs]] eqn:F; try discriminate.
    injection H as <-. eapply step_back. eassumption.
  - destruct (f e) as [|[x [|[i'|l'|a b] rest]] fs] eqn:F; try discriminate.
    destruct (Nat.eqb_spec i' i) as [->|]; try discriminate. injection H as <-. apply step_issue. assumption.
  - destruct (q e) as [|[i' [|]] b] eqn:F; try discriminate. destruct (Nat.eqb_spec i' i) as [->|]; try discriminate.
    injection H as <-. apply (step_commit ex d c f q e i [] b). assumption.
  - destruct (q e) as [|[i' [|]] b] eqn:F; try discriminate. destruct (Nat.eqb_spec i' i) as [->|]; try discriminate.
    injection H as <-. apply step_retire. assumption.
Qed.
Definition holds_now (H : hist) (R : instr -> nat) (d : dep) : bool :=
  (within d && ((trip ex H (carrier d) <=? distance d) || match clamp d with
    | Some z => behind (Z.of_nat (trip ex H (loop_of ex (producer d)))) z =? 0 | None => false end)) ||
  (required ex H d <=? R (producer d)).
Lemma holds_now_right : forall H R d, holds_now H R d = true -> satisfied ex H R d.
Proof.
  intros H R d E. apply orb_true_iff in E. destruct E as [E|E]; [left|right; apply Nat.leb_le; assumption].
  apply andb_true_iff in E. destruct E as [E1 E2]. split; [assumption|]. apply orb_true_iff in E2. destruct E2 as [E2|E2].
  - left. apply Nat.leb_le. assumption.
  - right. destruct (clamp d) as [z|]; [|discriminate]. exists z. split; [reflexivity | apply Nat.eqb_eq; assumption].
Qed.
Definition try_step (s : state) (a : label) : option state :=
  match try_shared (s_shared ex s) a with
  | Some sh' => if match a with Issue e i => forallb (holds_now (s_hist ex s e) (s_retired ex s)) (deps ex i) | _ => true end
      then Some (spec_update ex a sh' s) else None
  | None => None end.
Lemma try_step_right : forall s a s', try_step s a = Some s' -> spec_step ex s a s'.
Proof.
  unfold try_step. intros s a s' H. destruct (try_shared (s_shared ex s) a) as [sh'|] eqn:T; [|discriminate].
  destruct (match a with Issue e i => _ | _ => _ end) eqn:G; [|discriminate]. injection H as <-.
  constructor; [apply try_shared_right; assumption|]. intros e i ->. apply Forall_forall. intros d Hd.
  apply holds_now_right. rewrite forallb_forall in G. auto.
Qed.

(** What engine e may do next, what it has in flight last. *)
Definition choices (s : state) (e : engine) : list label :=
  let '(Shared _ d c f q) := s_shared ex s in
  match f e with
  | (x, Instr i :: _) :: _ => [Issue e i]
  | (x, Loop l :: _) :: _ => [Enter e l; Exit e l]
  | (x, If a b :: _) :: _ => [Enter e a; Enter e b]
  | (x, []) :: _ => [Back e]
  | [] => [] end ++ match q e with (i, true) :: _ => [Retire e i] | (i, false) :: _ => [Commit e i] | [] => [] end.
Fixpoint first_of (s : state) (ls : list label) : option (label * state) := match ls with
  | [] => None
  | a :: r => match try_step s a with Some s' => Some (a, s') | None => first_of s r end end.
Fixpoint go (fuel : nat) (s : state) : list label * state := match fuel with
  | 0 => ([], s)
  | S n => match first_of s (choices s 1 ++ choices s 0) with
    | Some (a, s') => let '(w, s2) := go n s' in (a :: w, s2)
    | None => ([], s) end end.
Lemma go_runs : forall fuel s, run (spec_step ex) s (fst (go fuel s)) (snd (go fuel s)).
Proof.
  induction fuel as [|n IH]; intro s; simpl; [constructor|].
  destruct (first_of s (choices s 1 ++ choices s 0)) as [[a s']|] eqn:F; [|constructor].
  specialize (IH s'). destruct (go n s') as [w s2]. simpl in *. econstructor; [|exact IH].
  revert F. generalize (choices s 1 ++ choices s 0). induction l as [|b l IHl]; simpl; [discriminate|].
  destruct (try_step s b) eqn:T; [|exact IHl]. intro F. injection F as <- <-. apply try_step_right. assumption.
Qed.
End Run.

Notation state := (spec example).
Definition begins : state := spec_start example [] (fun _ _ => 0).
Definition finished (sh : shared example) (e : engine) : Prop := conts example sh e = [(top, [])] /\ in_flight example sh e = [].
(** 27 instructions commit, those of B six times each, C3 twice, Y once, and both engines come to the end. *)
Definition outcome (r : list label * state) := let sh := s_shared example (snd r) in
  (length (fst r) <? 1000, map (fun e => (conts example sh e, in_flight example sh e)) [0; 1],
   map (count_occ Nat.eq_dec (datapath example sh)) [P; X; C2; C0; C1; C3; Y]).
Definition complete (w : list label) (s : state) : Prop := length w < 1000 /\
  finished (s_shared example s) 0 /\ finished (s_shared example s) 1 /\
  map (count_occ Nat.eq_dec (datapath example (s_shared example s))) [P; X; C2; C0; C1; C3; Y] = [6; 6; 6; 3; 3; 2; 1].
Lemma outcome_complete : forall w s, outcome (w, s) = (true, [([(top, [])], []); ([(top, [])], [])], [6; 6; 6; 3; 3; 2; 1]) ->
  complete w s.
Proof.
  unfold outcome, complete, finished. intros w s E. injection E as E1 E2 E3 E4 E5 E6 E7 E8 E9 E10 E11 E12.
  apply Nat.ltb_lt in E1. simpl. repeat split; congruence.
Qed.
Theorem example_runs : exists w s, run (spec_step example) begins w s /\ complete w s.
Proof.
  exists (fst (go example_deps 1000 begins)), (snd (go example_deps 1000 begins)). split; [apply go_runs|].
  apply outcome_complete. match goal with |- _ = ?r => vm_cast_no_check (eq_refl r) end.
Qed.

(** ** Words of 32 bits *)
Definition M : nat := 2 ^ 32.
Lemma M_big : 2002 < M.
Proof.
  apply Nat.lt_le_trans with (2 ^ 11); [apply Nat.ltb_lt; vm_compute; reflexivity | apply Nat.pow_le_mono_r; lia].
Qed.
Lemma few_entries : forall w s s', run (spec_step example) s w s' ->
  forall e l, entries (s_hist example s' e) l <= entries (s_hist example s e) l + length w.
Proof.
  induction 1 as [s|s a s1 w s2 ST RN IH]; intros e l; simpl; [lia|]. specialize (IH e l).
  enough (entries (s_hist example s1 e) l <= entries (s_hist example s e) l + 1) by lia.
  inversion ST as [s0 a0 sh' CS EN]; subst. destruct a; simpl; try lia. unfold upd, entries, enter_hist.
    destruct (e =? e0) eqn:Ee; [|lia].
  apply Nat.eqb_eq in Ee. subst. destruct (_ && _ && _); lia.
Qed.
Lemma example_fits : forall w s, run (spec_step example) begins w s -> length w < 1000 -> fits example M s.
Proof.
  intros w s RN L e. assert (MB := M_big).
  assert (EB : forall l, entries (s_hist example s e) l < 1001).
  { intro l. assert (H := few_entries _ _ _ RN e l). assert (entries hist_start l <= 1) by (destruct l; simpl; auto).
    simpl in H. lia. }
  split; [intro l; specialize (EB l); lia|]. intro p.
  assert (N_of example p <= 2).
  { destruct p as [|[|[|[|[|[|[|p]]]]]]]; try (vm_compute; lia). }
  specialize (EB (loop_of example p)). nia.
Qed.
Theorem example_in_words : exists w u, run (word_step example keeps M false) (impl_start example [] (fun _ _ => 0)) w u /\
  finished (i_shared example u) 0 /\ finished (i_shared example u) 1.
Proof.
  destruct example_right as (W & AL & KT). destruct example_runs as (w & s & RN & L & F0 & F1 & _).
  assert (M1 : 1 < M) by (assert (H := M_big); lia).
  destruct (word_bisimulation example keeps W AL KT M M1 false) as (S0 & EQ & FW & _).
  assert (H : forall w1 w0 s1 u1, run (spec_step example) begins w0 s1 -> word_related example keeps M s1 u1 ->
    length (w0 ++ w1) < 1000 -> run (spec_step example) s1 w1 s ->
    exists u, run (word_step example keeps M false) u1 w1 u /\ word_related example keeps M s u).
  { induction w1 as [|a w1 IH]; intros w0 s1 u1 R0 WR LE R1; inversion R1 as [|? ? s2 ? ? S1 R2]; subst.
    - exists u1. split; [constructor | assumption].
    - assert (FT : fits example M s1) by (eapply example_fits; [exact R0 | rewrite app_length in LE; lia]).
      destruct (FW _ _ _ _ WR FT S1) as (u2 & S2 & WR2).
      destruct (IH (w0 ++ [a]) s2 u2) as (u & R3 & WR3); auto.
      + clear - R0 S1. induction R0; simpl; econstructor; eauto. constructor.
      + rewrite <- app_assoc. exact LE.
      + exists u. split; [econstructor; eassumption | assumption]. }
  destruct (H w [] begins _ (run_nil _ _) (S0 [] (fun _ _ => 0)) L RN) as (u & RU & WR).
  exists w, u. rewrite <- (EQ _ _ WR). auto.
Qed.
