"""The proof of what must hold on all ways of one engine through its stream.

Invariants of loops are the largest part of the candidates that is inductive for all loops of the stream together
(Houdini): start with all, drop what a model refutes.
"""

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Operation

from mpkc.runtime.verify.integers import Value, negated
from mpkc.runtime.verify.invariants import Invariant, Relation
from mpkc.runtime.verify.scopes import Duty, Formula, Obligation, Scope
from mpkc.runtime.verify.smt import smt
from mpkc.runtime.verify.ways import Way

z3 = smt()


class Proof(Way):
    """The proof that the waits of one engine are right; see `Way`."""

    def settle(self) -> None:
        """Weaken invariants until they are inductive."""
        for op in self.invariants:
            self._assume(op)
        open_ = True
        while open_:
            open_ = False
            for obligation in self.obligations:
                while self._weaken(obligation):
                    open_ = True

    def _assume(self, op: Operation) -> None:
        """Let a new literal stand for what the invariant of a loop has become."""
        literal = self.literals[op] = self._new("inv", z3.Bool)
        parts = [self._part(op, part) for part in self.invariants[op].parts]
        if parts:
            self.solver.add(z3.Implies(literal, z3.And(*parts)))

    def _part(self, op: Operation, part: Relation) -> Formula:
        """The literal that stands for one part of an invariant, wherever the head of the loop is."""
        literal = self.parts.get((op, part))
        if literal is None:
            literal = self.parts[op, part] = self._new("part", z3.Bool)
            for scope, row in self.heads[op]:
                self._fact(z3.Implies(literal, part.holds(row)), scope)
        return literal

    def _weaken(self, obligation: Obligation) -> bool:
        """Admit a state that comes to the head of a loop where its invariant does not hold, if there is one."""
        invariant = self.invariants[obligation.op]
        open_ = [(part, formula) for part in invariant.parts if (formula := obligation.holds(part)) is not True]
        if not open_:
            return False
        answer, model = self._ask(obligation.scope, [formula for _, formula in open_])
        if answer == z3.unsat:
            return False
        if model is None:
            self._restrict(invariant, obligation, open_)
        else:
            invariant.admit([_number(model, value) for value in obligation.row])
        self._assume(obligation.op)
        return True

    def _restrict(
        self, invariant: Invariant, obligation: Obligation, open_: Sequence[tuple[Relation, Formula]]
    ) -> None:
        """Where z3 does not know, keep the parts that it does know to hold, one by one."""
        doubtful = {part for part, formula in open_ if self._ask(obligation.scope, [formula])[0] != z3.unsat} or {
            part for part, _ in open_
        }
        invariant.restrict([part for part in invariant.parts if part not in doubtful])

    def refute(self, duty: Duty) -> tuple[Any, Any]:
        """Whether a goal can fail: z3's answer, and the model if it can."""
        holds = duty.goal.holds
        return (z3.unsat, None) if holds is True else self._ask(duty.scope, [holds])

    def _ask(self, scope: Scope, formulas: Sequence[Formula]) -> tuple[Any, Any]:
        """Whether any of the formulas can fail in a scope, with the invariants that are left."""
        self.solver.push()
        self.solver.add(*scope.path, z3.Or(*(negated(formula) for formula in formulas)))
        answer = self.solver.check(*scope.literals, *self.literals.values())
        model = self.solver.model() if answer == z3.sat else None
        self.solver.pop()
        return answer, model


def _number(model: Any, value: Value) -> int:
    return value if isinstance(value, int) else model.eval(value, model_completion=True).as_long()
