"""Programs on which a naive allocator goes wrong, each with what it would write.

The programs are small: arguments %n, %m and %k, loops %a, %b. The streams are written by hand, as the naive choice
would have them; `verdict` is what a verifier must say of them. A case without streams is a fault of the machine.
"""

from semaphore_faults import BARRIERS, COUNTERS, EDGES, MACHINE
from semaphore_text import SECOND, Case, counted, if_, inst, loop, program, stream_loop, streams, wait

MASKED = "%mask = arith.extui %on : i1 to i32\n%t = arith.muli %mask, %less : i32\n"  # %less where %on, else 0

# The only engine: loop A, in it loop B of one trip, in it an instruction one iteration of B behind itself.
SELF = program(loop(loop(inst("I0", "e0", "@I0 distance [0, 1]"), "b", "c1")))


def self_streams(threshold: str) -> str:
    """Streams for SELF with the entries of B in %q and the threshold in %t."""
    body = (
        "%q = arith.addi %h, %i1 : i32\n%less = arith.subi %q, %i1 : i32\n"
        + threshold
        + wait("t")
        + inst("I0", "e0", "@I0 distance [0, 1]", "s")
        + "scf.yield %q : i32\n"
    )
    return streams(
        e0="%z = scf.for %a = %c0 to %n step %c1 iter_args(%g = %i0) -> (i32) {\n"
        'sem.iteration "a" depth 1\n'
        "%y = scf.for %b = %c0 to %c1 step %c1 iter_args(%h = %g) -> (i32) {\n"
        f'sem.iteration "b" depth 2\n{body}}} {{loop = "b"}}\nscf.yield %y : i32\n}} {{loop = "a"}}\n'
    )


FORMULAS = (
    Case(
        "formula (5) without a guard, unsigned",
        program(inst("I0", "e0") + inst("I1", "e0", "@I0 offset 1") + inst("I2", "e1", "@I1 offset 0")),
        "",
        "LATE",
        streams(
            e0=inst("I0", "e0", signal="s") + wait("minus1") + inst("I1", "e0", "@I0 offset 1", "s"),
            e1=wait("i2") + inst("I2", "e1", "@I1 offset 0"),
        ),
    ),
    Case(
        "the mask outside of formula (5), unsigned",
        program(if_(inst("I0", "e0") + inst("I1", "e0")) + inst("I2", "e1", "@I0 offset 0, @I1 offset 0")),
        "k=false",
        "LATE",
        streams(
            e0=if_(inst("I0", "e0", signal="s") + inst("I1", "e0", signal="s"), name="then1"),
            e1="%r = arith.extui %k : i1 to i32\n%two = arith.muli %r, %i2 : i32\n%t = arith.subi %two, %i1 : i32\n"
            + wait("t")
            + inst("I2", "e1", "@I0 offset 0, @I1 offset 0"),
        ),
    ),
    Case(
        "the mask from all entries, not from those of the trip",
        SELF,
        "n=2",
        "LATE",
        self_streams("%on = arith.cmpi ugt, %q, %i1 : i32\n" + MASKED),
    ),
    Case(
        "the mask from the offset on, not beyond it",
        SELF,
        "n=2",
        "LATE",
        self_streams("%on = arith.cmpi uge, %b, %c0 : index\n" + MASKED),
    ),
    Case("no mask", SELF, "n=2", "LATE", self_streams("%t = arith.addi %less, %i0 : i32\n")),
    Case(
        "the program counted as not entered",
        program(inst("I0", "e0") + inst("I1", "e1", "@I0 offset 0")),
        "",
        "EARLY",
        streams(e0=inst("I0", "e0", signal="s"), e1=wait("i0") + inst("I1", "e1", "@I0 offset 0")),
    ),
    Case(
        "fewer trips than the offset, without a mask",
        program(loop(inst("P", "e0") + inst("C", "e1", "@P offset 3"))),
        "n=1",
        "LATE",
        streams(
            e0=stream_loop(inst("P", "e0", signal="s")),
            e1=counted(
                "%i3b = arith.constant 3 : i32\n%t = arith.subi %ra, %i3b : i32\n"
                + wait("t")
                + inst("C", "e1", "@P offset 3")
            ),
        ),
    ),
    Case(
        "offset 3 taken for 2",
        program(loop(inst("P", "e0") + inst("C", "e1", "@P offset 3"))),
        "n=4",
        "LATE",
        streams(
            e0=stream_loop(inst("P", "e0", signal="s")),
            e1=counted(
                "%on = arith.cmpi ugt, %ra, %i2 : i32\n%mask = arith.extui %on : i1 to i32\n"
                "%less = arith.subi %ra, %i2 : i32\n%t = arith.muli %mask, %less : i32\n"
                + wait("t")
                + inst("C", "e1", "@P offset 3")
            ),
        ),
    ),
    Case(
        "every distance taken for 1",
        program(loop(inst("P", "e0") + inst("C", "e1", "@P offset 0"))),
        "n=1",
        "EARLY",
        streams(
            e0=stream_loop(inst("P", "e0", signal="s")),
            e1=counted("%t = arith.subi %ra, %i1 : i32\n" + wait("t") + inst("C", "e1", "@P offset 0")),
        ),
    ),
    Case(
        "a nested producer at offset 2 by its entries less 2",
        program(loop(loop(inst("P", "e0"), "b", "m") + inst("C", "e1", "@P offset 2"))),
        "n=3,m=2",
        "LATE",
        streams(
            e0=stream_loop(stream_loop(inst("P", "e0", signal="s"), "b", "m", 2)),
            e1="%z = scf.for %a = %c0 to %n step %c1 iter_args(%g = %i0) -> (i32) {\n"
            'sem.iteration "a" depth 1\n'
            + counted("", "b", "m", 2, "g")
            + "%on = arith.cmpi uge, %a, %c2 : index\n%mask = arith.extui %on : i1 to i32\n"
            "%less = arith.subi %zb, %i2 : i32\n%t = arith.muli %mask, %less : i32\n"
            + wait("t")
            + inst("C", "e1", "@P offset 2")
            + 'scf.yield %zb : i32\n} {loop = "a"}\n',
        ),
    ),
)

# Who counts, and who signals.
GROUPS = (
    Case(
        "a loop left out by an engine without an instruction in it",
        program(loop(inst("I0", "e1")) + inst("I1", "e0", "@I0 offset 0")),
        "n=1",
        "EARLY",
        streams(e1=stream_loop(inst("I0", "e1", signal="s")), e0=wait("i0") + inst("I1", "e0", "@I0 offset 0")),
    ),
    Case(
        "N and K by straight-line run",
        program(
            inst("I0", "e1")
            + if_(inst("X", "e1"))
            + inst("I1", "e1")
            + inst("I2", "e0", "@I1 offset 0")
            + inst("I3", "e0", "@I0 offset 0")
        ),
        "k=false",
        "EARLY",
        streams(
            e1=inst("I0", "e1", signal="s") + if_(inst("X", "e1"), name="then1") + inst("I1", "e1", signal="s"),
            e0=wait("i1") + inst("I2", "e0", "@I1 offset 0") + wait("i1") + inst("I3", "e0", "@I0 offset 0"),
        ),
    ),
    Case(
        "the instructions of a conditional counted with those around it",
        program(loop(SECOND + inst("I0", "e0") + if_(inst("I1", "e0", "@I0 offset 0"), "second"))),
        "n=2",
        "LATE",
        streams(
            e0=counted(
                SECOND
                + inst("I0", "e0", signal="s")
                + if_(
                    "%two = arith.muli %ra, %i2 : i32\n%t = arith.subi %two, %i1 : i32\n"
                    + wait("t")
                    + inst("I1", "e0", "@I0 offset 0", "s"),
                    "second",
                    "then2",
                )
            )
        ),
    ),
    Case(
        "the first of two dependencies kept",
        program(loop(inst("I0", "e0", "@I0 offset 2, @I0 offset 1"))),
        "n=2",
        "EARLY",
        streams(
            e0=counted(
                "%on = arith.cmpi ugt, %ra, %i2 : i32\n%mask = arith.extui %on : i1 to i32\n"
                "%less = arith.subi %ra, %i2 : i32\n%t = arith.muli %mask, %less : i32\n"
                + wait("t")
                + inst("I0", "e0", "@I0 offset 2, @I0 offset 1", "s")
            )
        ),
    ),
    Case(
        "the last of two dependencies kept",
        program(inst("I0", "e0") + inst("I1", "e1", "@I0 offset 0, @I1 offset 1")),
        "",
        "EARLY",
        streams(e0=inst("I0", "e0", signal="s"), e1=inst("I1", "e1", "@I0 offset 0, @I1 offset 1")),
    ),
    Case(
        "no wait within an engine",
        program(inst("I0", "e0") + inst("I1", "e0", "@I0 offset 0")),
        "",
        "EARLY",
        streams(e0=inst("I0", "e0", signal="s") + inst("I1", "e0", "@I0 offset 0")),
    ),
    Case(
        "one semaphore for a loop, whatever the engine",
        program(
            inst("I0", "e0") + inst("I1", "e1") + inst("I2", "e0", "@I0 offset 0") + inst("I3", "e0", "@I1 offset 0")
        ),
        "",
        "refused",
        streams(
            e0=inst("I0", "e0", signal="s")
            + wait("i1")
            + inst("I2", "e0", "@I0 offset 0")
            + wait("i2")
            + inst("I3", "e0", "@I1 offset 0"),
            e1=inst("I1", "e1", signal="s"),
        ),
    ),
    Case(
        "one semaphore for two nested regions that overlap",
        program(loop(inst("Q", "e0") + loop(inst("P", "e0"), "b", "m") + inst("C", "e1", "@Q offset 0"))),
        "n=2,m=1",
        "EARLY",
        streams(
            e0=stream_loop(inst("Q", "e0", signal="s") + stream_loop(inst("P", "e0", signal="s"), "b", "m", 2)),
            e1=counted(stream_loop("", "b", "m", 2) + wait("ra") + inst("C", "e1", "@Q offset 0")),
        ),
    ),
    Case(
        "a semaphore of an engine, every other loop counted",
        program(inst("I0", "e0") + loop(inst("I1", "e0", "@I0 offset 0"))),
        "n=1",
        "LATE",
        streams(
            e0=inst("I0", "e0", signal="s")
            + counted("%t = arith.addi %ra, %i1 : i32\n" + wait("t") + inst("I1", "e0", "@I0 offset 0", "s"))
        ),
    ),
    Case(
        "a semaphore of an engine, a later producer counted where it stands",
        program(loop(loop(inst("I0", "e0", "@I1 offset 1"), "b", "a") + inst("I1", "e0", "@I0 offset 0"))),
        "n=2",
        "LATE",
        streams(
            e0="%z = scf.for %a = %c0 to %n step %c1 iter_args(%g = %i0) -> (i32) {\n"
            'sem.iteration "a" depth 1\n'
            + counted(
                "%on = arith.cmpi uge, %a, %c1 : index\n%mask = arith.extui %on : i1 to i32\n"
                "%sum = arith.addi %rb, %i1 : i32\n%t = arith.muli %mask, %sum : i32\n"
                + wait("t")
                + inst("I0", "e0", "@I1 offset 1", "s"),
                "b",
                "a",
                2,
                "g",
            )
            + inst("I1", "e0", "@I0 offset 0", "s")
            + 'scf.yield %zb : i32\n} {loop = "a"}\n'
        ),
    ),
    Case(
        "a semaphore of an engine, nothing owed counted as a trip",
        program(loop(loop(inst("I0", "e0"), "b", "m") + inst("I1", "e0", "@I0 offset 0"))),
        "n=2,m=0",
        "LATE",
        streams(
            e0=counted(
                stream_loop(inst("I0", "e0", signal="s"), "b", "m", 2)
                + wait("ra")
                + inst("I1", "e0", "@I0 offset 0", "s")
            )
        ),
    ),
    Case(
        "a signal hoisted out of its conditional",
        program(loop(if_(inst("P", "e0")) + inst("C", "e1", "@P offset 0"))),
        "n=1,k=true",
        "EARLY",
        streams(
            e0=stream_loop('sem.marker @H engine "e0" {signal = "s"}\n' + if_(inst("P", "e0"), name="then2")),
            e1=counted(wait("ra") + inst("C", "e1", "@P offset 0")),
        ),
    ),
    Case(
        "branches with unequal numbers of signals counted as the longer one",
        program(
            f"scf.if %k {{\n{inst('P', 'e0')}{inst('Q', 'e0')}}} else {{\n{inst('R', 'e0')}}}\n"
            + inst("C", "e1", "@P offset 0, @Q offset 0, @R offset 0")
        ),
        "k=false",
        "LATE",
        streams(
            e0='scf.if %k {\nsem.iteration "then1" depth 0\n'
            + inst("P", "e0", signal="s")
            + inst("Q", "e0", signal="s")
            + '} else {\nsem.iteration "else2" depth 0\n'
            + inst("R", "e0", signal="s")
            + '} {loop = "then1"}\n',
            e1=wait("i2") + inst("C", "e1", "@P offset 0, @Q offset 0, @R offset 0"),
        ),
    ),
)

CASES = {case.name: case for case in (*FORMULAS, *GROUPS, *EDGES, *COUNTERS, *BARRIERS, *MACHINE)}
