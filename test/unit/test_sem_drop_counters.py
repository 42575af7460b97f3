"""sem-drop-counters on random streams: what each engine does stays as it was."""

from stream_programs import Generator, effects, execute
from xdsl.dialects import scf

from mpkc.dialects.diagnostics import verify
from mpkc.dialects.sem_streams import IterationOp, StreamsOp
from mpkc.passes.sem_drop_counters import drop_counters

ARGUMENTS = ([2, 1, 0], [1, 4, 1])


def carried_values(streams: StreamsOp) -> int:
    return sum(len(op.results) for op in streams.walk() if isinstance(op, scf.ForOp | scf.WhileOp))


def test_random_streams():
    """Waits, thresholds, instructions, their operands and their order stay; most of what nothing needs goes."""
    dropped = 0
    for seed in range(60):
        streams = Generator(seed).streams()
        before = [execute(streams, arguments) for arguments in ARGUMENTS]
        carried = carried_values(streams)
        drop_counters(streams)
        verify(streams)
        dropped += carried - carried_values(streams)
        for arguments, expected in zip(ARGUMENTS, before, strict=True):
            for engine, events in execute(streams, arguments).items():
                assert effects(events) == effects(expected[engine]), f"seed {seed}"
        again = str(streams)
        drop_counters(streams)
        assert str(streams) == again, f"seed {seed}: a second run drops more"
    assert dropped > 50


def test_directives_stay_with_their_loops():
    """Each loop and branch that stays begins with its directive."""
    streams = Generator(7).streams()
    drop_counters(streams)
    loops = [op for op in streams.walk() if isinstance(op, scf.ForOp)]
    assert loops
    assert all(isinstance(op.body.block.first_op, IterationOp) for op in loops)
