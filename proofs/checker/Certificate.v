(** Certificates: a program, the streams that were emitted for it, and the check that they ask for the same. *)
From Coq Require Import ZArith List Bool Lia PArith Relations.
From Checker Require Import Linear Language States Values Symbolic Order Engines Program Agreement.
Import ListNotations.
Local Open Scope Z_scope.

(** ** The check *)

Record certificate := Certificate {
  specification : program;
  streams : list (engine * stream form);
  maxima : list (loop * Z);                      (** how often an engine enters a loop at most, in all *)
  most : Z;                                      (** what a semaphore holds at most *)
  blocks : list (group * place_of_group);        (** what issues together: see [Order] *)
  counters : list (engine * list (positive * ghost))
}.

Fixpoint distinct (l : list positive) : bool :=
  match l with [] => true | x :: l => negb (existsb (Pos.eqb x) l) && distinct l end.

Definition issues_none (g : group) (s : stream form) : bool :=
  match pattern_of (fun _ => false) g s with Some (Word []) => true | _ => false end.

Definition context_of (c : certificate) (es : engine * stream form) : context :=
  let (e, s) := es in
  Context (match find e (counters c) with Some l => l | None => [] end)
    (parent_in (specification c)) (maxima c) (filter (fun g => takes_part s (snd g)) (blocks c)) (most c)
    (needs_in (specification c))
    (map (fun x => (fst x, snd (snd x)))
       (filter (fun x => mine s (Gather (fst x))) (gatherings root (specification c))))
    (filter (fun g => negb (issues_none (fst g) s)) (blocks c)).

(** Whether [f] tells of each barrier whether a semaphore of a group becomes 0 there. *)
Definition becomes_zero (f : barrier -> bool) (g : group) (s : stream form) : bool :=
  forallb (fun x => forallb (fun y : label * option semaphore =>
    match snd y with Some s' => Bool.eqb (among s' (snd x)) (f (fst x)) | None => true end) g) (meets_of s).

Definition issuer_right (g : group) (p : place_of_group) (s : stream form) : bool :=
  match pattern_of (cut p) g s with Some q => whole g q | None => false end && becomes_zero (cut p) g s && takes_part s p.
Definition stranger_right (g : group) (s : stream form) : bool := issues_none g s && becomes_zero (fun _ => false) g s.

(** One stream issues what belongs to a group, and that in rounds. *)
Fixpoint in_one (g : group) (p : place_of_group) (ss : list (engine * stream form)) : bool :=
  match ss with
  | [] => false
  | (_, s) :: ss =>
      if issues_none g s then stranger_right g s && in_one g p ss
      else issuer_right g p s && forallb (fun es => stranger_right g (snd es)) ss
  end.

Definition group_right (c : certificate) (x : group * place_of_group) : bool :=
  let (g, p) := x in
  match g with
  | [] => false
  | (i, _) :: _ => match snd p with [] => true | _ => labelled i g =? 1 end
  end && in_one g p (streams c).

(** Whether a stream tells when each loop begins that a need of its engine speaks of. *)
Definition tells (p : program) (e : engine) (s : stream form) : bool :=
  let told l := mine s (Begin l) in
  let known l := Pos.eqb l root || told l in
  forallb (fun x => negb (Pos.eqb (fst (snd x)) e) ||
    match needs_in p (fst x) with
    | None => false
    | Some ns => forallb (fun n =>
        known (producer_loop n)
        && match up_to n with
           | Now => true
           | Back c _ => told c && known (parent_in p c)
           | Within c _ l _ => told c && known (parent_in p c) && told l && known (parent_in p l)
           end) ns
    end) (instructions p).

Definition stream_certified (c : certificate) (es : engine * stream form) : bool :=
  let (e, s) := es in
  same_control (control_of s) (projection e (fun l => mine s (Begin l)) (specification c))
  && tells (specification c) e s
  && match execute (context_of c es) s (start (context_of c es)) with Some _ => true | None => false end.

Definition certified (c : certificate) : bool :=
  let p := specification c in
  distinct (map fst (instructions p))
  && distinct (root :: map fst (parents root p))
  && distinct (map fst (gatherings root p))
  && distinct (map fst (streams c))
  && forallb (fun x => existsb (fun es => Pos.eqb (fst es) (fst (snd x))) (streams c)) (instructions p)
  && forallb (group_right c) (blocks c)
  && forallb (stream_certified c) (streams c).

(** ** States *)

Section States.
Variable c : certificate.

(** An engine has entered no loop more often than is promised. *)
Definition promised (t : trace) : Prop := forall l b, find l (maxima c) = Some b -> entries l t <= b.

(** An engine on its way through its stream: there is a run that goes on from here. *)
Definition on_its_way (es : engine * stream form) (p : place) : Prop :=
  (exists later, runs (snd es) (later ++ fst p) /\ promised (later ++ fst p)) /\ retires p.

Definition all_retired (x : list place) : retired := concat (map snd x).

(** Engines that meet others agree on what they run: each is on the way that one run of the program prescribes for it. *)
Definition agreed (x : list place) : Prop :=
  exists T, forall es p, In (es, p) (List.combine (streams c) x) -> sociable (snd es) = true ->
  exists later, filter (mine (snd es)) T = steps (fst p) ++ later.

(** Who meets has met equally often. *)
Definition level (x : list place) : Prop :=
  forall es p es' p' bs, In (es, p) (List.combine (streams c) x) -> In (es', p') (List.combine (streams c) x) ->
  (forall b, In b bs -> mine (snd es) (Gather b) = true /\ mine (snd es') (Gather b) = true) ->
  meetings bs (fst p) = meetings bs (fst p').

(** A wait that has passed would pass again. *)
Definition lasting (x : list place) : Prop := forall p, In p x -> waits_pass (gone (fst p)) (all_retired x).

Definition consistent (x : list place) : Prop :=
  Forall2 on_its_way (streams c) x /\ agreed x /\ level x /\ lasting x.

(** ** What a certificate says *)

(** Wherever an engine comes to an instruction, after whatever trip counts, and whatever has retired by then: its waits
    let it issue exactly when the specification does, and its semaphore, if it signals one, holds all signals since it
    was 0. *)
Definition exact : Prop :=
  forall x e s t r i g ws later, consistent x -> In ((e, s), (t, r)) (List.combine (streams c) x) ->
    runs s (later ++ Issued i g ws :: t) -> promised (later ++ Issued i g ws :: t) ->
    (match g with Some s' => sent s' (Issued i g ws :: t) <= most c | None => True end)
    /\ exists ns, needs_in (specification c) i = Some ns
    /\ (waits_pass ws (all_retired x) <-> satisfied (parent_in (specification c)) ns t (all_retired x)).

(** The way of an engine through its stream is one of its ways through the program. *)
Definition structured : Prop :=
  forall e s t, In (e, s) (streams c) -> runs s t ->
  goes (projection e (fun l => mine s (Begin l)) (specification c)) (steps t).

(** A barrier stands at the end of each n-th entry of its loop, and at no other. *)
Definition punctual : Prop :=
  forall e s t, In (e, s) (streams c) -> runs s t -> promised t ->
  (forall later b ss earlier, t = later ++ Met b ss :: earlier ->
    exists es l n, In (b, (es, (l, n))) (gatherings root (specification c)) /\ since b l earlier = n)
  /\ (forall later l earlier b es n, t = later ++ Entered l :: earlier ->
    In (b, (es, (l, n))) (gatherings root (specification c)) -> mine s (Gather b) = true ->
    since b l (Entered l :: earlier) <= n).
End States.

(** ** Soundness *)

Lemma claims_issued C later i g ws earlier :
  claims C (later ++ Issued i g ws :: earlier) ->
  needs C i <> None /\ claim C i ws earlier /\ in_range C g (Issued i g ws :: earlier).
Proof. induction later as [|[l|j g' ws'|b ss] later IH]; cbn [app claims]; tauto. Qed.
Lemma claims_met C later b ss earlier :
  claims C (later ++ Met b ss :: earlier) -> due C b earlier /\ rounds_done C b earlier.
Proof. induction later as [|[l|j g' ws'|b' ss'] later IH]; cbn [app claims]; tauto. Qed.
Lemma claims_entered C later l earlier :
  claims C (later ++ Entered l :: earlier) -> not_late C l (Entered l :: earlier).
Proof. induction later as [|[l'|j g' ws'|b' ss'] later IH]; cbn [app claims]; tauto. Qed.

Lemma stranger_sound g s t r later : stranger_right g s = true -> runs s (later ++ t) -> retires (t, r) -> stranger g r.
Proof.
  intros H (env & y & R & Hy) (rest & E & _). cbn [fst snd] in E. unfold stranger_right, issues_none in H.
  apply andb_true_iff in H as [H1 H2].
  destruct (pattern_of (fun _ => false) g s) as [[[|]|]|] eqn:P; try discriminate.
  destruct (pattern_sound _ g s _ _ _ P R) as (d & Hd & M & _). cbn [history matches] in *. rewrite app_nil_r in Hd.
  destruct (meets_of_sound s _ _ R) as (d' & Hd' & Q). cbn [history] in Hd'. rewrite app_nil_r in Hd'. subst d d'.
  rewrite Hy in M, Q. rewrite issues_app, E, <- app_assoc, those_app in M. apply app_eq_nil in M as [M _].
  split; [exact M|]. intros s' Hs ss I.
  assert (Im : In (Reset ss) (issues t)) by (rewrite E; apply in_or_app; auto).
  destruct (reset_issues _ _ Im) as [b Ib]. assert (Il : In (Met b ss) (later ++ t)) by (apply in_or_app; auto).
  unfold becomes_zero in H2. rewrite forallb_forall in H2. specialize (H2 _ (Q _ _ Il)). cbn [fst snd] in H2.
  unfold has_signal in Hs. apply existsb_exists in Hs as ([i o] & Io & Eo). rewrite forallb_forall in H2.
  specialize (H2 _ Io). cbn [snd] in *. destruct o as [s''|]; [|discriminate]. apply Pos.eqb_eq in Eo as ->.
  now apply eqb_prop in H2.
Qed.

Section Soundness.
Variable c : certificate.
Hypothesis ok : certified c = true.

Lemma certified_stream es : In es (streams c) -> stream_certified c es = true.
Proof. unfold certified in ok. apply andb_true_iff in ok as [_ H]. rewrite forallb_forall in H. auto. Qed.
Lemma certified_group x : In x (blocks c) -> group_right c x = true.
Proof.
  unfold certified in ok. apply andb_true_iff in ok as [H _]. apply andb_true_iff in H as [_ H].
  rewrite forallb_forall in H. auto.
Qed.

Lemma stream_claims es t : In es (streams c) -> runs (snd es) t -> promised c t -> claims (context_of c es) t.
Proof.
  intros I R P. pose proof (certified_stream es I) as H. destruct es as [e s]. unfold stream_certified in H.
  apply andb_true_iff in H as [_ H]. destruct (execute _ s _) as [Ss|] eqn:X; [|discriminate].
  exact (execute_claims (context_of c (e, s)) s Ss t X R P).
Qed.

Lemma issuer_sound g p es t r : In (g, p) (blocks c) -> In es (streams c) -> issues_none g (snd es) = false ->
  issuer_right g p (snd es) = true -> on_its_way c es (t, r) -> in_order g (before_cut p t) r.
Proof.
  intros Ig Ie N H [(later & R & P) Q]. cbn [fst] in *. pose proof (certified_group _ Ig) as G. unfold group_right in G.
  apply andb_true_iff in G as [G _]. pose proof (stream_claims es _ Ie R P) as K.
  unfold issuer_right in H. apply andb_true_iff in H as [H _]. apply andb_true_iff in H as [H1 H2].
  destruct R as (env & y & R & Hy). destruct (pattern_of (cut p) g (snd es)) as [q|] eqn:Pq; [|discriminate].
  destruct (pattern_sound _ g (snd es) _ _ _ Pq R) as (d & Hd & M). cbn [history] in Hd. rewrite app_nil_r in Hd.
  destruct (meets_of_sound (snd es) _ _ R) as (d' & Hd' & Q'). cbn [history] in Hd'. rewrite app_nil_r in Hd'. subst d d'.
  rewrite Hy in M, Q'. destruct (whole_round _ _ _ _ H1 M) as (n & Nn & W).
  apply (issuer_in_order g p) with (later := later) (n := n); auto.
  - destruct g as [|x g]; [discriminate|simpl; lia].
  - intros b ss I s Hs. assert (Il : In (Met b ss) (later ++ t)) by (apply in_or_app; auto).
    unfold becomes_zero in H2. rewrite forallb_forall in H2. specialize (H2 _ (Q' _ _ Il)). cbn [fst snd] in H2.
    unfold has_signal in Hs. apply existsb_exists in Hs as ([i o] & Io & Eo). rewrite forallb_forall in H2.
    specialize (H2 _ Io). cbn [snd] in *. destruct o as [s''|]; [|discriminate]. apply Pos.eqb_eq in Eo as ->.
    now apply eqb_prop in H2.
  - intros d b ss t' -> k F. rewrite app_assoc in K. destruct (claims_met _ _ _ _ _ K) as [_ Rd].
    assert (Io : In (g, p) (own (context_of c es))).
    { destruct es as [e s]. cbn [context_of own snd] in *. apply filter_In. split; [exact Ig|]. cbn [fst]. now rewrite N. }
    specialize (Rd g p k Io F). destruct g as [|[i a] g]; [exact I|]. split; [|exact Rd].
    destruct (snd p); [discriminate|]. now apply Z.eqb_eq in G.
Qed.

Lemma in_one_sound x g p es q : consistent c x -> In (g, p) (blocks c) -> In (es, q) (List.combine (streams c) x) ->
  takes_part (snd es) p = true -> in_order g (before_cut p (fst q)) (all_retired x).
Proof.
  intros (Ways & (T & Agree) & Level & _) Ig Iq Tp. pose proof (certified_group _ Ig) as G. unfold group_right in G.
  apply andb_true_iff in G as [G O].
  assert (Far : forall es' q', In (es', q') (List.combine (streams c) x) -> takes_part (snd es') p = true ->
    before_cut p (fst q') = before_cut p (fst q)).
  { intros es' q' I' Tp'. destruct (snd p) as [|cut0 cuts] eqn:Es.
    - assert (Z : forall t, before_cut p t = 0) by (intros t; apply base_uncut; unfold cut; rewrite Es;
        clear; induction t as [|[| |] t IH]; cbn [uncut find]; auto). now rewrite !Z.
    - destruct (Agree _ _ Iq (takes_part_sociable _ _ Tp ltac:(congruence))) as [a A].
      destruct (Agree _ _ I' (takes_part_sociable _ _ Tp' ltac:(congruence))) as [a' A'].
      destruct (mine_steps_agree p _ _ T _ _ _ _ Tp' Tp ltac:(congruence) A' A) as (b & b' & E).
      apply (same_cut p _ _ _ _ E). apply (Level es' q' es q); auto. intros b0 I0. unfold takes_part in Tp, Tp'. rewrite Es in *.
      apply andb_true_iff in Tp as [Tp _], Tp' as [Tp' _]. rewrite forallb_forall in Tp, Tp'.
      apply in_map_iff in I0 as (y & <- & I0). split; [apply Tp'|apply Tp]; exact I0. }
  assert (Here : forall es' q', In (es', q') (List.combine (streams c) x) -> issues_none g (snd es') = false ->
    issuer_right g p (snd es') = true -> on_its_way c es' q' -> in_order g (before_cut p (fst q)) (snd q')).
  { intros es' [t' r'] I' N' R' W'. rewrite <- (Far _ _ I') by (unfold issuer_right in R'; now apply andb_true_iff in R').
    apply in_combine_l in I'. apply (issuer_sound g p es'); auto. }
  assert (some : (0 < length g)%nat) by (destruct g; [discriminate|simpl; lia]).
  clear Far Agree Level Tp Iq es. unfold all_retired.
  assert (Out : forall ss y, Forall2 (on_its_way c) ss y -> forallb (fun es => stranger_right g (snd es)) ss = true ->
    stranger g (concat (map snd y))).
  { intros ss y W. induction W as [|es [t r] ss y [(later & R & _) Q] W IH]; cbn [forallb map concat]; intros H.
    - split; [reflexivity|]. intros s _ ss [].
    - apply andb_true_iff in H as [H1 H2]. apply stranger_app; [|auto]. exact (stranger_sound g _ t r later H1 R Q). }
  revert O Here. induction Ways as [|[e s] [t r] ss y W Ways IH]; intros O Here; cbn [in_one] in O; [discriminate|].
  cbn [map concat snd]. destruct (issues_none g s) eqn:N.
  - apply andb_true_iff in O as [O1 O2]. destruct W as [(later & R & _) Q].
    assert (S : stranger g r) by exact (stranger_sound g s t r later O1 R Q).
    assert (X : in_order g (before_cut p (fst q)) (concat (map snd y))).
    { apply IH; [exact O2|]. intros es' q' I'. apply Here. now right. }
    rewrite <- (app_nil_r (concat (map snd y))).
    apply (strangers_around g some r (concat (map snd y)) []); auto. split; [reflexivity|]. intros s' _ ss' [].
  - apply andb_true_iff in O as [O1 O2].
    apply (strangers_around g some [] r (concat (map snd y))); [split; [reflexivity|]; intros s' _ ss' []|exact (Out _ _ Ways O2)|].
    exact (Here (e, s) (t, r) (or_introl eq_refl) N O1 W).
Qed.

Lemma place_issues x es q : consistent c x -> In (es, q) (List.combine (streams c) x) -> In es (streams c) /\ In q x.
Proof. intros _ I. split; [exact (in_combine_l _ _ _ _ I)|exact (in_combine_r _ _ _ _ I)]. Qed.

Theorem certified_structured : structured c.
Proof.
  intros e s t I (env & y & R & <-). pose proof (certified_stream _ I) as H. unfold stream_certified in H.
  apply andb_true_iff in H as [H _]. apply andb_true_iff in H as [H _]. apply same_control_sound in H.
  destruct (control_sound s _ _ R) as (d & Hd & G). cbn [history] in Hd. rewrite app_nil_r in Hd. subst d. now rewrite <- H.
Qed.

Theorem certified_punctual : punctual c.
Proof.
  intros e s t I R P. pose proof (stream_claims (e, s) t I R P) as K. split.
  - intros later b ss earlier ->. destruct (claims_met _ _ _ _ _ K) as [(l & n & Id & E) _]. cbn [context_of dues] in Id.
    apply in_map_iff in Id as ([b' [es [l' n']]] & Ex & Ix). cbn [fst snd] in Ex. injection Ex as -> -> ->.
    apply filter_In in Ix as [Ix _]. eauto.
  - intros later l earlier b es n -> Ig M. apply (claims_entered _ _ _ _ K). cbn [context_of dues].
    apply in_map_iff. exists (b, (es, (l, n))). split; [reflexivity|]. apply filter_In. now split.
Qed.

Theorem certified_exact : exact c.
Proof.
  intros x e s t r i g ws later Cx Ip R P. destruct (place_issues x _ _ Cx Ip) as [Is Iq].
  pose proof (stream_claims (e, s) _ Is R P) as K. destruct (claims_issued _ _ _ _ _ _ K) as (N & Cl & Rg).
  unfold claim, in_range in *. cbn [context_of needs parent groups limit] in *. split; [exact Rg|].
  destruct (needs_in (specification c) i) as [ns|] eqn:Ns; [|congruence]. exists ns. split; [reflexivity|].
  apply (Cl ns eq_refl).
  - apply Forall_forall. intros [gr p] Ig. apply filter_In in Ig as [Ig Tp]. cbn [fst snd] in *.
    exact (in_one_sound x gr p (e, s) (t, r) Cx Ig Ip Tp).
  - destruct Cx as (_ & _ & _ & L). exact (L (t, r) Iq).
Qed.

Theorem certified_sound : structured c /\ punctual c /\ exact c.
Proof. exact (conj certified_structured (conj certified_punctual certified_exact)). Qed.
End Soundness.
