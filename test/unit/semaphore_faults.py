"""Naive choices about which waits there are, how counters are kept, and barriers; see semaphore_cases."""

from semaphore_text import FIRST, SECOND, Case, counted, if_, inst, loop, program, stream_loop, streams, wait

# What is not waited for, or too much.
EDGES = (
    Case(
        "a wait lost with the register move beside it",
        program(loop(inst("P", "e0") + inst("C", "e1", "@P offset 0"))),
        "n=1",
        "EARLY",
        streams(e0=stream_loop(inst("P", "e0", signal="s")), e1=stream_loop(inst("C", "e1", "@P offset 0"))),
    ),
    Case(
        "a loop without trips taken as having waited",
        program(inst("P", "e0") + loop(inst("C", "e1", "@P offset 0")) + inst("D", "e1", "@P offset 0")),
        "n=0",
        "EARLY",
        streams(
            e0=inst("P", "e0", signal="s"),
            e1=stream_loop(wait("i1") + inst("C", "e1", "@P offset 0")) + inst("D", "e1", "@P offset 0"),
        ),
    ),
    Case(
        "only what the inner loop carries: a write after a read of the trip before",
        program(
            loop(
                loop(
                    inst("Load", "e0", "@Mul offset 2, @Mul distance [1, *]") + inst("Mul", "e1", "@Load offset 0"),
                    "b",
                    "m",
                )
            )
        ),
        "n=2,m=1",
        "EARLY",
        streams(
            semaphores="load mul",
            e0=stream_loop(
                stream_loop(
                    "%on = arith.cmpi uge, %b, %c2 : index\n%mask = arith.extui %on : i1 to i32\n"
                    "%less = arith.subi %b, %c1 : index\n%back = arith.index_cast %less : index to i32\n"
                    "%t = arith.muli %mask, %back : i32\n"
                    + wait("t", "mul")
                    + inst("Load", "e0", "@Mul offset 2, @Mul distance [1, *]", "load"),
                    "b",
                    "m",
                    2,
                )
            ),
            e1="%z = scf.for %a = %c0 to %n step %c1 iter_args(%g = %i0) -> (i32) {\n"
            'sem.iteration "a" depth 1\n'
            + counted(wait("rb", "load") + inst("Mul", "e1", "@Load offset 0", "mul"), "b", "m", 2, "g")
            + 'scf.yield %zb : i32\n} {loop = "a"}\n',
        ),
    ),
    Case(
        "what an iteration without the producer owes",
        program(loop(FIRST + SECOND + if_(inst("P", "e0"), "first") + if_(inst("C", "e1", "@P offset 0"), "second"))),
        "n=2",
        "EARLY",
        streams(
            e0=stream_loop(FIRST + if_(inst("P", "e0", signal="s"), "first", "then2")),
            e1=stream_loop(
                FIRST
                + SECOND
                + "%ran = arith.extui %first : i1 to i32\n"
                + if_(wait("ran") + inst("C", "e1", "@P offset 0"), "second", "then3")
            ),
        ),
    ),
    Case(
        "a write after a read over the back edge",
        program(loop(inst("Load", "e0", "@Use offset 1") + inst("Use", "e1", "@Load offset 0"))),
        "n=2",
        "EARLY",
        streams(
            e0=stream_loop(inst("Load", "e0", "@Use offset 1", "s")),
            e1=counted(wait("ra") + inst("Use", "e1", "@Load offset 0")),
        ),
    ),
    Case(
        "disjoint slices taken as overlapping",
        program(loop(inst("P", "e0") + inst("C", "e1"))),
        "n=1",
        "LATE",
        streams(e0=stream_loop(inst("P", "e0", signal="s")), e1=counted(wait("ra") + inst("C", "e1"))),
    ),
)

# Counters that are kept wrongly.
COUNTERS = (
    Case(
        "a counter of 2 bits that wraps",
        program(loop(loop(inst("I0", "e1") + inst("I1", "e0", "@I0 offset 0"), "b", "m"))),
        "n=2,m=2",
        "counts",
        streams(
            counters="ui2",
            e1=stream_loop(stream_loop(inst("I0", "e1", signal="s"), "b", "m", 2)),
            e0="%z = scf.for %a = %c0 to %n step %c1 iter_args(%g = %i0) -> (i32) {\n"
            'sem.iteration "a" depth 1\n'
            + counted(wait("rb") + inst("I1", "e0", "@I0 offset 0"), "b", "m", 2, "g")
            + 'scf.yield %zb : i32\n} {loop = "a"}\n',
        ),
    ),
    Case(
        "a counter lost over the back edge",
        program(loop(inst("P", "e0") + inst("C", "e1", "@P offset 0"))),
        "n=2",
        "EARLY",
        streams(
            e0=stream_loop(inst("P", "e0", signal="s")),
            e1=stream_loop("%r = arith.addi %i0, %i1 : i32\n" + wait("r") + inst("C", "e1", "@P offset 0")),
        ),
    ),
    Case(
        "a counter hoisted out of its loop",
        program(loop(loop(inst("P", "e0") + inst("C", "e1", "@P offset 0"), "b", "m"))),
        "n=1,m=2",
        "EARLY",
        streams(
            e0=stream_loop(stream_loop(inst("P", "e0", signal="s"), "b", "m", 2)),
            e1=counted(stream_loop(wait("ra") + inst("C", "e1", "@P offset 0"), "b", "m", 2)),
        ),
    ),
)

BARRIERS = (
    Case(
        "a barrier that one engine leaves out",
        program(loop(inst("P", "e0")) + inst("C", "e1", "@P offset 0")),
        "n=1",
        "deadlock",
        streams(e0=stream_loop(inst("P", "e0")), e1="sem.barrier reset []\n" + inst("C", "e1", "@P offset 0")),
    ),
    Case(
        "a barrier sunk into a loop",
        program(inst("Q", "e0") + loop(inst("P", "e0")) + inst("C", "e1", "@Q offset 0")),
        "n=2",
        "deadlock",
        streams(
            e0=inst("Q", "e0") + stream_loop("sem.barrier reset []\n" + inst("P", "e0")),
            e1="sem.barrier reset []\n" + inst("C", "e1", "@Q offset 0"),
        ),
    ),
    Case(
        "a barrier forgotten",
        program(loop(inst("P", "e0") + inst("C", "e1", "@P offset 1"))),
        "n=2",
        "EARLY",
        streams(e0=stream_loop(inst("P", "e0")), e1=stream_loop(inst("C", "e1", "@P offset 1"))),
    ),
    Case(
        "a barrier that resets nothing",
        program(loop(inst("P", "e0") + inst("C", "e1", "@P offset 0"))),
        "n=2",
        "EARLY",
        streams(
            e0=stream_loop(inst("P", "e0", signal="s") + "sem.barrier reset []\n"),
            e1=stream_loop(wait("i1") + inst("C", "e1", "@P offset 0") + "sem.barrier reset []\n"),
        ),
    ),
)

MACHINE = (
    Case("a signal at issue", program(inst("I0", "e0") + inst("I1", "e0", "@I0 offset 0")), "", "EARLY"),
    Case("a signal at commit", program(inst("I0", "e0") + inst("I1", "e1", "@I0 offset 0")), "", "EARLY"),
)
