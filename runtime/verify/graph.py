"""Verification of a task graph before anything runs: every task once, no deadlock, no missing order, no race.

docs/verify.md states what is proved and how. In short, for a linear table whose queues hold what the first point says:

* An event's push never waits: a scheduler's queue has room for all events that can be in it at once
  (mpkc.runtime.cuda.queues.events_at_once).
* So a worker waits for nothing but tasks: one that has a task ends it, and comes back for the next.
* So a full task queue empties: it delays the scheduler that pushes to it, and no more. Two slots are enough.
* Of the tasks that have not ended, take the one with the smallest number. All that it waits for has smaller numbers, so
  has ended, and its event is active. Handed out just in time, it gets to a worker, by the points above. Assigned ahead
  of time, it is at the head of its worker's list, which is in order too. So it runs; no graph stops halfway, however
  slow some workers are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import BlockArgument, SSAValue
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.lists import Index
from mpkc.dialects.tgraph_dependencies import Dependency, Regions, dependencies, first_tasks
from mpkc.dialects.tgraph_memory import memory_dependencies
from mpkc.dialects.tgraph_operators import OperatorInfo, task_name
from mpkc.dialects.tgraph_rules import find_cycle, verify_table
from mpkc.dialects.tgraph_table import EMPTY, Form, Table
from mpkc.dialects.tops.base import Mode, Operator
from mpkc.runtime.cuda.queues import LEAST, QueueCapacities, events_at_once
from mpkc.runtime.verify.order import Order
from mpkc.runtime.verify.report import SHOWN, Check, Failure, Report, TaskFailure, checked

Found = tuple[int, int, list[Failure]]  # looked at, wrong, the first of these


@dataclass(frozen=True)
class Runtime:
    """What a graph is to run on.

    Attributes:
        workers, schedulers: how many.
        queues: capacities of their queues.
        events: records of `mpk::Event` as they go to the device, fields `needed`, `first` and `last`; [events].
    """

    workers: int
    schedulers: int
    queues: QueueCapacities
    events: npt.NDArray[np.void] | None = None


def verify_graph(
    table: Table, infos: Sequence[OperatorInfo], operators: Sequence[Operator] = (), runtime: Runtime | None = None
) -> Report:
    """Check a table; where it is no graph at all, that is all there is to say.

    Args:
        infos: what the graph knows of its operators.
        operators: those of its function, in program order; none where the graph has none: then nothing is known of
            what its tasks touch, and dependencies and races are not checked.
        runtime: what it is to run on; None leaves out the checks of progress and of records.
    """
    graph = _Graph(table, infos, operators)
    checks = [checked("tasks and events", graph.structure)]
    if not checks[0].failed:
        if runtime is not None:
            checks.append(checked("progress", lambda: graph.progress(runtime)))
            if runtime.events is not None:
                records = runtime.events
                checks.append(checked("records", lambda: graph.records(records)))
        if operators:
            checks += [checked("dependencies", graph.dependencies), checked("races", graph.races)]
    return Report(tuple(checks))


def refused(message: str) -> Report:
    """The report of a graph that its own verifier refuses, so that nothing more can be said of it."""
    return Report((Check("tasks and events", 1, 1, (TaskFailure("tasks and events", message),), 0.0),))


class _Graph:
    def __init__(self, table: Table, infos: Sequence[OperatorInfo], operators: Sequence[Operator]):
        self.table, self.infos, self.operators = table, infos, operators
        self.regions = Regions()

    def structure(self) -> Found:
        """The rules of the dialect: every task of every operator once, every event fires, no cycle."""
        table, count = self.table, self.table.task_count + self.table.event_count
        try:
            verify_table(table, self.infos)
        except VerifyException as err:
            cycle = tuple(find_cycle(table)) if "wait for each other" in str(err) else ()
            return count, 1, [TaskFailure("tasks and events", str(err), tasks=cycle)]
        return count, 0, []

    def progress(self, runtime: Runtime) -> Found:
        """The premises of the proof that no worker's speed leads to a deadlock."""
        table, queues = self.table, runtime.queues
        wrong: list[str] = []
        if not table.task_count:
            wrong.append("the graph has no tasks, so no task ends an iteration")
        if table.form is not Form.LINEAR:
            wrong.append(f"the graph is {table.form}, not linear: tasks may stand in a queue before what they wait for")
        bound = max(LEAST, events_at_once(table.event_count, runtime.schedulers))
        for what, capacity, least in (("scheduler", queues.event, bound), ("worker", queues.task, LEAST)):
            if capacity < least:
                wrong.append(
                    f"the queue of a {what} has {capacity} slots: {least - capacity} fewer than the {least} it needs"
                )
            elif capacity & (capacity - 1):
                wrong.append(f"the queue of a {what} has {capacity} slots, but positions wrap: it needs a power of two")
        last = -1 if table.task_worker is None else int(table.task_worker.max(initial=-1))
        if last >= runtime.workers:
            wrong.append(f"tasks are assigned to worker {last}, but there are {runtime.workers} workers")
        return runtime.workers + runtime.schedulers, len(wrong), [TaskFailure("progress", message) for message in wrong]

    def records(self, records: npt.NDArray[np.void]) -> Found:
        """What the device is told of each event, against the table."""
        table = self.table
        if len(records) != table.event_count:
            message = f"the device gets {len(records)} events, but the graph has {table.event_count}"
            return len(records), 1, [TaskFailure("records", message)]
        wanted = {
            "needed": table.triggers_needed,
            "first": table.waiting.least(),
            "last": table.waiting.greatest(),
        }
        found = [
            (event, name, int(records[name][event]), int(column[event]))
            for name, column in wanted.items()
            for event in np.flatnonzero(records[name] != column).tolist()
        ]
        return len(records), len(found), [self._record_failure(*each) for each in sorted(found)[:SHOWN]]

    def _record_failure(self, event: int, name: str, told: int, right: int) -> Failure:
        tasks = [int(task) for task in (self.table.triggering if name == "needed" else self.table.waiting)[event]]
        what = {
            "needed": f"fires after {told} triggers, but {right} tasks trigger it, {self._name(tasks[0])} the first",
            "first": f"starts tasks from {told} on, but the first that waits on it is {self._name(right)}, {right}",
            "last": f"starts tasks up to {told}, but the last that waits on it is {self._name(right)}, {right}",
        }
        return TaskFailure(
            "records", f"event {event} {what[name]}", (tasks[0] if name == "needed" else right,), (event,)
        )

    def dependencies(self) -> Found:
        """Whether each pair of dependent tasks is ordered: readers of tensors behind those that write them."""
        return self._enforced("dependencies", [each for each in self._between if not _of_buffer(each.value)])

    def races(self) -> Found:
        """Whether any two tasks that touch the same bytes of a buffer, one of them writing, are ordered.

        Buffers are memref operands, planned memory in which places are used again, and values that several tasks of
        one operator write. Where data chooses which part of a region they take, these keep apart themselves.
        """
        try:
            reuse = memory_dependencies(self.operators, self.regions)
        except OpError as err:
            return 1, 1, [TaskFailure("races", err.message)]
        between = self._enforced("races", [*(each for each in self._between if _of_buffer(each.value)), *reuse])
        within = self._enforced("races", self._within, either=True)
        return between[0] + within[0], between[1] + within[1], between[2] + within[2]

    @cached_property
    def _between(self) -> list[Dependency]:
        return dependencies(self.operators, self.regions)

    @cached_property
    def _within(self) -> list[Dependency]:
        """Of each operator the pairs of its own tasks that touch the same elements of a value, one of them writing."""
        found: list[Dependency] = []
        for number, op in enumerate(self.operators):
            values = [*op.operands, *op.results]
            for x, y in combinations_with_replacement(self.regions.accesses(op), 2):
                same = values[x.value] is values[y.value]
                if same and (x.mode.writes or y.mode.writes) and (x.moved is None or y.moved is None):
                    i, j = self.regions.overlaps(x, y)
                    apart = i < j if x is y else i != j
                    found.append(Dependency(values[x.value], number, number, x, y, i[apart], j[apart]))
        return found

    @cached_property
    def _order(self) -> Order:
        return Order.of(self.table)

    @cached_property
    def _first(self) -> Index:
        return first_tasks(self.operators)

    @cached_property
    def _numbers(self) -> Index:
        """The number of each task in the table, operator by operator."""
        real = np.flatnonzero(self.table.task_operator != EMPTY)
        numbers = np.empty(len(real), dtype=np.int64)
        numbers[self._first[self.table.task_operator[real]] + self.table.task_tile[real]] = real
        return numbers

    def _enforced(self, check: str, found: Sequence[Dependency], either: bool = False) -> Found:
        """Whether the events order each pair; with `either`, in any direction."""
        none = np.zeros(0, dtype=np.int64)
        sources = np.concatenate([none, *(self._numbers[self._first[each.producer] + each.sources] for each in found)])
        targets = np.concatenate([none, *(self._numbers[self._first[each.consumer] + each.targets] for each in found)])
        lacking = self._order.lacks(sources, targets)
        if either:
            lacking &= self._order.lacks(targets, sources)
        wrong = np.flatnonzero(lacking)
        ends = np.cumsum([0, *(len(each.sources) for each in found)])
        failures: list[Failure] = []
        for pair in map(int, wrong[:SHOWN]):
            at = int(np.searchsorted(ends, pair, side="right")) - 1
            tasks = int(sources[pair]), int(targets[pair])
            failures.append(self._unordered(check, found[at], pair - int(ends[at]), *tasks))
        return len(sources), len(wrong), failures

    def _unordered(self, check: str, each: Dependency, place: int, source: int, target: int) -> Failure:
        """Two tasks that touch the same and that nothing orders."""
        consumer = self.operators[each.consumer]
        written = [*consumer.operands, *consumer.results][each.after.value]
        i, j = int(each.sources[place]), int(each.targets[place])
        if written is each.value:
            lo, hi = np.maximum(each.before.lo[i], each.after.lo[j]), np.minimum(each.before.hi[i], each.after.hi[j])
            region = self._region(each.value, lo, hi)
            what = f"{region} and {self._name(target)} {VERBS[each.after.mode]} it"
        else:
            region = self._region(each.value, each.before.lo[i], each.before.hi[i])
            what = (
                f"{region} and {self._name(target)} writes {self._region(written, each.after.lo[j], each.after.hi[j])}"
            )
            what += ", on the same bytes"
        message = (
            f"{self._name(source)} {VERBS[each.before.mode]} {what}, but no events order them: "
            f"nothing leads from task {source} to task {target}"
        )
        return TaskFailure(check, message, (source, target), region=region)

    def _region(self, value: SSAValue, lo: Index, hi: Index) -> str:
        """The name of a value and a box of it, as NumPy writes slices."""
        box = ", ".join(f"{first}:{end}" for first, end in zip(lo.tolist(), hi.tolist(), strict=True))
        if isinstance(value, BlockArgument):
            return f"[{box}] of {value.name_hint or f'arg{value.index}'}"
        owner = next((number for number, op in enumerate(self.operators) if value.owner is op), None)
        return f"[{box}] of {'a value' if owner is None else f'the result of {self.infos[owner].name}'}"

    def _name(self, task: int) -> str:
        return task_name(self.infos, task, int(self.table.task_operator[task]), int(self.table.task_tile[task]))


VERBS = {Mode.READ: "reads", Mode.WRITE: "writes", Mode.UPDATE: "updates"}


def _of_buffer(value: SSAValue) -> bool:
    return isinstance(value.type, MemRefType)
