(** One register operation, and one wait, at a time. Machine.v enters a loop with all its registers in one step, and tests
    all waits of an instruction in the step that issues it. What is emitted does neither: an entry is code on registers, and
    an instruction has one wait at most, so that the others stand in front of it in instructions that only wait. Here an
    engine runs such code operation by operation, while the other engines go on. Registers are any [store], and code is any
    that comes to the thresholds; semaphores and thresholds are the numbers of Machine.v or the words of Words.v. *)
From Coq Require Import Arith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Arithmetic Program Machine Registers Retirement Bisimulation Corollaries Words.

Section Micro.
Variable m : machine.
Notation P := (program_of m).
Variable keeps_trip : loop -> bool.
Hypothesis W : well_formed P.
Hypothesis AL : Allocatable P (deps m).
Hypothesis KT : forall l, tripped m l -> keeps_trip l = true.

(** ** What counts: numbers or words *)
Record counting := Counting {
  entering : loop -> regs -> regs;
  waiting : regs -> dep -> nat;
  signalling : instr -> semaphores -> semaphores;
  fitting : spec m -> Prop;
  showing : impl m -> impl m -> Prop }.       (* numbers, and how they are counted *)
Variable C : counting.

Definition counted_update (a : label) (sh' : shared m) (v : impl m) : impl m :=
  match a with
  | Enter e l => Impl m sh' (i_sema m v) (upd (i_regs m v) e (entering C l (i_regs m v e)))
  | Retire e i => Impl m sh' (signalling C i (i_sema m v)) (i_regs m v)
  | _ => Impl m sh' (i_sema m v) (i_regs m v) end.
Record counts_exactly : Prop := {
  x_start : forall d c, showing C (impl_start m d c) (impl_start m d c);
  x_update : forall t v a sh', showing C t v -> showing C (impl_update m keeps_trip a sh' t) (counted_update a sh' v);
  x_wait : forall s t v e x i rest fs d, related m keeps_trip s t -> showing C t v -> fitting C s ->
    conts m (s_shared m s) e = (x, Instr i :: rest) :: fs -> In d (deps m i) ->
    (waiting C (i_regs m v e) d <= reached m (i_sema m v) (producer d) <-> passes m (i_sema m t) (i_regs m t e) d) }.
Hypothesis X : counts_exactly.

(** ** Code *)
Variable store : Type.
Variable reads : store -> regs -> Prop.
Variable threshold_in : store -> nat.         (* the register that a wait compares *)
Inductive op := Set_ (f : store -> store) | Wait (d : dep).
Variable on_entry : loop -> list (store -> store).
Variable before : instr -> list op.

(** From [st], [code] waits for [ds], one after the other, each with its threshold, and leaves the registers as they were. *)
Fixpoint computes (r : regs) (ds : list dep) (st : store) (code : list op) : Prop :=
  match code with
  | [] => ds = [] /\ reads st r
  | Set_ f :: rest => computes r ds (f st) rest
  | Wait d :: rest => exists ds', ds = d :: ds' /\ threshold_in st = waiting C r d /\ computes r ds' st rest end.
Definition execute_all (fs : list (store -> store)) (st : store) : store := fold_left (fun x f => f x) fs st.
Record right_code (st0 : store) : Prop := {
  code_start : reads st0 regs_start;
  code_entry : forall l st r, reads st r -> reads (execute_all (on_entry l) st) (entering C l r);
  code_waits : forall i st r, reads st r -> computes r (deps m i) st (before i) }.
Variable st0 : store.
Hypothesis RC : right_code st0.

(** ** The machine *)
Record micro := Micro { u_shared : shared m; u_sema : semaphores; u_store : engine -> store; u_code : engine -> list op }.
Definition next (fs : frames) : list op := match fs with (_, Instr i :: _) :: _ => before i | _ => [] end.
Definition mover (a : label) : option engine := match a with
  | Enter e _ | Exit e _ | Back e | Issue e _ => Some e | _ => None end.
Definition micro_update (a : label) (sh' : shared m) (u : micro) : micro :=
  Micro sh' (match a with Retire _ i => signalling C i (u_sema u) | _ => u_sema u end) (u_store u)
    (match a with
     | Enter e l => upd (u_code u) e (map Set_ (on_entry l) ++ next (conts m sh' e))
     | Exit e _ | Back e | Issue e _ => upd (u_code u) e (next (conts m sh' e))
     | _ => u_code u end).
(** [None] is a step of code: nobody sees it but the engine itself. *)
Inductive micro_step : micro -> option label -> micro -> Prop :=
| micro_set : forall sh sema st code e f rest, code e = Set_ f :: rest ->
    micro_step (Micro sh sema st code) None (Micro sh sema (upd st e (f (st e))) (upd code e rest))
| micro_wait : forall sh sema st code e d rest, code e = Wait d :: rest -> threshold_in (st e) <= reached m sema (producer d) ->
    micro_step (Micro sh sema st code) None (Micro sh sema st (upd code e rest))
| micro_does : forall u a sh', shared_step m (u_shared u) a sh' -> (forall e, mover a = Some e -> u_code u e = []) ->
    micro_step u (Some a) (micro_update a sh' u).
Definition micro_start d c : micro :=
  Micro (start m d c) (fun _ _ _ => 0) (fun _ => st0) (fun e => next [(top, body P e top)]).

(** Code ends: a step of it shortens that of one engine. *)
Theorem code_ends : forall u u', micro_step u None u' -> exists e,
  length (u_code u e) = S (length (u_code u' e)) /\ forall e', e' <> e -> u_code u' e' = u_code u e'.
Proof.
  intros u u' ST. inversion ST; subst; exists e; simpl; rewrite upd_same, H; (split; [reflexivity|]);
  intros; apply upd_other; assumption.
Qed.

(** ** What relates it to numbers: of the waits of the instruction at hand some have passed, and code does the rest *)
Definition waits_at (fs : frames) : list dep := match fs with (_, Instr i :: _) :: _ => deps m i | _ => [] end.
Definition midway (t v : impl m) (u : micro) : Prop :=
  i_shared m t = u_shared u /\ i_sema m v = u_sema u /\ forall e, exists passed todo,
    waits_at (conts m (u_shared u) e) = passed ++ todo /\ Forall (passes m (i_sema m t) (i_regs m t e)) passed /\
    computes (i_regs m v e) todo (u_store u e) (u_code u e).
Definition micro_related (s : spec m) (u : micro) : Prop := exists t v,
  related m keeps_trip s t /\ showing C t v /\ midway t v u.

Lemma waits_at_deps : forall fs d, In d (waits_at fs) -> exists x i rest fs', fs = (x, Instr i :: rest) :: fs' /\ In d (deps m i).
Proof. intros [|[x [|[i|l|a b] rest]] fs] d H; try contradiction. do 4 eexists. eauto. Qed.
Lemma computes_next : forall fs st r, reads st r -> computes r (waits_at fs) st (next fs).
Proof.
  intros fs st r H. destruct fs as [|[x [|[i|l|a b] rest]] fs]; simpl; auto. apply (code_waits _ RC). assumption.
Qed.
Lemma computes_entry : forall fs r ds st code, computes r ds (execute_all fs st) code -> computes r ds st (map Set_ fs ++ code).
Proof. induction fs; simpl; auto. Qed.
Lemma passes_later : forall t a sh' e d, passes m (i_sema m t) (i_regs m t e) d -> mover a <> Some e ->
  passes m (i_sema m (impl_update m keeps_trip a sh' t)) (i_regs m (impl_update m keeps_trip a sh' t) e) d.
Proof.
  unfold passes, reached. intros t a sh' e d H N. destruct a; simpl in *; try assumption.
  - rewrite upd_other by congruence. assumption.
  - unfold signal. destruct (_ && _ && _); lia.
Qed.
Lemma conts_kept : forall sh a sh' e, shared_step m sh a sh' -> mover a <> Some e -> conts m sh' e = conts m sh e.
Proof. intros sh a sh' e ST N. inversion ST; subst; simpl in *; try reflexivity; apply upd_other; congruence. Qed.

Lemma silent_keeps : forall s u u', fitting C s -> micro_related s u -> micro_step u None u' -> micro_related s u'.
Proof.
  intros s u u' FT (t & v & RL & SH & ES & EV & IV) ST. exists t, v. split; [assumption|]. split; [assumption|].
  inversion ST; subst; simpl in *; (split; [assumption|]; split; [assumption|]); intro e0; simpl;
  destruct (IV e0) as (passed & todo & EW & PA & CO);
  (destruct (Nat.eq_dec e0 e) as [->|N]; [rewrite ?upd_same | rewrite ?upd_other by assumption; eauto]);
  rewrite H in CO; simpl in CO.
  - exists passed, todo. auto.
  - destruct CO as (ds' & -> & ET & CO). exists (passed ++ [d]), ds'. rewrite <- app_assoc. split; [assumption|].
    split; [|assumption]. apply Forall_app. split; [assumption|]. constructor; [|constructor].
    assert (Id : In d (waits_at (conts m sh e))) by (rewrite EW; apply in_or_app; right; left; reflexivity).
    destruct (waits_at_deps _ _ Id) as (x & i & rest' & fs' & EF & Id').
    rewrite <- ES, <- (proj1 RL) in EF. apply (x_wait X s t v e x i rest' fs' d); auto. rewrite EV, <- ET. assumption.
Qed.

Lemma visible_keeps : forall s t v u a sh', related m keeps_trip s t -> showing C t v -> midway t v u ->
  shared_step m (u_shared u) a sh' -> (forall e, mover a = Some e -> u_code u e = []) ->
  midway (impl_update m keeps_trip a sh' t) (counted_update a sh' v) (micro_update a sh' u).
Proof.
  intros s t v u a sh' RL SH (ES & EV & IV) ST ID. split; [destruct a; reflexivity|].
  split; [destruct a; simpl; rewrite ?EV; reflexivity|]. intro e. simpl.
  destruct (IV e) as (passed & todo & EW & PA & CO).
  assert (MV : {mover a = Some e} + {mover a <> Some e}) by (decide equality; apply Nat.eq_dec). destruct MV as [MV|MV].
  - assert (Z := ID e MV). rewrite Z in CO. destruct CO as [-> RD].
    exists [], (waits_at (conts m sh' e)). split; [reflexivity|]. split; [constructor|].
    destruct a; simpl in MV |- *; inversion MV; subst; rewrite ?upd_same; try (apply computes_next; assumption).
    apply computes_entry, computes_next, (code_entry _ RC). assumption.
  - exists passed, todo. rewrite (conts_kept _ _ _ _ ST MV). split; [assumption|]. split.
    + eapply Forall_impl; [|exact PA]. intros d Hd. apply passes_later; assumption.
    + destruct a; simpl in *; rewrite ?upd_other by congruence; assumption.
Qed.

Inductive silently : micro -> micro -> Prop :=
| silent_nil : forall u, silently u u
| silent_cons : forall u u1 u2, micro_step u None u1 -> silently u1 u2 -> silently u u2.
Lemma silently_keeps : forall s u u', fitting C s -> silently u u' -> micro_related s u -> micro_related s u'.
Proof. induction 2; eauto using silent_keeps. Qed.

(** where the waits that are left would pass, code comes to its end *)
Lemma code_runs : forall code sh sema st codes e r ds, codes e = code -> computes r ds (st e) code ->
  Forall (fun d => waiting C r d <= reached m sema (producer d)) ds -> exists st' codes', codes' e = [] /\
  silently (Micro sh sema st codes) (Micro sh sema st' codes').
Proof.
  induction code as [|[f|d] code IH]; intros sh sema st codes e r ds EC CO FA; simpl in CO.
  - exists st, codes. split; [assumption | constructor].
  - destruct (IH sh sema (upd st e (f (st e))) (upd codes e code) e r ds) as (st' & codes' & A & B);
      rewrite ?upd_same; auto.
    exists st', codes'. split; [assumption|]. econstructor; [apply micro_set; eassumption | assumption].
  - destruct CO as (ds' & -> & ET & CO). inversion FA; subst.
    destruct (IH sh sema st (upd codes e code) e r ds') as (st' & codes' & A & B); rewrite ?upd_same; auto.
    exists st', codes'. split; [assumption|]. econstructor; [eapply micro_wait;
      [eassumption | rewrite ET; assumption] | assumption].
Qed.

Lemma issues_at : forall sh a sh' e x i rest fs, shared_step m sh a sh' -> mover a = Some e ->
  conts m sh e = (x, Instr i :: rest) :: fs -> a = Issue e i.
Proof.
  intros sh a sh' e x i rest fs ST MV E. inversion ST; subst; simpl in MV, E; inversion MV; subst; rewrite H in E;
  inversion E; subst; [discriminate | reflexivity].
Qed.

(** ** Theorem 7.1, for code *)
Theorem micro_bisimulation :
  (forall d c, micro_related (spec_start m d c) (micro_start d c)) /\
  (forall s u, micro_related s u -> s_shared m s = u_shared u) /\
  (forall s u a s', micro_related s u -> fitting C s -> spec_step m s a s' -> exists u1 u2,
    silently u u1 /\ micro_step u1 (Some a) u2 /\ micro_related s' u2) /\
  (forall s u u', micro_related s u -> fitting C s -> micro_step u None u' -> micro_related s u') /\
  (forall s u a u', micro_related s u -> fitting C s -> micro_step u (Some a) u' ->
    exists s', spec_step m s a s' /\ micro_related s' u').
Proof.
  split; [|split; [|split; [|split]]].
  - intros d c. exists (impl_start m d c), (impl_start m d c). split; [apply start_related; assumption|].
    split; [apply (x_start X)|]. split; [reflexivity|]. split; [reflexivity|]. intro e.
    exists [], (waits_at [(top, body P e top)]). split; [reflexivity|]. split; [constructor|].
    apply computes_next, (code_start _ RC).
  - intros s u (t & v & [E _] & _ & E' & _). congruence.
  - intros s u a s' MR FT ST. assert (MR0 := MR). destruct MR as (t & v & RL & SH & MW).
    destruct (forward _ _ W AL KT _ _ _ _ RL ST) as (t' & IS & RL').
    inversion IS as [t0 a0 sh' CS EN]; subst.
    assert (R1 : exists u1, silently u u1 /\ u_shared u1 = u_shared u /\ forall e, mover a = Some e -> u_code u1 e = []).
    { destruct (mover a) as [e|] eqn:MV; [|exists u; split; [constructor | split; [reflexivity | discriminate]]].
      destruct u as [sh sema st codes]. destruct MW as (ES & EV & IV). simpl in *.
      destruct (IV e) as (passed & todo & EW & PA & CO).
      destruct (code_runs _ sh sema st codes e _ _ eq_refl CO) as (st' & codes' & A & B).
      { apply Forall_forall. intros d Hd.
        assert (Id : In d (waits_at (conts m sh e))) by (rewrite EW; apply in_or_app; auto).
        destruct (waits_at_deps _ _ Id) as (x & i & rest' & fs' & EF & Id').
        assert (a = Issue e i).
        { eapply issues_at; [exact CS | exact MV|]. rewrite ES. exact EF. }
        rewrite <- EV. apply (x_wait X s t v e x i rest' fs' d); auto.
        - rewrite (proj1 RL), ES. assumption.
        - specialize (EN e i H). rewrite Forall_forall in EN. auto. }
      eexists. split; [exact B|]. split; [reflexivity|]. intros e' E. inversion E; subst. assumption. }
    destruct R1 as (u1 & SI & ES & ID). exists u1, (micro_update a sh' u1). split; [assumption|].
    assert (CS1 : shared_step m (u_shared u1) a sh') by (rewrite ES, <- (proj1 MW); exact CS).
    split; [constructor; assumption|].
    destruct (silently_keeps s u u1 FT SI MR0) as (t1 & v1 & RL1 & SH1 & MW1).
    exists (impl_update m keeps_trip a sh' t1), (counted_update a sh' v1).
    split; [|split; [apply (x_update X); assumption | eapply visible_keeps; eauto]].
    inversion ST as [s0 a0 sh2 CS2 EN2]; subst.
    assert (sh2 = sh').
    { destruct RL' as [E _]. destruct a; simpl in E; assumption. }
    subst sh2. apply step_keeps; assumption.
  - intros. eapply silent_keeps; eauto.
  - intros s u a u' (t & v & RL & SH & MW) FT ST. inversion ST as [| |u0 a0 sh' CS ID]; subst.
    assert (MW0 := MW). destruct MW as (ES & EV & IV).
    assert (IS : impl_step m keeps_trip t a (impl_update m keeps_trip a sh' t)).
    { constructor; [rewrite ES; exact CS|]. intros e i ->. destruct (IV e) as (passed & todo & EW & PA & CO).
      rewrite (ID e eq_refl) in CO. destruct CO as [-> _]. rewrite app_nil_r in EW. rewrite <- EW in PA.
      destruct (issue_at _ _ _ _ _ CS) as (x & rest & fs & F). rewrite F in PA. exact PA. }
    destruct (backward _ _ W AL KT _ _ _ _ RL IS) as (s' & S1 & RL'). exists s'. split; [assumption|].
    exists (impl_update m keeps_trip a sh' t), (counted_update a sh' v).
    split; [assumption|]. split; [apply (x_update X); assumption | eapply visible_keeps; eauto].
Qed.

(** ** The corollaries *)
Inductive micro_run : micro -> list label -> micro -> Prop :=
| micro_done : forall u, micro_run u [] u
| micro_silent : forall u u1 w u2, micro_step u None u1 -> micro_run u1 w u2 -> micro_run u w u2
| micro_visible : forall u a u1 w u2, micro_step u (Some a) u1 -> micro_run u1 w u2 -> micro_run u (a :: w) u2.
Lemma silently_run : forall u u1 w u2, silently u u1 -> micro_run u1 w u2 -> micro_run u w u2.
Proof. induction 1; eauto using micro_silent. Qed.

(** as far as the specification goes, what counts is exact; of numbers nothing is asked *)
Hypothesis all_fit : forall d c w s, run (spec_step m) (spec_start m d c) w s -> fitting C s.

Lemma run_more : forall s w s1 a s2, run (spec_step m) s w s1 -> spec_step m s1 a s2 -> run (spec_step m) s (w ++ [a]) s2.
Proof. induction 1; intros; simpl; econstructor; eauto. constructor. Qed.
Lemma micro_forward : forall d c w0 w s s' u, run (spec_step m) (spec_start m d c) w0 s -> micro_related s u ->
  run (spec_step m) s w s' -> exists u', micro_run u w u' /\ micro_related s' u'.
Proof.
  intros d c w0 w s s' u R0 MR RN. revert w0 u R0 MR. induction RN as [s|s a s1 w s2 S1 RN IH]; intros.
  - exists u. split; [constructor | assumption].
  - destruct micro_bisimulation as (_ & _ & F & _).
    destruct (F s u a s1 MR (all_fit _ _ _ _ R0) S1) as (u1 & u2 & A & B & D).
    destruct (IH _ u2 (run_more _ _ _ _ _ R0 S1) D) as (u' & E & G). exists u'. split; [|assumption].
    eapply silently_run; [exact A|]. eapply micro_visible; eauto.
Qed.
Lemma micro_backward : forall d c w0 w u u' s, run (spec_step m) (spec_start m d c) w0 s -> micro_related s u ->
  micro_run u w u' -> exists s', run (spec_step m) s w s' /\ micro_related s' u'.
Proof.
  intros d c w0 w u u' s R0 MR RN. revert w0 s R0 MR. destruct micro_bisimulation as (_ & _ & _ & Q & B).
  induction RN as [u|u u1 w u2 S1 RN IH|u a u1 w u2 S1 RN IH]; intros.
  - exists s. split; [constructor | assumption].
  - apply (IH w0 s R0). apply (Q s u); auto. eauto.
  - destruct (B s u a u1 MR (all_fit _ _ _ _ R0) S1) as (s1 & D & E).
    destruct (IH _ s1 (run_more _ _ _ _ _ R0 D) E) as (s' & F & G). exists s'. split; [econstructor; eauto | assumption].
Qed.

(** Equal traces of what is seen, with the same states of data, control, continuations and pipelines. *)
Theorem micro_same_traces : forall d c w sh,
  (exists s, run (spec_step m) (spec_start m d c) w s /\ s_shared m s = sh) <->
  (exists u, micro_run (micro_start d c) w u /\ u_shared u = sh).
Proof.
  intros. destruct micro_bisimulation as (ST & EQ & _). assert
    (R0 : run (spec_step m) (spec_start m d c) [] (spec_start m d c)) by constructor.
  split.
  - intros (s & RN & <-). destruct (micro_forward _ _ _ _ _ _ _ R0 (ST d c) RN) as (u & A & B). exists u. split; [assumption|].
    symmetry. auto.
  - intros (u & RN & <-). destruct (micro_backward _ _ _ _ _ _ _ R0 (ST d c) RN) as (s & A & B). exists s. auto.
Qed.

(** Code stops for good exactly where the specification is stuck. *)
Definition blocked (u : micro) := forall u', silently u u' -> forall a u'', ~ micro_step u' (Some a) u''.
Theorem micro_deadlocks_together : forall d c w sh,
  (exists s, run (spec_step m) (spec_start m d c) w s /\ s_shared m s = sh /\ stuck (spec_step m) s) <->
  (exists u, micro_run (micro_start d c) w u /\ u_shared u = sh /\ blocked u).
Proof.
  intros. destruct micro_bisimulation as (ST & EQ & F & _ & B).
  assert (R0 : run (spec_step m) (spec_start m d c) [] (spec_start m d c)) by constructor. split.
  - intros (s & RN & <- & SS). destruct (micro_forward _ _ _ _ _ _ _ R0 (ST d c) RN) as (u & A & D). exists u.
    split; [assumption|]. split; [symmetry; auto|]. intros u' SI a u'' S1.
    destruct (B s u' a u'') as (s' & S2 & _); eauto using silently_keeps. exact (SS _ _ S2).
  - intros (u & RN & <- & BL). destruct (micro_backward _ _ _ _ _ _ _ R0 (ST d c) RN) as (s & A & D). exists s.
    split; [assumption|]. split; [auto|]. intros a s' S1.
    destruct (F s u a s' D (all_fit _ _ _ _ A) S1) as (u1 & u2 & SI & S2 & _). exact (BL _ SI _ _ S2).
Qed.
End Micro.

(** ** Numbers and words *)
Section Instances.
Variable m : machine.
Notation P := (program_of m).
Variable keeps_trip : loop -> bool.
Hypothesis W : well_formed P.
Hypothesis AL : Allocatable P (deps m).
Hypothesis KT : forall l, tripped m l -> keeps_trip l = true.

Definition numbers : counting m := Counting m (enter_regs m keeps_trip) (wait_value m) (signal m) (fun _ => True) eq.
Definition words (M : nat) (restarts : bool) : counting m :=
  Counting m (word_enter m keeps_trip M) (word_wait m M restarts) (word_signal m M) (fits m M) (wraps m M).

(** The code that is printed: the paper's operations, with a register for the mask and one for the threshold. *)
Record registers := Registers { counters : regs; mask_in : nat; wait_in : nat }.
Definition formula (d : dep) : list (op registers) := map (Set_ registers) [
  (fun g => Registers (counters g) (mask m (counters g) d) (wait_in g));
  (fun g => Registers (counters g) (mask_in g) (owed m (counters g) d));
  (fun g => Registers (counters g) (mask_in g) (mask_in g * wait_in g));
  (fun g => Registers (counters g) (mask_in g) (N_of m (producer d) * wait_in g));
  (fun g => Registers (counters g) (mask_in g) (wait_in g - (N_of m (producer d) - K_of m (producer d))))] ++
  [Wait registers d].
Definition entry (l : loop) : list (registers -> registers) :=
  [fun g => Registers (enter_regs m keeps_trip l (counters g)) (mask_in g) (wait_in g)].
Theorem formula_right : right_code m numbers registers (fun g r => counters g = r) wait_in
  entry (fun i => flat_map formula (deps m i)) (Registers regs_start 0 0).
Proof.
  constructor; simpl.
  - reflexivity.
  - intros l st r <-. reflexivity.
  - intros i st r <-. induction (deps m i) as [|d ds IH] in st |- *; simpl; [auto|].
    exists ds. split; [reflexivity|]. split; [reflexivity|]. apply (IH (Registers _ _ _)).
Qed.

Theorem numbers_exact : counts_exactly m keeps_trip numbers.
Proof.
  constructor; simpl.
  - reflexivity.
  - intros t v a sh' <-. reflexivity.
  - intros s t v e x i rest fs d _ <- _ _ _. reflexivity.
Qed.
Theorem words_exact : forall M restarts, 1 < M -> counts_exactly m keeps_trip (words M restarts).
Proof.
  intros M restarts HM. constructor; simpl.
  - intros d c. split; [reflexivity|]. simpl. rewrite Nat.mod_0_l by lia. repeat split; reflexivity.
  - intros t v a sh' H. apply (wraps_step m keeps_trip M HM _ _ a sh' H).
  - intros. eapply word_wait_exact; eauto.
Qed.
End Instances.
