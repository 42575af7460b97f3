"""Certificates as Coq reads them (proofs/checker/Certificate.v)."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from mpkc.certificate.forms import Form
from mpkc.certificate.specification import barrier_name, engine_name, label_name, loop_name, semaphore_name
from mpkc.certificate.statements import (
    Annotation,
    Assume,
    Block,
    Choice,
    Enter,
    Expression,
    Ghost,
    Group,
    Issue,
    Let,
    Loop,
    Meet,
    Model,
    Statement,
    Stream,
    Wait,
)

WITH_NUMBER = {"Constant", "Unknown"}  # and nothing else
NUMBER_FIRST = {"Add", "Sub", "Mul", "Truncate", "Signed"}
NUMBER_LAST = {"Divide", "Advance"}
COMPARISONS = {"GeU", "GtU", "Eq", "Ne"}


def printed(model: Model, name: str) -> str:
    """The text of a certificate for the program `name`, which coqc accepts if it is right."""
    return "\n".join(_Printer(model).file(name)) + "\n"


class _Printer:
    def __init__(self, model: Model):
        self.model = model
        self.loops = {number: loop_name(name) for name, number in model.loops.items()}
        self.labels = {number: label_name(name) for name, number in model.labels.items()}
        self.semaphores = {number: semaphore_name(name) for name, number in model.semaphores.items()}

    def file(self, name: str) -> Iterator[str]:
        model = self.model
        yield f"(** Certificate: the streams of {name} wait exactly as its dependencies ask.\n"
        yield "    Written by mpkc verify --coq; checked by coqc, with -Q to proofs/checker as Checker. *)"
        yield "From Coq Require Import ZArith List."
        yield "From Checker Require Import Linear Language States Program Certificate Steps."
        yield "Import ListNotations.\nLocal Open Scope Z_scope.\n"
        for kind, names in (
            ("engine", {number: engine_name(name) for name, number in model.engines.items()}),
            ("loop", self.loops),
            ("label", self.labels),
            ("semaphore", self.semaphores),
            ("barrier", {barrier: barrier_name(barrier) for barrier in model.gatherings}),
        ):
            for number, written in names.items():
                yield f"Definition {written} : {kind} := {number}%positive."
        yield "\nDefinition specified : program :="
        yield f"  {model.tree.replace(chr(10), chr(10) + '  ')}."
        for stream in model.streams:
            yield f"\nDefinition {_stream_name(stream)} : stream form :="
            yield from self.block(stream.body, "  ", ".")
        yield "\nDefinition certificate_of : certificate := Certificate"
        yield "  specified"
        yield f"  {_list(f'({engine_name(s.engine)}, {_stream_name(s)})' for s in model.streams)}"
        yield f"  {_list(f'({self.loops[loop]}, {most})' for loop, most in model.maxima.items())}"
        yield f"  {model.most}"
        yield f"  {_list(map(self.group, model.groups))}"
        yield "  " + _list(f"({engine_name(s.engine)}, {self.counters(s.ghosts)})" for s in model.streams) + "."
        yield "\nLemma checked : certified certificate_of = true."
        yield "Proof. vm_compute. reflexivity. Qed.\n"
        yield "Theorem waits_are_exact :"
        yield "  structured certificate_of /\\ punctual certificate_of /\\ exact certificate_of."
        yield "Proof. exact (certified_sound certificate_of checked). Qed.\n"
        yield "Theorem bisimilar : bisimulation certificate_of (fun x y => x = y /\\ consistent certificate_of x)."
        yield "Proof. exact (certified_bisimilar certificate_of checked). Qed."

    def group(self, group: Group) -> str:
        members = _list(f"({self.labels[i]}, {self.signal(s)})" for i, s in group.members)
        return f"({members}, ({self.loops[group.loop]}, {self.cuts(group.cuts)}))"

    def cuts(self, cuts: Iterable[tuple[int, int]]) -> str:
        return _list(f"({barrier_name(barrier)}, {more})" for barrier, more in cuts)

    def signal(self, semaphore: int | None) -> str:
        return "None" if semaphore is None else f"Some {self.semaphores[semaphore]}"

    def counters(self, ghosts: Mapping[int, Ghost]) -> str:
        return _list(f"({x}%positive, {self.ghost(ghost)})" for x, ghost in ghosts.items())

    def ghost(self, ghost: Ghost) -> str:
        match ghost.kind, ghost.of:
            case "Sent", (semaphore,):
                return f"Sent {self.semaphores[semaphore]}"
            case "Past", (carrier, k, loop):
                return f"Past {self.loops[carrier]} {k}%nat {self.loops[loop]}"
            case "Issues", (label,):
                return f"Issues {self.labels[label]}"
            case "Base", (loop, *cuts):
                return f"Base {self.cuts(zip(cuts[::2], cuts[1::2], strict=True))} {self.loops[loop]}"
            case kind, (loop, *_):
                return f"{kind} {self.loops[loop]}"
            case _:
                raise AssertionError(ghost)

    def block(self, block: Block, indent: str, end: str) -> Iterator[str]:
        if not block:
            yield f"{indent}Skip{end}"
            return
        yield f"{indent}block ["
        parts = _between_barriers(block)
        for part in parts:
            after = "" if part is parts[-1] else ";"
            if len(part) > 1 and len(parts) > 1:
                yield from self.block(part, indent + "  ", after)
            else:
                for statement in part:
                    last = statement is part[-1]
                    yield from self.statement(statement, indent + "  ", after if last else ";")
        yield f"{indent}]{end}"

    def statement(self, statement: Statement, indent: str, end: str) -> Iterator[str]:
        match statement:
            case Let(x, expression):
                yield f"{indent}Let {x} ({_expression(expression)}){end}"
            case Wait(semaphore, threshold):
                yield f"{indent}Wait {self.semaphores[semaphore]} {threshold}{end}"
            case Issue(label, signal):
                yield f"{indent}Issue {self.labels[label]} ({self.signal(signal)}){end}"
            case Enter(loop):
                yield f"{indent}Enter {self.loops[loop]}{end}"
            case Assume(x, taken):
                yield f"{indent}Assume {x} {'true' if taken else 'false'}{end}"
            case Meet(barrier, zeroes):
                yield f"{indent}Meet {barrier_name(barrier)} {_list(self.semaphores[s] for s in zeroes)}{end}"
            case Choice(then, otherwise):
                yield f"{indent}Choice ("
                yield from self.block(then, indent + "  ", ") (")
                yield from self.block(otherwise, indent + "  ", f"){end}")
            case Loop():
                yield f"{indent}Loop [" + "; ".join(map(_annotation, statement.hints)) + "] ("
                yield from self.block(statement.body, indent + "  ", f"){end}")


def _between_barriers(block: Block) -> list[Block]:
    """What stands between barriers, or loops and conditionals with barriers: whole rounds, each a block of its own."""
    parts = [list(part) for _, part in groupby(block, _meets)]
    return [each for part in parts for each in ([[s] for s in part] if _meets(part[0]) else [part])]


def _meets(statement: Statement) -> bool:
    match statement:
        case Meet():
            return True
        case Choice(then, otherwise):
            return any(map(_meets, (*then, *otherwise)))
        case Loop():
            return any(map(_meets, statement.body))
        case _:
            return False


def _stream_name(stream: Stream) -> str:
    return engine_name(stream.engine).replace("engine_", "stream_", 1)


def _annotation(hint: Annotation) -> str:
    known = _list(f"({x}%positive, {_form(form)})" for x, form in hint.known.items())
    waits = (_list(f"({s}%positive, {_form(form)})" for s, form in each) for each in (hint.pending, hint.passed))
    return f"({known}, {_list(map(_form, hint.facts))}, ({', '.join(waits)}))"


def _form(form: Form) -> str:
    return f"Form {_list(f'({x}%positive, {a})' for x, a in form.terms)} ({form.constant})"


def _expression(e: Expression) -> str:
    operands = " ".join(map(str, e.operands))
    if e.kind in WITH_NUMBER:
        return f"{e.kind} {e.number}"
    if e.kind in NUMBER_FIRST:
        return f"{e.kind} {e.number} {operands}"
    if e.kind in NUMBER_LAST:
        return f"{e.kind} {operands} {e.number}"
    return f"Compare {e.kind} {operands}" if e.kind in COMPARISONS else f"{e.kind} {operands}"


def _list(items: Iterable[str]) -> str:
    return f"[{'; '.join(items)}]"
