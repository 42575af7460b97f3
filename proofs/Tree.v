(** Programs as syntax trees: blocks of instructions, loops and conditionals, one for all engines. What an engine runs
    is the projection of the tree, with the loops and conditionals of all and the instructions of its own.
    [tree_well_formed]: where identifiers are unique, the tables that a tree stands for are well formed, so every theorem
    holds of trees. The program is a block like any other; its name is [top]. *)
From Coq Require Import Arith Lia List Bool.
Import ListNotations.
From Mpkc Require Import Program.

Inductive tree :=
  | TInstr (e : engine) (i : instr)
  | TLoop (l : loop) (b : list tree)
  | TIf (a b : loop) (then_ else_ : list tree).

(** ** Projection *)
Definition project1 (e : engine) (t : tree) : list stmt := match t with
  | TInstr e' i => if e' =? e then [Instr i] else []
  | TLoop l _ => [Loop l]
  | TIf a b _ _ => [If a b] end.
Definition project (e : engine) (b : list tree) : list stmt := flat_map (project1 e) b.

(** Every block with its name, the name of the block around it, and its depth. *)
Record block := Block { name : loop; around : loop; level : nat; code : list tree }.
Fixpoint blocks1 (up : loop) (n : nat) (t : tree) : list block := match t with
  | TInstr _ _ => []
  | TLoop l b => Block l up n b :: flat_map (blocks1 l (S n)) b
  | TIf x y a b => Block x up n a :: flat_map (blocks1 x (S n)) a ++ Block y up n b :: flat_map (blocks1 y (S n)) b end.
Definition blocks (p : list tree) : list block := Block top top 0 p :: flat_map (blocks1 top 1) p.

Definition own (b : list tree) : list (engine * instr) :=
  flat_map (fun t => match t with TInstr e i => [(e, i)] | _ => [] end) b.
(** Every instruction with its engine and the name of its block. *)
Definition placed (p : list tree) : list (instr * (engine * loop)) :=
  flat_map (fun k => map (fun x => (snd x, (fst x, name k))) (own (code k))) (blocks p).

(** The blocks that a block holds directly. *)
Definition inner1 (t : tree) : list (loop * list tree) := match t with
  | TInstr _ _ => [] | TLoop l b => [(l, b)] | TIf x y a b => [(x, a); (y, b)] end.

(** UniqueLoopIds and UniqueInstrIds: no two blocks, no two blocks in one, and no two instructions have one name. *)
Record unique (p : list tree) : Prop := {
  unique_loops : NoDup (map name (blocks p));
  unique_children : forall k, In k (blocks p) -> NoDup (flat_map (fun t => map fst (inner1 t)) (code k));
  unique_instrs : NoDup (map fst (placed p)) }.

(** ** Tables *)
Definition block_of (p : list tree) (l : loop) : option block := find (fun k => name k =? l) (blocks p).
Definition place_of (p : list tree) (i : instr) : option (instr * (engine * loop)) := find (fun x => fst x =? i) (placed p).
(** An identifier that the tree does not have stands for an empty loop of the program's block. *)
Definition tables (p : list tree) (sig : instr -> bool) (sh : instr -> nat) : program := {|
  body := fun e l => match block_of p l with Some k => project e (code k) | None => [] end;
  parent := fun l => match block_of p l with Some k => around k | None => top end;
  depth := fun l => match block_of p l with Some k => level k | None => 1 end;
  loop_of := fun i => match place_of p i with Some x => snd (snd x) | None => top end;
  engine_of := fun i => match place_of p i with Some x => fst (snd x) | None => 0 end;
  signals := sig;
  share := sh |}.

Section Unique.
Variable p : list tree.
Hypothesis U : unique p.

Lemma find_unique : forall (A : Type) (key : A -> nat) l x, NoDup (map key l) -> In x l ->
  find (fun y => key y =? key x) l = Some x.
Proof.
  induction l as [|y l IH]; simpl; [tauto|]. intros x D [->|I]; inversion D; subst.
  - rewrite Nat.eqb_refl. reflexivity.
  - destruct (Nat.eqb_spec (key y) (key x)) as [E|E]; [|auto]. exfalso. apply H1. rewrite E. apply in_map. assumption.
Qed.
Lemma block_found : forall k, In k (blocks p) -> block_of p (name k) = Some k.
Proof. intros. apply (find_unique block name); [apply (unique_loops _ U) | assumption]. Qed.
Lemma block_in : forall l k, block_of p l = Some k -> In k (blocks p) /\ name k = l.
Proof. intros l k H. apply find_some in H. destruct H as [A B]. apply Nat.eqb_eq in B. auto. Qed.
Lemma top_found : block_of p top = Some (Block top top 0 p).
Proof. reflexivity. Qed.

Lemma children_inner : forall e b, children (project e b) = flat_map (fun t => map fst (inner1 t)) b.
Proof.
  induction b as [|t b IH]; [reflexivity|]. unfold children, project in *. simpl. rewrite flat_map_app, IH. f_equal.
  destruct t; simpl; try reflexivity. destruct (e0 =? e); reflexivity.
Qed.
Lemma inner_listed : forall t c b up n, In (c, b) (inner1 t) ->
  In (Block c up n b) (blocks1 up n t) /\ incl (flat_map (blocks1 c (S n)) b) (blocks1 up n t).
Proof.
  intros [e i|l b0|x y a b0] c b up n; simpl; [tauto| |].
  - intros [E|[]]. injection E as <- <-. split; [auto | intros k K; right; assumption].
  - intros [E|[E|[]]]; injection E as <- <-; (split; [|intros k K]).
    + auto.
    + right. apply in_or_app. auto.
    + right. apply in_or_app. right. left. reflexivity.
    + right. apply in_or_app. right. right. assumption.
Qed.

(** every listed block has what it holds listed, one level deeper *)
Definition closed (ks : list block) := forall k, In k ks ->
  incl (flat_map (blocks1 (name k) (S (level k))) (code k)) ks.
Fixpoint size (t : tree) : nat := match t with
  | TInstr _ _ => 1 | TLoop _ b => S (list_sum (map size b))
  | TIf _ _ a b => S (list_sum (map size a) + list_sum (map size b)) end.
Lemma blocks1_closed : forall s t up n, size t <= s -> closed (blocks1 up n t).
Proof.
  assert (L : forall s b up n, (forall t up n, size t <= s -> closed (blocks1 up n t)) -> list_sum (map size b) <= s ->
    closed (flat_map (blocks1 up n) b)).
  { intros s b up n IH Hs k Hk. apply in_flat_map in Hk. destruct Hk as (t & Ht & Hk).
    assert (St : size t <= s).
    { clear - Hs Ht. induction b; simpl in *; [tauto|]. destruct Ht as [->|Ht]; [lia | apply IHb; [lia | assumption]]. }
    intros x Hx. apply in_flat_map. exists t. split; [assumption | exact (IH t up n St k Hk x Hx)]. }
  induction s as [|s IH]; intros [e i|l b|x y a b] up n Hs k Hk; simpl in *; try lia; try tauto.
  - destruct Hk as [<-|Hk]; intros z Hz; right; [exact Hz|]. eapply (L s b); eauto. lia.
  - destruct Hk as [<-|Hk]; [intros z Hz; right; apply in_or_app; left; exact Hz|].
    apply in_app_or in Hk. destruct Hk as [Hk|[<-|Hk]]; intros z Hz; right; apply in_or_app.
    + left. eapply (L s a); eauto. lia.
    + right. right. exact Hz.
    + right. right. eapply (L s b); eauto. lia.
Qed.
Lemma blocks_closed : closed (blocks p).
Proof.
  intros k [<-|Hk] x Hx; right; [exact Hx|]. apply in_flat_map in Hk. destruct Hk as (t & Ht & Hk).
  apply in_flat_map. exists t. split; [assumption | exact (blocks1_closed (size t) t top 1 (le_n _) k Hk x Hx)].
Qed.

Lemma child_found : forall k c, In k (blocks p) -> In c (flat_map (fun t => map fst (inner1 t)) (code k)) ->
  exists b, block_of p c = Some (Block c (name k) (S (level k)) b).
Proof.
  intros k c Hk Hc. apply in_flat_map in Hc. destruct Hc as (t & Ht & Hc). apply in_map_iff in Hc.
  destruct Hc as ([c' b] & E & Hc). simpl in E. subst c'. exists b.
  apply (block_found (Block c (name k) (S (level k)) b)). apply (blocks_closed k Hk).
  apply in_flat_map. exists t. split; [assumption | apply inner_listed; assumption].
Qed.

(** every listed block but the program's is held by a listed one, one level up *)
Lemma blocks1_around : forall s t up n k, size t <= s -> In k (blocks1 up n t) ->
  (around k = up /\ level k = n) \/
  exists k', In k' (blocks1 up n t) /\ around k = name k' /\ level k = S (level k').
Proof.
  assert (L : forall s b l n ks k, (forall t up n k, size t <= s -> In k (blocks1 up n t) ->
      (around k = up /\ level k = n) \/ exists k', In k' (blocks1 up n t) /\ around k = name k' /\ level k = S (level k')) ->
    list_sum (map size b) <= s -> incl (flat_map (blocks1 l (S n)) b) ks ->
    (exists k', In k' ks /\ name k' = l /\ level k' = n) -> In k (flat_map (blocks1 l (S n)) b) ->
    exists k', In k' ks /\ around k = name k' /\ level k = S (level k')).
  { intros s b l n ks k IH Hs Hi (k0 & K1 & K2 & K3) Hk. apply in_flat_map in Hk. destruct Hk as (t & Ht & Hk).
    assert (St : size t <= s).
    { clear - Hs Ht. induction b; simpl in *; [tauto|]. destruct Ht as [->|Ht]; [lia | apply IHb; [lia | assumption]]. }
    destruct (IH t _ _ k St Hk) as [[A B]|(k' & A & B & C)].
    - exists k0. split; [assumption|]. split; congruence.
    - exists k'. split; [apply Hi; apply in_flat_map; eauto | auto]. }
  induction s as [|s IH]; intros [e i|l b|x y a b] up n k Hs Hk; simpl in *; try lia; try tauto.
  - destruct Hk as [<-|Hk]; [auto|]. right. apply (L s b l n (Block l up n b :: flat_map (blocks1 l (S n)) b)); auto;
    [lia | intros z Hz; right; exact Hz|].
    eexists. split; [left; reflexivity | auto].
  - destruct Hk as [<-|Hk]; [auto|]. apply in_app_or in Hk. destruct Hk as [Hk|[<-|Hk]]; [| auto |]; right.
    + apply (L s a x n (Block x up n a :: flat_map (blocks1 x (S n)) a ++ Block y up n b ::
      flat_map (blocks1 y (S n)) b)); auto; [lia | intros z Hz; right; apply in_or_app; auto|].
      eexists. split; [left; reflexivity | auto].
    + apply (L s b y n (Block x up n a :: flat_map (blocks1 x (S n)) a ++ Block y up n b ::
      flat_map (blocks1 y (S n)) b)); auto; [lia | intros z Hz; right; apply in_or_app; right; right; exact Hz|].
      exists (Block y up n b). split; [right; apply in_or_app; right; left; reflexivity | auto].
Qed.
Lemma block_around : forall k, In k (blocks p) -> name k <> top ->
  exists k', In k' (blocks p) /\ around k = name k' /\ level k = S (level k').
Proof.
  intros k [<-|Hk] NT; [contradiction NT; reflexivity|]. apply in_flat_map in Hk. destruct Hk as (t & Ht & Hk).
  destruct (blocks1_around (size t) t top 1 k (le_n _) Hk) as [[A B]|(k' & A & B & C)].
  - exists (Block top top 0 p). split; [left; reflexivity | auto].
  - exists k'. split; [right; apply in_flat_map; eauto | auto].
Qed.

Lemma own_in : forall e i b, In (Instr i) (project e b) -> In (e, i) (own b).
Proof.
  intros e i b H. apply in_flat_map in H. destruct H as (t & Ht & H). apply in_flat_map. exists t. split; [assumption|].
  destruct t as [e' j|l c|x y c d]; simpl in H |- *; [|destruct H; [discriminate | assumption]..].
  destruct (Nat.eqb_spec e' e) as [->|]; [|tauto]. destruct H as [H|[]]. injection H as ->. auto.
Qed.
Lemma instrs_own : forall e b, instrs (project e b) = map snd (filter (fun x => fst x =? e) (own b)).
Proof.
  induction b as [|t b IH]; [reflexivity|]. unfold instrs, project, own in *. simpl.
  rewrite flat_map_app, filter_app, map_app, IH. f_equal. destruct t as [e' i|l c|x y c d]; simpl; try reflexivity.
  destruct (e' =? e); reflexivity.
Qed.
Lemma nodup_app : forall (A : Type) (l l' : list A), NoDup (l ++ l') -> NoDup l /\ NoDup l'.
Proof.
  induction l as [|x l IH]; simpl; intros l' D; [split; [constructor | assumption]|]. inversion D; subst.
  destruct (IH _ H2). split; [constructor; [intro; apply H1; apply in_or_app; auto | assumption] | assumption].
Qed.
Lemma nodup_part : forall (A B C : Type) (f : A -> list B) (g : B -> C) l x, NoDup (map g (flat_map f l)) -> In x l ->
  NoDup (map g (f x)).
Proof.
  induction l as [|y l IH]; simpl; intros x D I; [tauto|]. rewrite map_app in D. apply nodup_app in D.
  destruct D as [D1 D2]. destruct I as [->|I]; auto.
Qed.
Lemma nodup_filter : forall (A B : Type) (g : A -> B) f l, NoDup (map g l) -> NoDup (map g (filter f l)).
Proof.
  induction l as [|x l IH]; simpl; intro D; [constructor|]. inversion D; subst. destruct (f x); simpl; [|auto].
  constructor; [|auto]. intro I. apply H1. apply in_map_iff in I. destruct I as (y & <- & I). apply in_map.
  apply filter_In in I. tauto.
Qed.

Theorem tree_well_formed : forall sig sh, well_formed (tables p sig sh).
Proof.
  intros sig sh. constructor; cbn [tables body parent depth loop_of engine_of].
  - reflexivity.
  - intros l NT. destruct (block_of p l) as [k|] eqn:E; [|reflexivity].
    apply block_in in E. destruct E as [Hk <-]. destruct (block_around _ Hk NT) as (k' & A & -> & ->).
    rewrite (block_found _ A). reflexivity.
  - intros e l c Hc. destruct (block_of p l) as [k|] eqn:E; [|contradiction].
    apply block_in in E. destruct E as [Hk <-]. rewrite children_inner in Hc.
    destruct (child_found _ _ Hk Hc) as [b Eb]. split; [|rewrite Eb; reflexivity].
    intros ->. rewrite top_found in Eb. discriminate.
  - intros e l i Hi. destruct (block_of p l) as [k|] eqn:E; [|contradiction].
    apply block_in in E. destruct E as [Hk <-]. apply own_in in Hi.
    assert (IP : In (i, (e, name k)) (placed p)).
    { apply in_flat_map. exists k. split; [assumption|]. apply in_map_iff. exists (e, i). auto. }
    assert (F := find_unique _ fst _ _ (unique_instrs _ U) IP). unfold place_of. simpl in F. rewrite F. auto.
  - intros e l. destruct (block_of p l) as [k|] eqn:E; [|constructor].
    apply block_in in E. destruct E as [Hk _]. rewrite instrs_own. apply nodup_filter.
    assert (D := nodup_part _ _ _ _ fst _ k (unique_instrs _ U) Hk). cbv beta in D. rewrite map_map in D. exact D.
  - intros e l. destruct (block_of p l) as [k|] eqn:E; [|constructor].
    apply block_in in E. destruct E as [Hk _]. rewrite children_inner. exact (unique_children _ U _ Hk).
Qed.
End Unique.
