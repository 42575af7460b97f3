"""Properties of sem over random programs, and mutations that must be seen."""

from io import StringIO
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sem_programs import edge_is_allowed, has_cycle, programs, random_edge
from xdsl.printer import Printer

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.sem import ProgramOp
from mpkc.dialects.sem_structure import structure_of
from mpkc.parsing import new_context, parse_module
from mpkc.runtime.reference.sem import instruction_value, owed, run_program

CONTEXT = new_context()
RANDOM = st.randoms(use_true_random=False)
SETTINGS = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


def load(text: str) -> ProgramOp:
    module = parse_module(text, "random.mlir", CONTEXT)
    verify(module)
    found = module.body.block.first_op
    assert isinstance(found, ProgramOp)
    return found


def printed(program: ProgramOp, **options: bool) -> str:
    out = StringIO()
    Printer(out, **options).print_op(program)
    return out.getvalue()


def verdict(text: str) -> bool:
    """Whether the verifier accepts the program; what it refuses has a place in the text."""
    try:
        load(text)
    except OpError as err:
        return err.op.location.line.data < 1
    return True


@given(programs())
@SETTINGS
def test_what_is_printed_is_what_was_parsed(program):
    loaded = load(program.text)
    text = printed(loaded)
    assert printed(load(text)) == text
    assert printed(load(printed(loaded, print_generic_format=True))) == text
    assert run_program(load(text), program.bindings) == run_program(loaded, program.bindings)


@given(programs())
@SETTINGS
def test_executions_owe_what_condition_1_says(program):
    """The interpreter counts what has run; the definition sums over the whole trace: nothing owed is late."""
    loaded = load(program.text)
    structure, trace = structure_of(loaded), run_program(loaded, program.bindings)
    position = {(e.name, e.iteration): index for index, e in enumerate(trace.executions)}
    assert len(position) == len(trace.executions)
    for execution in trace.executions:
        instruction = structure.by_label[execution.name]
        assert execution.engine == instruction.engine
        assert len(execution.iteration) == len(instruction.counted)
        read = []
        for edge, wait in zip(instruction.edges, execution.waits, strict=True):
            assert wait.owed == owed(trace, edge, execution.iteration)
            producers = trace.of(edge.producer.label)[: wait.owed or 0]
            assert all(position[p.name, p.iteration] < position[execution.name, execution.iteration] for p in producers)
            read.append(producers[-1].value if producers else None)
        assert execution.value == instruction_value(execution.name, execution.iteration, read)


@given(programs(), st.data())
@SETTINGS
def test_the_verifier_refuses_exactly_what_the_rules_refuse(program, data):
    rng = data.draw(RANDOM)
    for _ in range(3):
        producer, consumer, distance = random_edge(rng, program)
        after = program.instructions[consumer].after
        after.append((producer, distance))
        lawful = edge_is_allowed(program, producer, consumer, distance) and not has_cycle(program)
        assert verdict(program.text) == lawful, program.text
        after.pop()


@given(programs(), RANDOM)
@SETTINGS
def test_values_tell_every_change_of_what_is_owed(program, rng: Random):
    """Another distance on one dependency: the values change exactly when some execution owes otherwise."""
    consumers = [inst for inst in program.instructions.values() if inst.after]
    if not consumers:
        return
    before = run_program(load(program.text), program.bindings)
    inst = rng.choice(consumers)
    index = rng.randrange(len(inst.after))
    label, distance = inst.after[index]
    if isinstance(distance, tuple):
        at = rng.randrange(len(distance)) if distance else 0
        changed = tuple("*" if i == at and d == 0 and any(distance[:i]) else d for i, d in enumerate(distance))
    else:
        changed = distance + 1
    inst.after[index] = (label, changed)
    if not edge_is_allowed(program, label, inst.label, changed):
        return
    after = run_program(load(program.text), program.bindings)

    def owes(trace):
        """What each execution waits for; nothing owed and nothing run yet read the same value, none."""
        return {(e.name, e.iteration): [(w.producer, w.owed or None) for w in e.waits] for e in trace.executions}

    def values(trace):
        return {(e.name, e.iteration): e.value for e in trace.executions}

    assert values(before).keys() == values(after).keys()
    assert (values(before) == values(after)) == (owes(before) == owes(after))


@given(programs())
@SETTINGS
def test_dropping_a_dependency_changes_the_consumer(program):
    before = run_program(load(program.text), program.bindings)
    for inst in program.instructions.values():
        if inst.after and before.of(inst.label):
            inst.after.pop()
            after = run_program(load(program.text), program.bindings)
            assert before.of(inst.label)[0].value != after.of(inst.label)[0].value
            return
