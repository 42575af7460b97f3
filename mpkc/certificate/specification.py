"""A program as the specification of a certificate: its tree, and what follows from it."""

from xdsl.dialects import scf
from xdsl.ir import Block, Operation

from mpkc.certificate.statements import Need
from mpkc.certificate.symbolic import ROOT
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_control import CONTROL_OPS
from mpkc.dialects.sem_distance import EVERY
from mpkc.dialects.sem_structure import Edge, Instruction, Structure, regions_of


class Specification:
    """What a certificate says of a program.

    Attributes:
        loops, labels, engines: numbers, by name; the program is loop 1.
        parents: the loop around each.
        needs: of each instruction.
        tree: as Coq writes it.
    """

    def __init__(self, structure: Structure):
        self.structure = structure
        self.loops = {loop.name: number for number, loop in enumerate(structure.loops, ROOT)}
        self.labels = {name_of(each): number for number, each in enumerate(structure.instructions, 1)}
        self.engines = {engine: number for number, engine in enumerate(structure.engines, 1)}
        self.parents = {self.loops[each.name]: self.loops[each.parent.name] for each in structure.loops if each.parent}
        self.absent = len(self.loops)  # the last number that an else region that is not there took
        self.needs = {
            self.labels[name_of(each)]: [need for edge in each.edges if (need := self._need(edge))]
            for each in structure.instructions
        }
        self.tree = "\n".join(self._block(structure.loops[0].block))

    def _need(self, edge: Edge) -> Need | None:
        if edge.never_owed:
            return None
        producer = self.labels[name_of(edge.producer)]
        loop, carrier = self.loops[edge.producer.loop.name], edge.carrier
        if carrier is None:
            return Need(producer, loop)
        at = edge.common.index(carrier)
        k = edge.distance[at]
        behind = [d for each, d in zip(edge.common[at + 1 :], edge.distance[at + 1 :], strict=True) if each.counted]
        if not isinstance(k, int) or k < 0 or any(d != EVERY for d in behind):
            raise OpError(
                edge.consumer.op,
                f"cannot certify: {edge.consumer.name} after {edge.producer.name} has a component behind the one that "
                "carries it; that must be `*`",
            )
        return Need(producer, loop, self.loops[carrier.name], k)

    # The tree.

    def _block(self, block: Block) -> list[str]:
        """The lines of `body [...]`."""
        items: list[list[str]] = []
        for op in block.ops:
            if (instruction := self.structure.by_op.get(op)) is not None:
                items.append([self._instruction(instruction)])
            elif isinstance(op, CONTROL_OPS):
                items.append(self._control(op))
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

    def _instruction(self, instruction: Instruction) -> str:
        afters = "; ".join(self._after(edge) for edge in instruction.edges)
        return f"Instruction {label_name(name_of(instruction))} {engine_name(instruction.engine)} [{afters}]"

    @staticmethod
    def _after(edge: Edge) -> str:
        components = edge.counted if not edge.never_owed else (edge.distance[0],)
        written = "; ".join("All" if d == EVERY else f"Far {d}" for d in components)
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


def semaphore_name(name: str) -> str:
    return _written("sem_", name)
