"""The figures of barrier-free as programs, with what each consumer owes (None: no wait)."""

HEAD = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
"""


def program(name: str, body: str) -> str:
    return f"sem.program @{name}(%n : index) {{{HEAD}{body}\n}}\n"


def loop(body: str, variable: str = "a", trips: str = "n") -> str:
    return f"scf.for %{variable} = %c0 to %{trips} step %c1 {{\n{body}\n}}"


# B runs 3 times in the first iteration of A, then 4 times.
LOOP_B = "%m = arith.addi %a, %c3 : index\n" + loop('sem.inst @P engine "e0" cost 64', "b", "m")

FIG1 = program(
    "fig1",
    'sem.inst @I0 engine "e0" cost 64\nsem.inst @I1 engine "e1" cost 64\n'
    + loop('sem.inst @I2 engine "e2" cost 64 after [@I3 offset 2]\nsem.inst @I3 engine "e1" cost 64')
    + '\nsem.inst @I4 engine "e2" cost 64\nsem.inst @I5 engine "e0" cost 64',
)
FIG3 = program(
    "fig3",
    'sem.inst @I0 engine "e0" cost 64\nsem.inst @I1 engine "e0" cost 64\n'
    'sem.inst @I2 engine "e1" cost 64 after [@I1 offset 0]\nsem.inst @I3 engine "e1" cost 64',
)
FIG5 = program(
    "fig5",
    loop(
        "%m = arith.addi %a, %c3 : index\n"
        + loop('sem.inst @P engine "e0" cost 64\nsem.inst @C engine "e1" cost 64 after [@P offset 2]', "b", "m")
    ),
)
FIG6_FORWARD = program("fig6_forward", loop(LOOP_B + '\nsem.inst @C engine "e1" cost 64 after [@P offset 0]'))
FIG6_BACKWARD = program("fig6_backward", loop('sem.inst @C engine "e1" cost 64 after [@P offset 1]\n' + LOOP_B))
FIG7 = program(
    "fig7",
    loop(
        'sem.inst @I0 engine "e0" cost 64\nsem.inst @I1 engine "e0" cost 64\n'
        'sem.inst @I2 engine "e1" cost 64 after [@I1 offset 0]'
    )
    + ' {semaphores = "per-instruction"}',
)
FIG8 = FIG7.replace("fig7", "fig8").replace("per-instruction", "per-loop")

# text, n, consumer, what it owes in each execution
FIGURES = {
    "fig1": (FIG1, 3, "I2", [None, None, 1]),
    "fig3": (FIG3, 0, "I2", [1]),
    "fig5": (FIG5, 2, "C", [None, None, 1, None, None, 4, 5]),
    "fig6_forward": (FIG6_FORWARD, 2, "C", [3, 7]),
    "fig6_backward": (FIG6_BACKWARD, 3, "C", [None, 3, 7]),
    "fig7": (FIG7, 3, "I2", [1, 2, 3]),
    "fig8": (FIG8, 3, "I2", [1, 2, 3]),
}
