"""Texts of small programs, and of streams as an allocator might write them.

Arguments are %n, %m and %k, loops %a, %b; constants %c0 to %c3 of type index, %i0 to %i4 of the type of the counters.
"""

from dataclasses import dataclass

ARGUMENTS = "%n : index, %m : index, %k : i1"
INDICES = "".join(f"%c{i} = arith.constant {i} : index\n" for i in range(4))


@dataclass(frozen=True)
class Case:
    """One naive choice.

    Attributes:
        name: what is naive.
        program: the text of a sem.program.
        bindings: a run that shows it, as --bind writes it.
        verdict: EARLY, LATE, `deadlock`, `counts` (a semaphore counts higher than it holds) or `refused`.
        streams: the text of the naive streams.
    """

    name: str
    program: str
    bindings: str
    verdict: str
    streams: str | None = None


def program(body: str) -> str:
    return f"sem.program @p({ARGUMENTS}) {{\n{INDICES}{body}\n}}\n"


def streams(counters: str = "ui32", semaphores: str = "s", **bodies: str) -> str:
    """`e0` and so on give what each engine runs; i32 stands for the type of the counters."""
    bits = int(counters[2:])
    half = 1 << (bits - 1)
    counts = "".join(f"%i{i} = arith.constant {(i + half) % (2 * half) - half} : i32\n" for i in range(5))
    counts += "%minus1 = arith.constant -1 : i32\n"
    named = ", ".join(f'"{name}"' for name in semaphores.split())
    parts = "".join(f'sem.stream "{engine}" {{\n{INDICES}{counts}{body}\n}}\n' for engine, body in bodies.items())
    text = f"sem.streams @p({ARGUMENTS}) counters {counters} semaphores [{named}] {{\n{parts}}}\n"
    return text.replace("i32", f"i{bits}")


def inst(label: str, engine: str, after: str = "", signal: str = "") -> str:
    text = f'sem.inst @{label} engine "{engine}" cost 1'
    text += f" after [{after}]" if after else ""
    return text + (f' {{signal = "{signal}"}}\n' if signal else "\n")


def wait(threshold: str, semaphore: str = "s") -> str:
    return f'sem.wait "{semaphore}" >= %{threshold} : i32\n'


def loop(body: str, index: str = "a", upper: str = "n", lower: str = "c0") -> str:
    return f"scf.for %{index} = %{lower} to %{upper} step %c1 {{\n{body}}}\n"


def stream_loop(body: str, index: str = "a", upper: str = "n", depth: int = 1, lower: str = "c0") -> str:
    """A loop of a stream without counters."""
    begins = f'sem.iteration "{index}" depth {depth}\n'
    return f'scf.for %{index} = %{lower} to %{upper} step %c1 {{\n{begins}{body}}} {{loop = "{index}"}}\n'


def counted(
    body: str, index: str = "a", upper: str = "n", depth: int = 1, initial: str = "i0", taken: str | None = None
) -> str:
    """A loop of a stream that counts its entries: %r<index> in it and behind it; or hands on the counter `taken`."""
    name = taken or index
    ahead = f"%r{name}" if taken is None else f"%w{name}"
    count = f"%r{index} = arith.addi %h{index}, %i1 : i32\n" if taken is None else ""
    result = f"%z{index}"
    return (
        f"{result} = scf.for %{index} = %c0 to %{upper} step %c1 iter_args(%h{index} = %{initial}) -> (i32) {{\n"
        f'sem.iteration "{index}" depth {depth}\n{count}{body}scf.yield {ahead} : i32\n}} {{loop = "{index}"}}\n'
    )


def if_(body: str, condition: str = "k", name: str | None = None) -> str:
    if name is None:
        return f"scf.if %{condition} {{\n{body}}}\n"
    return f'scf.if %{condition} {{\nsem.iteration "{name}" depth 0\n{body}}} {{loop = "{name}"}}\n'


FIRST = "%first = arith.cmpi eq, %a, %c0 : index\n"
SECOND = "%second = arith.cmpi eq, %a, %c1 : index\n"
