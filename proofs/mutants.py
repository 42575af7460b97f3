"""Builds the proofs with one thing wrong at a time, in the model or in what is emitted; each must fail in a proof."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROOFS = Path(__file__).parent

# What is wrong; the file; the text there; what takes its place.
MUTANTS = [
    ("the mask is on one iteration early", "Arithmetic", "if b <? a then 1", "if b <=? a then 1"),
    ("thresholds forget the position", "Arithmetic", ":= N * w - (N - K).", ":= N * w."),
    ("words without the guard", "Arithmetic", "(word_mul (N - K) (isGT w 0))", "(N - K)"),
    ("positions count from 0", "Machine", ":= S (index p (", ":= (index p ("),
    (
        "N counts what does not signal",
        "Machine",
        "filter (member g) (instrs",
        "filter (fun i => share P i =? g) (instrs",
    ),
    ("trip counters are not reset", "Machine", "else if parent P c =? l then 0 else", "else"),
    ("the mask reads a monotone counter", "Machine", "then isGT (value (trips r)", "then isGT (value (mono r)"),
    ("the block of the program runs 0 times", "Machine", "if l =? top then 1 else r l", "if l =? top then 0 else r l"),
    ("histories do not shift", "Machine", "=> past r S k' Q end", "=> past r S k Q end"),
    ("one semaphore for all engines of a loop", "Machine", " && (e =? engine_of P i) then", " then"),
    ("the youngest instruction retires first", "Machine", "q e = (i, true) :: b ->", "q e = b ++ [(i, true)] ->"),
    ("what is carried is taken as not carried", "Program", "distance d = 0 ->", "distance d = 1 ->"),
    ("the consumer may come last", "Program", "In B (children rest)", "In B (children pre)"),
    ("a mask reads a trip counter that is left out", "Bisimulation", "l -> keeps_trip l = true.", "l -> True."),
    (
        "an instruction issues while it has waits left",
        "Micro",
        "= []) ->\n    micro_step",
        "= u_code u e) ->\n    micro_step",
    ),
    ("a wait in code is one short", "Micro", "threshold_in (st e) <= reached", "threshold_in (st e) <= 1 + reached"),
    ("code forgets the mask", "Micro", "(mask_in g * wait_in g)", "(wait_in g)"),
    (
        "an epoch does not wait for what is in flight",
        "Epochs",
        "e /\\ in_flight m (shared_of (fst x)) e = [].",
        "e /\\ True.",
    ),
    ("an epoch forgets histories", "Epochs", "if resets (epochs k) Q then 0 else past r S j Q", "past r S j Q"),
    ("engines go on where an epoch holds them", "Epochs", "~ held k (shared_of x) n e) -> meet", "True) -> meet"),
    ("with epochs a subtraction goes below 0", "Words", "if restarts then Nat.max v b - b else word_sub", "word_sub"),
    ("the example waits for what comes later", "Example", "2 => [Build_dep P A 0", "2 => [Build_dep C0 A 0"),
    (
        "all of an iteration is owed, not a part",
        "Machine",
        "Nat.min (behind (Z.of_nat (value (trips r) Q)) z) (",
        "id (",
    ),
    ("a history goes on over runs", "Machine", "else if parent P S =? l then value (mono r) Q else", "else"),
    (
        "k iterations back, where this run had fewer",
        "Machine",
        "Nat.min (distance d) (value (trips r)",
        "Nat.min (distance d) (value (mono r)",
    ),
    ("a producer signals all semaphores of its loop", "Machine", "if member g i &&", "if signals P i &&"),
    ("signed counters have the whole range", "Signed", "Prop := fits m half s", "Prop := fits m M s"),
    (
        "a marker stands in front of its producer",
        "Markers",
        "pre ++ X :: mid ++ Instr k :: post",
        "pre ++ Instr k :: mid ++ X :: post",
    ),
    ("an engine's semaphore skips a producer", "Retirement", "(length (filter f (v ++ [p]))", "(length (filter f v)"),
    ("one branch does for the other", "Program", "In B [a; b] -> A <> B ->", "In B [a; b] -> A = A ->"),
    ("what is clamped is reset", "ExampleEpochs", "match clamp d with None => true | _ => false end", "true"),
]


def refusal(file: str, old: str, new: str) -> str | None:
    """Where the build of a mutant fails in a proof; None where it does not."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "proofs"
        shutil.copytree(PROOFS, copy, ignore=shutil.ignore_patterns("checker"))
        source = copy / f"{file}.v"
        text = source.read_text()
        if text.count(old) != 1:
            sys.exit(f"{file}.v has {text.count(old)} times what a mutant changes: {old}")
        source.write_text(text.replace(old, new))
        run = subprocess.run(["make", "-C", str(copy)], capture_output=True, text=True, timeout=300)
    places = [line for line in run.stderr.splitlines() if line.startswith('File "')]
    return places[0].split('"')[1].removeprefix("./") + places[0].split('"')[2].split(", char")[0] if places else None


def main() -> int:
    """The exit code: 1 where a mutant is not refused."""
    missed = 0
    for what, file, old, new in MUTANTS:
        where = refusal(file, old, new)
        missed += where is None
        print(f"{what:45} {'refused: ' + where if where else 'NOT REFUSED'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
