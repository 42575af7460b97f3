(** Engines that agree on what they run have entered a loop equally often, wherever they last met. *)
From Coq Require Import ZArith List Bool Lia PArith.
From Checker Require Import Linear Language States Engines Program.
Import ListNotations.
Local Open Scope Z_scope.

(** Whether a stream comes to all barriers at which the semaphores of a group become 0, and counts its rounds. *)
Definition takes_part (s : stream form) (p : place_of_group) : bool :=
  match snd p with
  | [] => true
  | cuts => forallb (fun cut => mine s (Gather (fst cut))) cuts
            && Bool.eqb (mine s (Begin (fst p))) (negb (Pos.eqb (fst p) root))
  end.

(** Whether a stream comes to any barrier. *)
Definition sociable (s : stream form) : bool :=
  existsb (fun x => match x with Gather _ => true | _ => false end) (leaves (control_of s)).

Lemma takes_part_sociable s p : takes_part s p = true -> snd p <> [] -> sociable s = true.
Proof.
  unfold takes_part. destruct (snd p) as [|[b d] cuts]; [congruence|]. intros H _. apply andb_true_iff in H as [H _].
  cbn [forallb fst] in H. apply andb_true_iff in H as [H _]. unfold mine in H. apply existsb_exists in H as (x & I & E).
  apply same_step_sound in E as <-. apply existsb_exists. exists (Gather b). now split.
Qed.

Section Agreement.
Variable p : place_of_group.

Definition tally (n : Z * Z) (x : step) : Z * Z :=
  match x with
  | Begin l => (if Pos.eqb l (fst p) then fst n + 1 else fst n, snd n)
  | Gather b => match find b (snd p) with Some d => (fst n, fst n + d) | None => n end
  | Do _ => n
  end.
Definition relevant (x : step) : bool :=
  match x with Begin l => Pos.eqb l (fst p) | Gather b => cut p b | Do _ => false end.

Lemma tally_steps t : fold_left tally (steps t) (entries (fst p) [], 0) = (entries (fst p) t, before_cut p t).
Proof.
  unfold before_cut. induction t as [|[l|i g ws|b ss] t IH]; cbn [steps base]; [reflexivity| | |];
    rewrite fold_left_app, IH; cbn [fold_left tally fst snd entries].
  - destruct (Pos.eqb l (fst p)); f_equal; lia.
  - reflexivity.
  - destruct (find b (snd p)); reflexivity.
Qed.

Lemma tally_relevant xs n : fold_left tally (filter relevant xs) n = fold_left tally xs n.
Proof.
  revert n; induction xs as [|x xs IH]; intros n; [reflexivity|]. cbn [filter fold_left].
  destruct (relevant x) eqn:R; cbn [fold_left]; rewrite IH; [reflexivity|]. f_equal.
  destruct x as [l|i|b]; cbn [relevant tally] in *; [now rewrite R; destruct n|reflexivity|].
  unfold cut in R. destruct (find b (snd p)); [discriminate|reflexivity].
Qed.

Definition gathers (xs : list step) : Z := fold_right (fun x n => match x with Gather _ => 1 | _ => 0 end + n) 0 xs.

Lemma gathers_app u v : gathers (u ++ v) = gathers u + gathers v.
Proof. unfold gathers. induction u as [|x u IH]; cbn [app fold_right]; [lia|]. rewrite IH. lia. Qed.
Lemma gathers_none u : 0 <= gathers u.
Proof. induction u as [|[| |] u IH]; unfold gathers in *; cbn [fold_right]; lia. Qed.

Lemma cut_among b : cut p b = among b (map fst (snd p)).
Proof.
  unfold cut, among. induction (snd p) as [|[b' d] cuts IH]; cbn [find map fst existsb]; [reflexivity|].
  rewrite Pos.eqb_sym. destruct (Pos.eqb b' b) eqn:E; rewrite Pos.eqb_sym, E; [reflexivity|exact IH].
Qed.

Lemma gathers_steps t : gathers (filter relevant (steps t)) = meetings (map fst (snd p)) t.
Proof.
  induction t as [|[l|i g ws|b ss] t IH]; cbn [steps meetings]; [reflexivity| | |];
    rewrite filter_app, gathers_app, IH; cbn [filter relevant].
  - destruct (Pos.eqb l (fst p)); cbn [gathers fold_right]; lia.
  - cbn [gathers fold_right]. lia.
  - rewrite cut_among. destruct (among b (map fst (snd p))); cbn [gathers fold_right]; lia.
Qed.

(** What begins between two cuts makes no difference to what was counted at the last one. *)
Lemma tally_no_gather z n : gathers z = 0 -> snd (fold_left tally z n) = snd n.
Proof.
  revert n; induction z as [|x z IH]; intros n E; [reflexivity|]. pose proof (gathers_none z) as P.
  unfold gathers in E, P; cbn [fold_right] in E. fold (gathers z) in E, P. cbn [fold_left].
  destruct x as [l|i|b]; [| |lia]; rewrite IH by lia; reflexivity.
Qed.

Lemma same_cut t t' a a' : filter relevant (steps t) ++ a = filter relevant (steps t') ++ a' ->
  meetings (map fst (snd p)) t = meetings (map fst (snd p)) t' -> before_cut p t = before_cut p t'.
Proof.
  intros E M. rewrite <- !gathers_steps in M.
  assert (X : forall t, before_cut p t = snd (fold_left tally (filter relevant (steps t)) (entries (fst p) [], 0)))
    by (intros; now rewrite tally_relevant, tally_steps).
  rewrite !X. clear X. revert E M. generalize (filter relevant (steps t)), (filter relevant (steps t')). intros u v E M.
  apply app_eq_app in E as (z & [[-> _]|[-> _]]); rewrite gathers_app in M; rewrite fold_left_app, (tally_no_gather z) by lia;
    reflexivity.
Qed.
End Agreement.

Lemma mine_steps_agree p s s' T t t' a a' :
  takes_part s p = true -> takes_part s' p = true -> snd p <> [] ->
  filter (mine s) T = steps t ++ a -> filter (mine s') T = steps t' ++ a' ->
  exists b b', filter (relevant p) (steps t) ++ b = filter (relevant p) (steps t') ++ b'.
Proof.
  intros H H' N E E'. exists (filter (relevant p) a), (filter (relevant p) a'). rewrite <- !filter_app, <- E, <- E'.
  assert (Same : forall x, relevant p x = true -> mine s x = mine s' x).
  { unfold takes_part in H, H'. destruct (snd p) as [|cut0 cuts] eqn:Es; [congruence|]. rewrite <- Es in *. clear N.
    apply andb_true_iff in H as [H1 H2], H' as [H1' H2']. apply eqb_prop in H2, H2'.
    intros [l|i|b] R; cbn [relevant] in R; [|discriminate|].
    - apply Pos.eqb_eq in R as ->. congruence.
    - rewrite cut_among in R. unfold among in R. apply existsb_exists in R as (b' & I & Eb). apply Pos.eqb_eq in Eb as <-.
      apply in_map_iff in I as (x & <- & I). rewrite forallb_forall in H1, H1'. now rewrite (H1 _ I), (H1' _ I). }
  clear - Same. induction T as [|x T IH]; [reflexivity|]. cbn [filter].
  destruct (relevant p x) eqn:R.
  - rewrite (Same x R). destruct (mine s' x); cbn [filter]; rewrite ?R; congruence.
  - destruct (mine s x), (mine s' x); cbn [filter]; rewrite ?R; exact IH.
Qed.
