"""What an engine keeps of a program: its instructions, the control flow around them, and what decides that.

A slice starts from loops that the engine has to run, because of an instruction, a counter that a wait of its own
refers to, or a barrier in them; all else follows from where values come from. A value that an instruction computes
is read, which makes the engine wait for it: so nothing may be in a slice that is not needed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from mpkc.dialects.engine import is_instruction, is_value
from mpkc.dialects.sem_flow import decides
from mpkc.dialects.sem_structure import Loop, LoopKind, Structure


@dataclass(eq=False)
class Slice:
    """What one engine keeps.

    Attributes:
        engine: its name.
        control: the loops and conditionals.
        scalars: the operations that compute integers, or name buffers and their parts.
        reads: the instructions whose values it reads.
        carried: the block arguments of loops, and results of control operations, that it needs.
    """

    engine: str
    structure: Structure
    control: set[Operation] = field(default_factory=set[Operation])
    scalars: set[Operation] = field(default_factory=set[Operation])
    reads: set[Operation] = field(default_factory=set[Operation])
    carried: set[SSAValue] = field(default_factory=set[SSAValue])
    _work: list[SSAValue] = field(default_factory=list[SSAValue])

    @property
    def size(self) -> int:
        """How much it holds; it only grows."""
        return len(self.control) + len(self.scalars) + len(self.reads) + len(self.carried)

    def carries(self, op: scf.ForOp) -> list[int]:
        """The numbers of the values that a loop carries on this engine."""
        return [
            index
            for index, (arg, result) in enumerate(zip(op.body.block.args[1:], op.results, strict=True))
            if arg in self.carried or result in self.carried
        ]

    def need(self, values: Iterable[SSAValue]) -> None:
        """Keep what computes `values`."""
        self._work.extend(values)
        while self._work:
            value = self._work.pop()
            if value in self.carried:
                continue
            if isinstance(value, BlockArgument):
                self.carried.add(value)
                self._need_argument(value)
            elif isinstance(value, OpResult):
                self._need_result(value)

    def keep_loop(self, loop: Loop) -> None:
        """Run `loop` on this engine, and those around it."""
        for each in loop.path[1:]:
            if each.op not in self.control:
                self.control.add(each.op)
                for kind in self.structure.loops_of[each.op]:
                    self.need(value for _, _, value in decides(kind))

    def _need_argument(self, arg: BlockArgument) -> None:
        loop = self.structure.loop_of.get(arg.block)
        if loop is None or loop.parent is None:
            return
        self.keep_loop(loop)
        index = arg.index
        match loop.op:
            case scf.ForOp() as op:
                if index:
                    self._work += [op.iter_args[index - 1], _passed(op.body)[index - 1]]
            case scf.WhileOp() as op if loop.kind is LoopKind.WHILE:
                self._work += [op.arguments[index], _passed(op.after_region)[index]]
            case scf.WhileOp() as op:
                self._work.append(_passed(op.before_region)[index])
            case _:
                pass

    def _need_result(self, result: OpResult) -> None:
        op = result.op
        if is_value(op):
            self.reads.add(op)
            self._keep_around(op)
        elif is_instruction(op):
            return
        elif op in self.structure.loops_of:
            self.carried.add(result)
            self.keep_loop(self.structure.loops_of[op][0])
            match op:
                case scf.ForOp():
                    self._work.append(op.body.block.args[result.index + 1])
                case scf.WhileOp():
                    self._work.append(_passed(op.before_region)[result.index])
                case _:
                    self._work += [_passed(region)[result.index] for region in op.regions]
        elif op not in self.scalars:
            self.scalars.add(op)
            self._work += op.operands
            self._keep_around(op)

    def _keep_around(self, op: Operation) -> None:
        assert isinstance(op.parent, Block)
        if (loop := self.structure.loop_of.get(op.parent)) is not None:
            self.keep_loop(loop)


def _passed(region: Region) -> list[SSAValue]:
    """What the terminator of a region passes on, the condition of a while left out."""
    end = region.block.last_op
    if isinstance(end, scf.ConditionOp):
        return list(end.args)
    assert isinstance(end, scf.YieldOp), "verified"
    return list(end.operands)
