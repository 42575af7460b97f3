"""Certificates as Coq reads them (proofs/checker/Certificate.v)."""

from collections.abc import Iterable, Iterator, Mapping

from mpkc.certificate.forms import Form
from mpkc.certificate.specification import engine_name, label_name, loop_name, semaphore_name
from mpkc.certificate.statements import (
    Annotation,
    Block,
    Choice,
    Enter,
    Expression,
    Ghost,
    Issue,
    Let,
    Loop,
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
        yield "From Checker Require Import Linear Language States Certificate Steps."
        yield "Import ListNotations.\nLocal Open Scope Z_scope.\n"
        for kind, names in (
            ("engine", {number: engine_name(name) for name, number in model.engines.items()}),
            ("loop", self.loops),
            ("label", self.labels),
            ("semaphore", self.semaphores),
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
        yield f"  {_list(_list(f'({self.labels[i]}, {self.signal(s)})' for i, s in block) for block in model.blocks)}"
        yield "  " + _list(f"({engine_name(s.engine)}, {self.counters(s.ghosts)})" for s in model.streams) + "."
        yield "\nLemma checked : certified certificate_of = true."
        yield "Proof. vm_compute. reflexivity. Qed.\n"
        yield "Theorem waits_are_exact : structured certificate_of /\\ exact certificate_of."
        yield "Proof. exact (certified_sound certificate_of checked). Qed.\n"
        yield "Theorem bisimilar : bisimulation certificate_of (fun x y => x = y /\\ consistent certificate_of x)."
        yield "Proof. exact (certified_bisimilar certificate_of checked). Qed."

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
            case kind, (loop, *_):
                return f"{kind} {self.loops[loop]}"
            case _:
                raise AssertionError(ghost)

    def block(self, block: Block, indent: str, end: str) -> Iterator[str]:
        if not block:
            yield f"{indent}Skip{end}"
            return
        yield f"{indent}block ["
        for statement in block:
            yield from self.statement(statement, indent + "  ", "" if statement is block[-1] else ";")
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
            case Choice(then, otherwise):
                yield f"{indent}Choice ("
                yield from self.block(then, indent + "  ", ") (")
                yield from self.block(otherwise, indent + "  ", f"){end}")
            case Loop():
                yield f"{indent}Loop [" + "; ".join(map(_annotation, statement.hints)) + "] ("
                yield from self.block(statement.body, indent + "  ", f"){end}")


def _stream_name(stream: Stream) -> str:
    return engine_name(stream.engine).replace("engine_", "stream_", 1)


def _annotation(hint: Annotation) -> str:
    known = _list(f"({x}%positive, {_form(form)})" for x, form in hint.known.items())
    return f"({known}, {_list(map(_form, hint.facts))})"


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
