"""A program as the specification of a certificate: its tree, and what follows from it."""

from xdsl.dialects import scf
from xdsl.ir import Block, Operation

from mpkc.certificate.reads import Read, reads_of
from mpkc.certificate.statements import Gathering, Need
from mpkc.certificate.symbolic import ROOT
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_control import CONTROL_OPS
from mpkc.dialects.sem_distance import EVERY
from mpkc.dialects.sem_structure import Edge, Instruction, Loop, regions_of
from mpkc.runtime.verify.places import Places


class Specification:
    """What a certificate says of a program.

    Attributes:
        loops, labels, engines: numbers, by name; the program is loop 1.
        parents: the loop around each.
        needs: of each instruction.
        reads: of its integers, by its streams.
        gatherings: the barriers of its streams; see `meetings`, which fills them in.
    """

    def __init__(self, places: Places):
        self.structure = structure = places.structure
        self.reads = reads_of(places)
        self.loops = {loop.name: number for number, loop in enumerate(structure.loops, ROOT)}
        names = [*map(name_of, structure.instructions), *(read.name for read in self.reads)]
        self.labels = {name: number for number, name in enumerate(names, 1)}
        self.engines = {engine: number for number, engine in enumerate(structure.engines, 1)}
        self.parents = {self.loops[each.name]: self.loops[each.parent.name] for each in structure.loops if each.parent}
        self.needs = {
            self.labels[name_of(each)]: [need for edge in each.edges if (need := self._need(edge))]
            for each in structure.instructions
        }
        for read in self.reads:
            value = self.labels[name_of(read.value)]
            self.needs[self.labels[read.name]] = [self._carried(value, read, c) for c in read.carriers(of_read=True)]
            more = [self._carried(self.labels[read.name], read, c) for c in read.carriers(of_read=False)]
            self.needs[value] += more
        self.gatherings: list[Gathering] = []

    @property
    def tree(self) -> str:
        """As Coq writes it."""
        self.absent = len(self.loops)  # the last number that an else region that is not there took
        return "\n".join(self._block(self.structure.loops[0].block))

    def _carried(self, producer: int, read: Read, carrier: Loop | None) -> Need:
        loop = self.loops[read.value.loop.name]
        return Need(producer, loop) if carrier is None else Need(producer, loop, self.loops[carrier.name], 1)

    def reads_at(self, block: Block, op: Operation | None) -> list[Read]:
        """The reads right in front of an operation of a block, or at its end."""
        return [each for each in self.reads if each.in_front_of is op and each.value.loop.block is block]

    def in_front_of(self, op: Operation) -> list[Gathering]:
        """The barriers right in front of an operation of the program."""
        return [each for each in self.gatherings if each.in_front_of is op]

    def at_end(self, block: Block) -> list[Gathering]:
        """The barriers at the end of a loop's body."""
        loop = self.loops[self.structure.loop_of[block].name]
        return [each for each in self.gatherings if each.in_front_of is None and each.loop == loop]

    def _need(self, edge: Edge) -> Need | None:
        if edge.never_owed:
            return None
        producer = self.labels[name_of(edge.producer)]
        loop, carrier = self.loops[edge.producer.loop.name], edge.carrier
        if carrier is None:
            return Need(producer, loop)
        at = edge.common.index(carrier)
        k = edge.distance[at]
        inner = [x for x in zip(edge.common[at + 1 :], edge.distance[at + 1 :], strict=True) if x[0].counted]
        assert isinstance(k, int)
        if all(d == EVERY for _, d in inner):
            return Need(producer, loop, self.loops[carrier.name], k)
        if len(inner) == 1 and isinstance(d := inner[0][1], int) and inner[0][0] is edge.producer.loop:
            return Need(producer, loop, self.loops[carrier.name], k, loop, d)
        raise OpError(
            edge.consumer.op,
            f"cannot certify: {edge.consumer.name} after {edge.producer.name} has components behind the one that "
            "carries it; they must be `*`, or one of the producer's own loop",
        )

    # The tree.

    def _block(self, block: Block) -> list[str]:
        """The lines of `body [...]`."""
        items: list[list[str]] = []
        for op in block.ops:
            items += ([self._read(each)] for each in self.reads_at(block, op))
            items += ([self._gathering(each)] for each in self.in_front_of(op))
            if (instruction := self.structure.by_op.get(op)) is not None:
                items.append([self._instruction(instruction)])
            elif isinstance(op, CONTROL_OPS):
                items.append(self._control(op))
        items += ([self._read(each)] for each in self.reads_at(block, None))
        items += ([self._gathering(each)] for each in self.at_end(block))
        lines = [line + (";" if item is not items[-1] and line is item[-1] else "") for item in items for line in item]
        return ["body [", *("  " + line for line in lines), "]"]

    def _control(self, op: Operation) -> list[str]:
        match op:
            case scf.ForOp():
                inner = self.structure.loop_of[op.body.block]
                first, *rest = self._block(inner.block)
                return [f"For {loop_name(inner.name)} ({first}", *rest[:-1], f"{rest[-1]})"]
            case scf.IfOp():
                lines = ["If"]
                regions = [region.block for _, region in regions_of(op)]
                for at in range(2):
                    if at < len(regions):
                        inner = self.structure.loop_of[regions[at]]
                        first, *rest = self._block(inner.block)
                        lines += [f"  {loop_name(inner.name)} ({first}", *("  " + line for line in rest[:-1])]
                        lines.append(f"  {rest[-1]})")
                    else:
                        self.absent += 1
                        lines.append(f"  {self.absent} Nothing")
                return lines
            case _:
                raise OpError(op, f"cannot certify: '{op.name}'; certificates are for scf.for and scf.if")

    @staticmethod
    def _gathering(each: Gathering) -> str:
        engines = "; ".join(map(engine_name, each.engines))
        return f"Gathering {barrier_name(each.barrier)} [{engines}] {each.every}"

    def _instruction(self, instruction: Instruction) -> str:
        name = name_of(instruction)
        afters = "; ".join(
            [
                *map(self._after, instruction.edges),
                *(
                    self._behind(read.name, read, carrier)
                    for read in self.reads
                    if read.value is instruction
                    for carrier in read.carriers(of_read=False)
                ),
            ]
        )
        return f"Instruction {label_name(name)} {engine_name(instruction.engine)} [{afters}]"

    def _read(self, read: Read) -> str:
        value = name_of(read.value)
        afters = "; ".join(self._behind(value, read, carrier) for carrier in read.carriers(of_read=True))
        return f"Instruction {label_name(read.name)} {engine_name(read.engine)} [{afters}]"

    @staticmethod
    def _behind(producer: str, read: Read, carrier: Loop | None) -> str:
        counted = [loop for loop in read.value.loop.path if loop.counted]
        at = counted.index(carrier) if carrier is not None else len(counted)
        components = ["Far 0"] * at + (["Far 1"] + ["All"] * (len(counted) - at - 1) if carrier is not None else [])
        return f"({label_name(producer)}, [{'; '.join(components)}])"

    @staticmethod
    def _after(edge: Edge) -> str:
        components = edge.counted if not edge.never_owed else (edge.distance[0],)
        written = "; ".join("All" if d == EVERY else f"Far {d if d >= 0 else f'({d})'}" for d in components)
        return f"({label_name(name_of(edge.producer))}, [{written}])"


def name_of(instruction: Instruction) -> str:
    """The label of an instruction, or what else tells it from the others."""
    return instruction.label or instruction.name


def _written(prefix: str, name: str) -> str:
    """A name of Coq for a name of the program; two may be the same, and then Coq refuses the second."""
    return prefix + "".join(c if c.isascii() and c.isalnum() else "_" for c in name)


def loop_name(name: str) -> str:
    return _written("loop_", name)


def label_name(name: str) -> str:
    return _written("inst_", name)


def engine_name(name: str) -> str:
    return _written("engine_", name)


def barrier_name(barrier: int) -> str:
    return f"barrier_{barrier}"


def semaphore_name(name: str) -> str:
    return _written("sem_", name)
