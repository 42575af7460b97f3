"""Which wait ends last, by simulation, and what it is worth to wait for that one last."""

from wait_proofs import only

from mpkc.auto.latest import latest_waits, with_lines
from mpkc.passes.sem_order_waits import order_waits
from mpkc.runtime.machine import machine
from mpkc.runtime.neuron.emit import emit
from mpkc.runtime.neuron.simulator import simulate

# The slow engine is last, though the rule takes it for the first: what it did is of an earlier iteration.
STREAMS = """
sem.streams @p() counters ui32 semaphores ["slow", "fast", "own"] {
  sem.stream "s" {
    sem.inst @Slow engine "s" cost 900 {signal = "slow"}
  }
  sem.stream "f" {
    sem.inst @Fast engine "f" cost 10 {signal = "fast"}
  }
  sem.stream "e" {
    %one = arith.constant 1 : i32
    sem.inst @First engine "e" cost 10 {signal = "own"}
    sem.wait "fast" >= %one : i32 for ["Fast"]
    sem.wait "slow" >= %one : i32 for ["Slow"]
    sem.wait "own" >= %one : i32 for ["First"]
    sem.inst @Last engine "e" cost 10 after [@Fast offset 0, @Slow offset 0, @First offset 0]
  }
}
"""


def test_wait_that_ends_last() -> None:
    generic = machine("generic")
    times: list[float] = []
    latest = None
    for _ in range(2):
        streams = only(STREAMS)
        order_waits(streams, latest)
        program = with_lines(emit(streams, generic))
        result = simulate(program, generic, values=False, timeline=True)
        times.append(result.time_ns)
        latest = latest_waits(program, result)
        assert latest[("e", 1)] == "slow"
    assert times[0] - times[1] == generic.costs.register + generic.costs.wait
