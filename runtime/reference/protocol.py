"""A mega-kernel's protocol in virtual time: workers, schedulers and their queues as discrete events (docs/simulate.md).

Follows runtime/cuda/include/mpk (MPK, "Because MPK decomposes computation"): a worker takes a task that was sent, else
the next one that was assigned to it if that is due; when a task ends, it adds one to its event's counter, and the last
one sends the event to scheduler `event mod schedulers`; that sends the event's tasks to workers. Event number E, of as
many tasks as trigger nothing else, ends an iteration.

An atomic addition on a counter or on a queue's tail costs `signal` of the machine, taking what is there `wait`, a step
of a scheduler `register`. All times are ns.
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from mpkc.dialects.tgraph_table import Table
from mpkc.runtime.cuda.queues import QueueCapacities
from mpkc.runtime.machine import Costs

Cost: TypeAlias = npt.NDArray[np.float64]
Policy = Literal["decentralized", "global"]
Steps: TypeAlias = Generator[float | None, None, None]  # a time to let pass, or None: until somebody wakes the process


@dataclass(frozen=True)
class Faults:
    """What goes wrong on purpose.

    Attributes:
        lost_trigger: a task whose end nobody is told.
        missing_worker: a worker that tasks are sent to, but that runs none.
    """

    lost_trigger: int | None = None
    missing_worker: int | None = None


@dataclass(frozen=True)
class Setup:
    """What a graph runs on.

    Attributes:
        workers, schedulers: how many.
        queues: capacities; here they need not be powers of two.
        costs: of control.
        policy: which worker a scheduler sends a task to: `decentralized`, task t to worker t mod workers;
            `global`, to the one with the least work sent and not yet done.
        iterations: of the graph, at least 1.
    """

    workers: int
    schedulers: int
    queues: QueueCapacities
    costs: Costs
    policy: Policy = "decentralized"
    iterations: int = 1
    faults: Faults = Faults()


@dataclass(frozen=True)
class Run:
    """One task of one iteration."""

    task: int
    worker: int
    start: float
    end: float


@dataclass(frozen=True)
class Head:
    """An event that keeps tasks from running, though nothing keeps it from firing but tasks that ran or were sent.

    Attributes:
        event: its number; that of the end of an iteration is the number of events.
        has, needs: triggers in this iteration.
        waiting, missing: the tasks that wait on it, and those that have not triggered it.
    """

    event: int
    has: int
    needs: int
    waiting: tuple[int, ...]
    missing: tuple[int, ...]


@dataclass(frozen=True)
class Blocked:
    """What a worker or scheduler waits for; `task` and `event` are what it was about to take or to send."""

    who: Literal["worker", "scheduler"]
    number: int
    waits: str
    task: int | None = None
    event: int | None = None


@dataclass(frozen=True)
class Deadlock:
    """Where everything stands still, in the iteration of that number, from 1."""

    iteration: int
    heads: tuple[Head, ...]
    blocked: tuple[Blocked, ...]


@dataclass(frozen=True)
class Simulation:
    """What happened.

    Attributes:
        time: until the last iteration ended, or nothing moved any more.
        deadlock: why it did not end; None where it did.
        runs: all tasks that ended, in the order in which they did.
        worker_control, scheduler_busy: [workers], [schedulers] time spent on queues, counters and sending.
        taken: int64 [workers, 2] tasks that were sent to a worker, and that were assigned to it.
    """

    time: float
    deadlock: Deadlock | None
    runs: list[Run]
    worker_control: list[float]
    scheduler_busy: list[float]
    taken: npt.NDArray[np.int64]

    def worker_busy(self) -> npt.NDArray[np.float64]:
        """[workers] time in tasks."""
        workers = np.array([run.worker for run in self.runs], dtype=np.int64)
        spans = np.array([run.end - run.start for run in self.runs], dtype=np.float64)
        return np.bincount(workers, spans, minlength=len(self.worker_control)).astype(np.float64)


def simulate(table: Table, cost: Cost, setup: Setup) -> Simulation:
    """Run a linear table.

    Args:
        cost: [tasks] how long each takes.
    """
    return _Kernel(table, cost, setup).run()


def critical_path(table: Table, cost: Cost) -> float:
    """The longest time along any path of a linear table: no iteration takes less, whatever runs it."""
    wait: list[int] = table.task_wait.tolist()
    trigger: list[int] = table.task_trigger.tolist()
    costs: list[float] = cost.tolist()
    ready = [0.0] * table.event_count
    longest = 0.0
    for task, own in enumerate(costs):
        end = own + (ready[wait[task]] if wait[task] >= 0 else 0.0)
        if trigger[task] >= 0:
            ready[trigger[task]] = max(ready[trigger[task]], end)
        longest = max(longest, end)
    return longest


@dataclass(eq=False)
class _Process:
    """A worker or a scheduler; `parked` says what it waits to be woken for, `blocked` tells people."""

    blocked: Blocked
    steps: Steps | None = None
    parked: str = ""


@dataclass(eq=False)
class _Queue:
    capacity: int
    owner: str
    items: deque[int] = field(default_factory=deque[int])
    reader: _Process | None = None
    pushing: deque[tuple[_Process, int]] = field(default_factory=deque[tuple[_Process, int]])


class _Kernel:
    def __init__(self, table: Table, cost: Cost, setup: Setup):
        self.table, self.setup = table, setup
        self.costs = setup.costs
        self.cost: list[float] = cost.tolist()
        self.end_event = table.event_count
        self.wait: list[int] = table.task_wait.tolist()
        self.trigger: list[int] = np.where(table.task_trigger < 0, self.end_event, table.task_trigger).tolist()
        self.needed: list[int] = np.bincount(self.trigger, minlength=self.end_event + 1).tolist()
        assert table.event_first is not None
        assert table.event_last is not None
        starting = int(np.count_nonzero(table.task_wait < 0))
        self.first: list[int] = [*table.event_first.tolist(), 0]
        self.last: list[int] = [*table.event_last.tolist(), starting - 1]
        worker = np.full(table.task_count, -1) if table.task_worker is None else table.task_worker
        self.assigned = [np.flatnonzero(worker == number).tolist() for number in range(setup.workers)]
        self.is_assigned: list[bool] = [*(worker[table.event_first] >= 0).tolist(), False]
        self.counters = [0] * (self.end_event + 1)
        self.watchers: list[list[_Process]] = [[] for _ in range(self.end_event + 1)]
        self.load = [0.0] * setup.workers
        self.task_queues = [_Queue(setup.queues.task, f"worker {number}") for number in range(setup.workers)]
        self.event_queues = [_Queue(setup.queues.event, f"scheduler {number}") for number in range(setup.schedulers)]
        self.iteration, self.finished, self.now, self.sequence = 0, False, 0.0, 0
        self.heap: list[tuple[float, int, _Process]] = []
        self.runs: list[Run] = []
        self.triggered = [0] * table.task_count
        self.control, self.scheduling = [0.0] * setup.workers, [0.0] * setup.schedulers
        self.taken = np.zeros((setup.workers, 2), dtype=np.int64)

    def run(self) -> Simulation:
        setup = self.setup
        processes: list[_Process] = []
        for number in range(setup.workers):
            process = _Process(Blocked("worker", number, "never runs"))
            if number != setup.faults.missing_worker:
                process.steps = self._work(process, number)
            processes.append(process)
        for number in range(setup.schedulers):
            process = _Process(Blocked("scheduler", number, "never runs"))
            process.steps = self._schedule(process, number)
            processes.append(process)
        self.event_queues[self.end_event % setup.schedulers].items.append(self.end_event)
        for process in processes:
            if process.steps:
                self._at(0.0, process)
        self._loop()
        deadlock = None if self.finished else self._deadlock(processes)
        return Simulation(self.now, deadlock, self.runs, self.control, self.scheduling, self.taken)

    def _loop(self) -> None:
        while self.heap and not self.finished:
            self.now, _, process = heappop(self.heap)
            assert process.steps
            delay = next(process.steps, None)
            if delay is not None:
                self._at(self.now + delay, process)

    def _at(self, time: float, process: _Process) -> None:
        self.sequence += 1
        heappush(self.heap, (time, self.sequence, process))

    def _park(self, process: _Process, reason: str, blocked: Blocked) -> None:
        process.parked, process.blocked = reason, blocked

    def _wake(self, process: _Process | None, reason: str) -> None:
        if process is not None and process.parked == reason:
            process.parked = ""
            self._at(self.now, process)

    def _work(self, me: _Process, number: int) -> Steps:
        queue, assigned = self.task_queues[number], self.assigned[number]
        place = round = 0
        while True:
            if queue.items:
                task, kind = self._pop(queue), 0
            elif assigned and self._is_due(assigned[place], round):
                task, kind = assigned[place], 1
                place += 1
                if place == len(assigned):
                    place, round = 0, round + 1
            else:
                head = assigned[place] if assigned else None
                event = None if head is None else self.wait[head]
                what = "waits for a task" if head is None else "waits for a task, or for its next one to be due"
                queue.reader = me
                if event is not None:
                    self.watchers[event].append(me)
                self._park(me, "task", Blocked("worker", number, what, head, event))
                yield None
                continue
            self.taken[number, kind] += 1
            yield self.costs.wait
            self.control[number] += self.costs.wait
            start = self.now
            yield self.cost[task]
            self.runs.append(Run(task, number, start, self.now))
            if kind == 0:
                self.load[number] -= self.cost[task]
            if task != self.setup.faults.lost_trigger:
                yield from self._end(me, number, task)

    def _is_due(self, task: int, round: int) -> bool:
        event = self.wait[task]
        return self.counters[event] >= self.needed[event] * (round + 1)

    def _end(self, me: _Process, number: int, task: int) -> Steps:
        """Trigger the task's event; the last one sends it, or wakes those whose tasks are assigned already."""
        event, due = self.trigger[task], self.needed[self.trigger[task]] * self.iteration
        yield self.costs.signal
        self.control[number] += self.costs.signal
        self.counters[event] += 1
        self.triggered[task] += 1
        if self.counters[event] != due:
            return
        if self.is_assigned[event]:
            watchers, self.watchers[event] = self.watchers[event], []
            for process in watchers:
                self._wake(process, "task")
        else:
            yield self.costs.signal
            self.control[number] += self.costs.signal
            yield from self._push(self.event_queues[event % self.setup.schedulers], event, me, "worker", number, event)

    def _schedule(self, me: _Process, number: int) -> Steps:
        queue, choose = self.event_queues[number], self._policy()
        while True:
            if not queue.items:
                queue.reader = me
                self._park(me, "task", Blocked("scheduler", number, "waits for an event"))
                yield None
                continue
            event = self._pop(queue)
            step = self.costs.wait + self.costs.register
            yield step
            self.scheduling[number] += step
            if event == self.end_event:
                if self.iteration == self.setup.iterations:
                    self.finished = True
                    return
                self.iteration += 1
            for task in range(self.first[event], self.last[event] + 1):
                yield self.costs.signal
                self.scheduling[number] += self.costs.signal
                worker = choose(task)
                self.load[worker] += self.cost[task]
                yield from self._push(self.task_queues[worker], task, me, "scheduler", number, event)

    def _policy(self) -> Callable[[int], int]:
        """The worker that a scheduler sends a task to."""
        workers, load = range(self.setup.workers), self.load
        if self.setup.policy == "global":
            return lambda task: min(workers, key=load.__getitem__)
        return lambda task: task % len(workers)

    def _push(
        self,
        queue: _Queue,
        value: int,
        me: _Process,
        who: Literal["worker", "scheduler"],
        number: int,
        event: int,
    ) -> Steps:
        """Put a value into a queue; where it is full, wait for a slot, first come, first served."""
        if len(queue.items) < queue.capacity:
            queue.items.append(value)
            self._wake(queue.reader, "task")
            return
        queue.pushing.append((me, value))
        task = value if who == "scheduler" else None
        waits = f"waits for a slot in the queue of {queue.owner}, which has {queue.capacity}"
        self._park(me, "slot", Blocked(who, number, waits, task, event))
        yield None

    def _pop(self, queue: _Queue) -> int:
        value = queue.items.popleft()
        if queue.pushing:
            process, waiting = queue.pushing.popleft()
            queue.items.append(waiting)
            self._wake(process, "slot")
        return value

    def _deadlock(self, processes: Sequence[_Process]) -> Deadlock:
        done = self.iteration - 1
        has = [counter - needed * done for counter, needed in zip(self.counters, self.needed, strict=True)]
        late = [event for event, needed in enumerate(self.needed) if has[event] < needed]
        is_late = set(late)
        held = self._behind_heads(processes, is_late)
        tasks_of: dict[int, list[int]] = {event: [] for event in late}
        for task, event in enumerate(self.trigger):
            if event in is_late and self.triggered[task] <= done:
                tasks_of[event].append(task)
        heads = [
            Head(event, has[event], self.needed[event], self._waiting(event), tuple(tasks_of[event]))
            for event in late
            if not any(self.wait[task] in is_late or task in held for task in tasks_of[event])
        ]
        blocked = [process.blocked for process in processes if process.parked or process.steps is None]
        return Deadlock(self.iteration, tuple(heads), tuple(blocked))

    def _behind_heads(self, processes: Sequence[_Process], late: set[int]) -> set[int]:
        """The tasks that stand in their workers' lists behind one whose event is late."""
        held: set[int] = set()
        for process, assigned in zip(processes, self.assigned, strict=False):
            head = process.blocked.task
            if process.parked == "task" and head is not None and self.wait[head] in late:
                held.update(assigned[assigned.index(head) + 1 :])
        return held

    def _waiting(self, event: int) -> tuple[int, ...]:
        return () if event == self.end_event else tuple(range(self.first[event], self.last[event] + 1))
