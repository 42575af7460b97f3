"""What a machine description says."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from mpkc.runtime.machine.instructions import DEFAULT, NARROWER, InstructionCost


class MachineError(ValueError):
    """A machine description is missing or wrong; one line that names the file and the key."""


@dataclass(frozen=True)
class Limits:
    """What there is of each thing that synchronization uses up; None where a machine sets no limit.

    Attributes:
        registers: integer registers of each engine.
        semaphores: of the whole machine.
    """

    registers: int | None = None
    semaphores: int | None = None


@dataclass(frozen=True)
class SemaphoreType:
    """The integer that a semaphore holds, and that waits compare in."""

    bits: int
    signed: bool


@dataclass(frozen=True)
class Costs:
    """What control costs the engine that does it, in ns.

    Attributes:
        register: an operation on registers.
        branch: a comparison that goes to another place in the code, or does not.
        wait: a wait that is satisfied when it is reached.
        signal: from an update of a semaphore until another engine sees it.
        barrier: a handshake of all engines.
    """

    register: float
    branch: float
    wait: float
    signal: float
    barrier: float


@dataclass(frozen=True)
class Memory:
    """One memory of a machine; what is not known is None.

    Attributes:
        bytes: its size.
        page_bytes: a page, where it is handed out in pages.
    """

    bytes: int | None = None
    page_bytes: int | None = None


@dataclass(frozen=True)
class Rates:
    """How fast a worker, all engines of it together, runs tasks.

    Attributes:
        bytes: moved to or from far memory, a ns.
        flops: multiplications and additions, a ns.
    """

    bytes: float
    flops: float


@dataclass(frozen=True)
class Dma:
    """Engines that are DMA queues.

    Each of their instructions is a transfer in several parts, one on each of as many DMA engines. A DMA engine moves
    its parts in order; between them there is none. A part adds its share of the update when it has arrived. Where
    formulas have `transfer`, the DMA engines are those of all queues, and do what these issue in the order of time.

    Attributes:
        parts: of each transfer.
        queues: the engines that are queues.
    """

    parts: int
    queues: tuple[str, ...]


@dataclass(frozen=True)
class Machine:
    """A multi-engine machine.

    Attributes:
        name, description: what `mpkc devices` shows.
        engines: the names that instructions may give; none where any name will do.
        limits, semaphore, costs: of synchronization.
        memories: by space: far, near, accumulator.
        workers: tasks that run at the same time; None where that is for the machine at hand to say.
        rates: of each worker; None where they are not known.
        instructions: what the instructions of `tile` cost, by operation, such as "matmul"; "default" for all others.
            "vector.map" is for an engine, "matmul.f32" for tiles of that type.
        clocks: of engines, in GHz; their formulas are in cycles, those of other engines in ns.
        lanes: of each engine, which take a row each; also the rows and the columns of the array that multiplies
            matrices. None: as many as there are rows.
        instruction_bytes: the size of every instruction in the code of an engine.
        dma: which engines are DMA queues.
        sources: where each number comes from, by its key, such as "costs.wait".
    """

    name: str
    description: str
    engines: tuple[str, ...]
    semaphore: SemaphoreType
    costs: Costs
    limits: Limits = Limits()
    memories: Mapping[str, Memory] = field(default_factory=dict[str, Memory])
    workers: int | None = None
    rates: Rates | None = None
    instructions: Mapping[str, InstructionCost] = field(default_factory=dict[str, InstructionCost])
    clocks: Mapping[str, float] = field(default_factory=dict[str, float])
    lanes: int | None = None
    instruction_bytes: int = 64
    dma: Dma | None = None
    sources: Mapping[str, str] = field(default_factory=dict[str, str])

    def has_engine(self, name: str) -> bool:
        """Whether an instruction may name this engine."""
        return not self.engines or name in self.engines

    def cost_of(self, operation: str, engine: str = "", element: str = "") -> InstructionCost:
        """What an operation of `tile` costs.

        Args:
            operation: its name without the dialect, or one of `instructions.NARROWER`.
            engine: which executes it.
            element: the type of what is in its largest tile, such as `f32`.

        Raises:
            MachineError: where the machine does not say that.
        """
        broader = NARROWER.get(operation, operation)
        for name in dict.fromkeys((operation, broader)):
            for key in (f"{engine}.{name}", f"{name}.{element}", name):
                if key in self.instructions:
                    return self.instructions[key]
        if DEFAULT not in self.instructions:
            raise MachineError(f"{self.name}: instructions.{broader}: missing: it says what tile.{broader} costs")
        return self.instructions[DEFAULT]

    def clock_of(self, engine: str) -> float:
        """Cycles in a ns of that engine; 1 where it has no clock, and its formulas are in ns."""
        return self.clocks.get(engine, 1.0)

    def to_json(self) -> dict[str, object]:
        """All of it, as `mpkc devices --json` prints it; `null` for what is not limited or not known."""
        return asdict(self)
