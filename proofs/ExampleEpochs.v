(** Epochs are about something, too: the engines of the example meet after each iteration of A, and reset all semaphores that
    they wait for. It runs to its end, through three meetings, also in words of 2 bits: a semaphore counts to 3, and the
    instructions of B run six times ([epochs_in_words]). *)
From Coq Require Import Arith ZArith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program Machine Registers Owed Retirement Bisimulation Corollaries Words Epochs EpochWords
  Tree Example.

(** What is clamped does not survive a reset. *)
Definition unclamped (c : instr) : list dep := filter (fun d => match clamp d with None => true | _ => false end) (example_deps c).
Definition kept : machine := with_deps unclamped.
Definition each : nat -> epoch := fun _ => Epoch A 1 (fun e => e <? 2) (fun l => (l =? B) || (l =? Then) || (l =? Else)).

Lemma kept_right : well_formed kept /\ Allocatable kept (deps kept) /\ forall l, tripped kept l -> keeps l = true.
Proof.
  destruct example_right as (W & AL & KT). split; [exact W|]. split.
  - intros c d H. apply filter_In in H. exact (AL c d (proj1 H)).
  - intros l (c & d & H & R). apply filter_In in H. apply KT. exists c, d. split; [exact (proj1 H) | exact R].
Qed.
Theorem epochs_right : right_epochs kept 1 each.
Proof.
  constructor; simpl.
  - discriminate.
  - lia.
  - intros k l _ R. apply orb_true_iff in R. destruct R as [R|R]; [apply orb_true_iff in R; destruct R as [R|R]|];
    apply Nat.eqb_eq in R; subst; stands.
  - intros k c d _ H _. apply filter_In in H. destruct H as [H _].
    destruct c as [|[|[|[|[|[|c]]]]]]; simpl in H; repeat destruct H as [<-|H]; try contradiction; split; reflexivity.
  - intros k c d _ H _. apply filter_In in H. destruct H as [_ H]. destruct (clamp d); [discriminate | reflexivity].
  - intros. lia.
Qed.

(** ** A run, as in Example.v, with meetings *)
Notation state := (spec kept * counts)%type.
Notation meets := (spec_meets kept 1 each).
Definition held_now (sh : shared kept) (n : counts) (e : engine) : bool :=
  (e <? 2) && (1 <=? n 0 e) && match conts kept sh e with (l, []) :: _ => l =? A | _ => false end.
Lemma held_now_right : forall sh n e, held_now sh n e = true <-> held kept each 0 sh n e.
Proof.
  intros sh n e. unfold held_now, held, each. cbn [parts every place]. rewrite !andb_true_iff, Nat.leb_le. split.
  - intros [[H1 H2] H3]. split; [assumption|]. split; [assumption|].
    destruct (conts kept sh e) as [|[l [|s r]] fs]; try discriminate. apply Nat.eqb_eq in H3. subst. eauto.
  - intros (H1 & H2 & fs & ->). rewrite Nat.eqb_refl. auto.
Qed.
Definition mover (a : label) : engine := match a with
  | Enter e _ | Exit e _ | Back e | Issue e _ | Commit e _ | Retire e _ => e end.
Definition go_on_now (a : label) (x : state) : option (state * (label + nat)) :=
  if match a with Commit _ _ | Retire _ _ => false | _ => held_now (s_shared kept (fst x)) (snd x) (mover a) end then None
  else match try_step unclamped (fst x) a with Some s' => Some ((s', go_on each a (snd x)), inl a) | None => None end.
Definition idle (s : spec kept) (e : engine) : bool := match in_flight kept (s_shared kept s) e with [] => true | _ => false end.
(** They meet where they agree; counters of loops from 0 to 4 are all there are. *)
Definition meet_now (x : state) : option (state * (label + nat)) :=
  if forallb (fun e => held_now (s_shared kept (fst x)) (snd x) e && idle (fst x) e) [0; 1] &&
     forallb (fun l => entries (s_hist kept (fst x) 0) l =? entries (s_hist kept (fst x) 1) l) [B; Then; Else]
  then Some ((fst x, begin_again each 0 (snd x)), inr 0) else None.
Lemma go_on_right : forall a x x' b, go_on_now a x = Some (x', b) -> meets x b x' /\ agreeing kept each b x.
Proof.
  intros a [s n] x' b H. unfold go_on_now in H. destruct (match a with Commit _ _ => _ | _ => _ end) eqn:HN; [discriminate|].
  destruct (try_step unclamped (fst (s, n)) a) as [s'|] eqn:T; [|discriminate]. injection H as <- <-. split; [|exact I].
  constructor; [apply try_step_right; assumption|]. intros k e K MV HD.
  assert (k = 0) by lia. subst k. apply held_now_right in HD. simpl in HN.
  destruct a; simpl in MV, HN; try contradiction; subst; congruence.
Qed.
Lemma meet_right : forall x x' b, meet_now x = Some (x', b) -> meets x b x' /\ agreeing kept each b x.
Proof.
  intros [s n] x' b H. unfold meet_now in H. simpl in H. destruct (_ && _) eqn:G in H; [|discriminate]. injection H as <- <-.
  rewrite !andb_true_iff, !Nat.eqb_eq in G. destruct G as [((H0 & I0) & (H1 & I1) & _) (E2 & E3 & E4 & _)]. split.
  - apply (meeting_resets kept 1 each (spec_step kept) (s_shared kept) unchanged s n 0); [lia|].
    intros e Pe. simpl in Pe. destruct e as [|[|e]]; [| |discriminate]; (split; [apply held_now_right; assumption|]);
    simpl; unfold idle in *; [destruct (in_flight kept (s_shared kept s) 0) | destruct (in_flight kept (s_shared kept s) 1)];
    congruence.
  - intros e e' l Pe Pe' R. simpl in *. assert (EQ : entries (s_hist kept s 0) l = entries (s_hist kept s 1) l).
    { apply orb_true_iff in R. destruct R as [R|R]; [apply orb_true_iff in R; destruct R as [R|R]|]; apply Nat.eqb_eq in R;
      subst; assumption. }
    destruct e as [|[|e]]; try discriminate; destruct e' as [|[|e']]; try discriminate; congruence.
Qed.

Definition next (x : state) : option (state * (label + nat)) :=
  fold_left (fun o a => match o with None => go_on_now a x | _ => o end)
    (choices unclamped (fst x) 1 ++ choices unclamped (fst x) 0) (meet_now x).
Fixpoint march (fuel : nat) (x : state) : list (label + nat) * state := match fuel with
  | 0 => ([], x)
  | S f => match next x with Some (x', b) => let '(w, z) := march f x' in (b :: w, z) | None => ([], x) end end.
Lemma next_right : forall x x' b, next x = Some (x', b) -> meets x b x' /\ agreeing kept each b x.
Proof.
  intros x x' b H. unfold next in H.
  assert (G : forall ls o, (forall y c, o = Some (y, c) -> meets x c y /\ agreeing kept each c x) ->
    forall y c, fold_left (fun o a => match o with None => go_on_now a x | _ => o end) ls o = Some (y, c) ->
      meets x c y /\ agreeing kept each c x).
  { induction ls as [|a ls IH]; simpl; intros o Ho y c E; [auto|]. apply (IH _ (fun y c H => match o as o0 return
      (forall y c, o0 = Some (y, c) -> meets x c y /\ agreeing kept each c x) ->
      match o0 with None => go_on_now a x | _ => o0 end = Some (y, c) -> meets x c y /\ agreeing kept each c x
      with Some _ => fun K => K y c | None => fun _ => go_on_right a x y c end Ho H) y c E). }
  exact (G _ _ (meet_right x) x' b H).
Qed.

(** ** The bound: histories only grow, so that it is enough to look at the end; iterations of A from 0 to 3 are all there are *)
Definition small (s : spec kept) : bool := forallb (fun e => (entries (s_hist kept s e) A <? 4) &&
  forallb (fun l => forallb (fun i => s_hist kept s e A i l <=? 2) [0; 1; 2; 3]) [B; Then; Else]) [0; 1].
Definition bounded (s : spec kept) : Prop := forall e, e < 2 -> entries (s_hist kept s e) A < 4 /\
  forall l i, In l [B; Then; Else] -> i <= 3 -> s_hist kept s e A i l <= 2.
Lemma small_bounded : forall s, small s = true -> bounded s.
Proof.
  intros s SM e He. unfold small in SM. rewrite forallb_forall in SM. assert (Ie : In e [0; 1]) by (simpl; lia).
  specialize (SM e Ie). rewrite andb_true_iff in SM. destruct SM as [S1 S3]. apply Nat.ltb_lt in S1. split; [assumption|].
  intros l i Hl L. rewrite forallb_forall in S3. specialize (S3 l Hl). rewrite forallb_forall in S3.
    apply Nat.leb_le, S3. simpl. lia.
Qed.
Lemma meets_grow : forall x b x' e S i l, meets x b x' -> s_hist kept (fst x) e S i l <= s_hist kept (fst x') e S i l.
Proof.
  intros x b x' e S i l H. inversion H as [s n a s' ST _|s n k _ _]; subst; simpl; [|apply le_n].
  inversion ST as [s0 a0 sh' CS EN]; subst. destruct a; simpl; try lia. unfold upd. destruct (Nat.eqb_spec e e0); [|lia].
  subst. unfold enter_hist. lia.
Qed.
Lemma march_grows : forall f x e S i l, s_hist kept (fst x) e S i l <= s_hist kept (fst (snd (march f x))) e S i l.
Proof.
  induction f as [|f IH]; intros x e S i l; simpl; [lia|]. destruct (next x) as [[x' b]|] eqn:N; [|simpl; lia].
  destruct (next_right _ _ _ N) as [ST _]. specialize (IH x' e S i l). destruct (march f x') as [w y]. simpl in *.
  eapply Nat.le_trans; [apply (meets_grow _ _ _ _ _ _ _ ST) | exact IH].
Qed.
Lemma bounded_before : forall s s', (forall e S i l, s_hist kept s e S i l <= s_hist kept s' e S i l) -> bounded s' -> bounded s.
Proof.
  intros s s' LE H e He. destruct (H e He) as [H1 H2]. split.
  - eapply Nat.le_lt_trans; [apply LE | exact H1].
  - intros l i Hl Hi. eapply Nat.le_trans; [apply LE | apply H2; assumption].
Qed.

Lemma bounded_fits : forall s n v n', met kept keeps 1 each (s, n) (v, n') -> bounded s -> epoch_fits kept 1 each 4 s.
Proof.
  intros s n v n' (t & base & RL & _) BD c d Hd. simpl in RL.
  assert (SE : forall e, e < 2 -> trip kept (s_hist kept s e) A < 4 /\ trip kept (s_hist kept s e) B < 4 /\
    forall l i, In l [B; Then; Else] -> s_hist kept s e A i l <= 2).
  { intros e He. destruct (BD e He) as [S1 S3]. destruct RL as [_ IV]. destruct (IV e) as [C _].
    assert (T : s_hist kept s e 0 1 0 = 1) by apply (c_top _ _ _ _ _ _ C).
    split; [|split].
    - change (s_hist kept s e 0 (s_hist kept s e 0 1 0) A < 4). rewrite T. exact S1.
    - change (s_hist kept s e A (entries (s_hist kept s e) A) B < 4). assert (X := S3 B (entries (s_hist kept s e) A)).
      simpl in X. lia.
    - intros l i Hl. destruct (le_lt_dec i 3) as [L|L]; [apply S3; assumption|].
      rewrite (c_fresh _ _ _ _ _ _ C) by lia. lia. }
  assert (ADD : forall e p, e < 2 -> In (loop_of kept p) [B; Then; Else] -> N_of kept p = 1 -> added kept 1 each 4 s e p).
  { intros e p He Hl N1. destruct (SE e He) as (_ & _ & SH). exists 0, 2. split; [lia|].
    split; [apply Nat.ltb_lt; exact He|]. split.
    - destruct Hl as [<-|[<-|[<-|[]]]]; reflexivity.
    - split; [intro i; apply SH; exact Hl | rewrite N1; simpl; lia]. }
  apply filter_In in Hd. destruct Hd as [Hd _].
  assert (H0 := SE 0 ltac:(lia)). assert (H1 := SE 1 ltac:(lia)).
  destruct c as [|[|[|[|[|[|c]]]]]]; simpl in Hd; repeat destruct Hd as [<-|Hd]; try contradiction;
  (split; [intros e He; left; apply ADD; [destruct He as [-> | ->]; vm_compute; lia | vm_compute; tauto | reflexivity] |
    intros l [[-> _]|[-> X]]; [vm_compute in H0, H1 |- *; tauto | simpl in X; try congruence; vm_compute in H0, H1 |- *; tauto]]).
Qed.

(** ** Words of 2 bits *)
Notation word_steps := (epoch_word_step kept keeps 1 each 4).
Lemma march_runs : forall fuel x z, word_met kept keeps 1 each 4 x z -> bounded (fst (snd (march fuel x))) ->
  exists z', run word_steps z (fst (march fuel x)) z' /\ word_met kept keeps 1 each 4 (snd (march fuel x)) z'.
Proof.
  destruct kept_right as (W & AL & KT).
  destruct (epoch_word_bisimulation kept keeps W AL KT 1 each epochs_right 4 ltac:(lia)) as (_ & _ & FW & _).
  induction fuel as [|f IH]; intros x z WM BD; [exists z; split; [constructor | assumption]|].
  assert (BX := bounded_before _ _ (march_grows (S f) x) BD). simpl in *.
  destruct (next x) as [[x' b]|] eqn:N; [|exists z; split; [constructor | assumption]].
  destruct (next_right _ _ _ N) as (ST & AG).
  assert (FT : epoch_fits kept 1 each 4 (fst x)).
  { destruct WM as (v & MT & _). destruct x as [s n]. eapply bounded_fits; eauto. }
  destruct (FW x z b x' WM AG FT ST) as (z1 & S1 & WM1). specialize (IH x' z1 WM1). destruct (march f x') as [w y].
  destruct (IH BD) as (z' & R & WM'). exists z'. split; [econstructor; eassumption | assumption].
Qed.
Definition meetings (w : list (label + nat)) : nat := length (filter (fun b => match b with inr _ => true | _ => false end) w).
Definition came_to (w : list (label + nat)) (sh : shared kept) :=
  (meetings w, map (fun e => (conts kept sh e, in_flight kept sh e)) [0; 1],
   map (count_occ Nat.eq_dec (datapath kept sh)) [P; X; C2; C0; C1; C3; Y]).
Definition looked_at (r : list (label + nat) * state) := (came_to (fst r) (s_shared kept (fst (snd r))), small (fst (snd r))).
Lemma looked_right : forall r x, looked_at r = (x, true) -> came_to (fst r) (s_shared kept (fst (snd r))) = x /\
  bounded (fst (snd r)).
Proof. unfold looked_at. intros r x E. split; [congruence | apply small_bounded; congruence]. Qed.
Theorem epochs_in_words : exists w z, run word_steps (impl_start kept [] (fun _ _ => 0), no_counts) w z /\
  came_to w (i_shared kept (fst z)) = (3, [([(top, [])], []); ([(top, [])], [])], [6; 6; 6; 3; 3; 2; 1]).
Proof.
  destruct kept_right as (W & AL & KT).
  destruct (epoch_word_bisimulation kept keeps W AL KT 1 each epochs_right 4 ltac:(lia)) as (S0 & EQ & _ & _).
  set (x := (spec_start kept [] (fun _ _ => 0), no_counts) : state).
  assert (L : looked_at (march 1000 x) = ((3, [([(top, [])], []); ([(top, [])], [])], [6; 6; 6; 3; 3; 2; 1]), true))
    by (match goal with |- _ = ?r => vm_cast_no_check (eq_refl r) end).
  apply looked_right in L. destruct L as [L BD].
  destruct (march_runs 1000 x _ (S0 [] (fun _ _ => 0)) BD) as (z & R & WM).
  exists (fst (march 1000 x)), z. split; [exact R|]. rewrite <- (EQ _ _ WM). exact L.
Qed.
