"""What a mega-kernel reads at run time: descriptors, events, queues and buffers, laid out for some memory."""

import ctypes
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import MemRefType, TensorType, i32
from xdsl.ir import Attribute, SSAValue

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tgraph_table import Table
from mpkc.dialects.tops.base import Array, Operator, Tasks, element_of
from mpkc.dialects.tops.decode import DecodeSignature, decode_signature, is_decode
from mpkc.dialects.tops.function import argument_names
from mpkc.dialects.tops.memory import spans
from mpkc.dialects.tops.pool import ALIGNMENT, pool_bytes
from mpkc.dialects.tops.weight import WeightOp
from mpkc.runtime.cuda.bodies import PAGE_FLOATS, SCRATCH_FLOATS
from mpkc.runtime.cuda.emit import Program
from mpkc.runtime.cuda.queues import power_of_two, queue_capacities

VIEW = np.dtype(
    [("data", np.uint64), ("rows", np.uint32), ("columns", np.uint32), ("stride", np.uint32), ("origin", np.uint32)]
)
EVENT = np.dtype([(name, np.uint32) for name in ("needed", "first", "last", "assigned")])
SLOT = np.dtype([("turn", np.uint32), ("value", np.uint32)])
NONE = EMPTY_KIND = 0xFFFFFFFF

u32, pointer = ctypes.c_uint32, ctypes.c_void_p


class Params(ctypes.Structure):
    """`mpk::Params` of schedule.h."""

    _fields_ = [
        *((name, pointer) for name in ("tasks", "events", "counters", "task_slots", "task_tails")),
        *((name, pointer) for name in ("event_slots", "event_tails", "loop")),
        *((name, pointer) for name in ("assigned", "assigned_offsets", "profile")),
        *((name, u32) for name in ("task_capacity", "event_capacity", "events_count", "ending", "starting")),
        *((name, u32) for name in ("workers", "schedulers", "unused")),
    ]


LOOP = np.dtype(
    {
        "names": ["iteration", "last", "prompt_length", "stop_count", "prompt", "stop", "token", "position", "chosen"]
        + ["produced", "consumed", "stopped", "entries", "capacity"],
        "formats": [np.uint32] * 4 + [np.uint64] * 9 + [np.uint32],
        "offsets": [0, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88],
        "itemsize": 96,
    }
)


class Memory(Protocol):
    """Where a kernel's data lies: host memory (NumPy) or a device's (CuPy)."""

    def place(self, array: Array) -> int:
        """The address of a copy of `array` that lives as long as the memory; of the array itself where possible."""
        ...

    def place_shared(self, array: Array) -> tuple[int, Array]:
        """The address at which the kernel, and an array through which the host, see the same memory at once."""
        ...

    def read(self, address: int) -> Array:
        """What now stands in the array placed at `address`."""
        ...

    def write(self, address: int, array: Array) -> None:
        """Put `array` in the place of the array of the same shape and dtype that was placed at `address`."""
        ...

    def fresh(self) -> "Memory":
        """A memory of the same kind with nothing in it."""
        ...


@dataclass(frozen=True)
class Request:
    """What one launch decodes.

    Attributes:
        prompt: token ids.
        new_tokens: tokens to choose at most.
        stop: token ids that end the text.
        lockstep: whether the kernel waits after each iteration until the host has read it.
    """

    prompt: tuple[int, ...]
    new_tokens: int
    stop: tuple[int, ...] = ()
    lockstep: bool = False

    @property
    def iterations(self) -> int:
        return len(self.prompt) + self.new_tokens - 1


class Image:
    """A program in memory, ready to be launched with `workers` workers and `schedulers` scheduler warps.

    Args:
        weight: the tensor of a weight, float32 of its shape.
        inputs: arrays by argument name, of the argument's shape; buffers not named start as zeros. Host memory is
            used in place where dtype and layout allow, so buffers and inputs are updated there.
        beside: an image whose weights, buffers and activation pool this one uses too, where names and types agree;
            the two must not be launched at the same time. Its pool must be large enough.
    """

    def __init__(
        self,
        program: Program,
        memory: Memory,
        weight: Callable[[WeightOp], Array],
        inputs: Mapping[str, Array],
        workers: int,
        schedulers: int,
        beside: "Image | None" = None,
    ):
        self.program, self.memory, self._launch = program, memory, memory
        self._shared: dict[str, int] = {} if beside is None else beside._shared
        self._weight = weight
        self.workers, self.schedulers = workers, schedulers
        self.decode: DecodeSignature | None = decode_signature(program.func) if is_decode(program.func) else None
        self.addresses: dict[SSAValue, int] = {}
        self._place_values(weight, inputs)
        table = program.table
        self._tasks = memory.place(descriptors(program, self.addresses))
        self._events = memory.place(events(program.table))
        items, offsets = assigned_tasks(table, workers)
        self._assigned, self._assigned_offsets = memory.place(items), memory.place(offsets)
        self._profile = memory.place(np.zeros((workers, 2), np.uint32))
        self.ending = int(np.count_nonzero(table.task_trigger < 0))
        self.starting = int(np.count_nonzero(table.task_wait < 0))

    def sibling(self, program: Program, inputs: Mapping[str, Array]) -> "Image":
        """Another program beside this one; `inputs` are those of its arguments that the two do not share."""
        return Image(program, self.memory, self._weight, inputs, self.workers, self.schedulers, self)

    def _place_values(self, weight: Callable[[WeightOp], Array], inputs: Mapping[str, Array]) -> None:
        func = self.program.func
        for name, argument in zip(argument_names(func), func.args, strict=True):
            self.addresses[argument] = self._place_argument(name, argument.type, inputs)
        places = spans(self.program.operators)
        pool = self._place_pool(pool_bytes(func) or 0) if places else 0
        for op in func.body.block.ops:
            if isinstance(op, WeightOp):
                self.addresses[op.result] = self._once(f"weight {op.key} {op.result.type}", lambda op=op: weight(op))
            elif isinstance(op, Operator):
                for result in op.results:
                    self.addresses[result] = (
                        pool + places[result][0] if result in places else self.memory.place(unwritten(result.type))
                    )

    def _place_argument(self, name: str, type: Attribute, inputs: Mapping[str, Array]) -> int:
        shape, dtype = layout(type)

        def array() -> Array:
            given = inputs.get(name)
            return np.zeros(shape, dtype) if given is None else np.ascontiguousarray(given, dtype)

        return (
            self._once(f"buffer {name} {type}", array) if isinstance(type, MemRefType) else self.memory.place(array())
        )

    def _place_pool(self, size: int) -> int:
        """The address of the activation pool, every element of it NaN, or -1."""
        pool = self._once("pool", lambda: aligned_bytes(size))
        held = self.memory.read(pool).size
        if held < size:
            raise ValueError(f"the image beside has a pool of {held} bytes, but {size} are needed: begin with this one")
        return pool

    def _once(self, name: str, array: Callable[[], Array]) -> int:
        """The address of what images beside each other share under a name; placed where none has done it yet."""
        if name not in self._shared:
            self._shared[name] = self.memory.place(array())
        return self._shared[name]

    def read(self, value: SSAValue) -> Array:
        """What now stands in the memory of an argument, of a weight, or of a result that is not in the pool."""
        return self.memory.read(self.addresses[value])

    def write(self, value: SSAValue, array: Array) -> None:
        """Change an argument."""
        self.memory.write(self.addresses[value], np.ascontiguousarray(array, layout(value.type)[1]))

    def results(self) -> list[Array]:
        """The function's results."""
        terminator = self.program.func.body.block.last_op
        assert terminator is not None
        return [self.read(value) for value in terminator.operands]

    def profile(self) -> Array:
        """[workers, 2] tasks of the last launch that each worker was sent just in time, and that it was assigned."""
        return self.memory.read(self._profile)

    def params(self, request: Request | None) -> tuple[Params, "TokenRing"]:
        """The parameters of one launch, with fresh counters and queues, and the ring that the host reads.

        They hold until the next call.
        """
        table = self.program.table
        memory = self._launch = self.memory.fresh()
        ring = TokenRing(memory, 1 if request is None or request.lockstep else power_of_two(request.iterations + 1))
        queues = queue_capacities(table, self.workers, self.schedulers)
        event_slots, event_tails = empty_queues(self.schedulers, queues.event), np.zeros(self.schedulers, np.uint32)
        first = table.event_count % self.schedulers  # the scheduler of the event that starts an iteration
        event_slots[first, 0] = (1, table.event_count)
        event_tails[first] = 1
        return Params(
            tasks=self._tasks,
            events=self._events,
            counters=memory.place(np.zeros(table.event_count + 1, np.uint32)),
            task_slots=memory.place(empty_queues(self.workers, queues.task)),
            task_tails=memory.place(np.zeros(self.workers, np.uint32)),
            event_slots=memory.place(event_slots),
            event_tails=memory.place(event_tails),
            loop=memory.place(self._loop(request, ring)),
            assigned=self._assigned,
            assigned_offsets=self._assigned_offsets,
            profile=self._profile,
            task_capacity=queues.task,
            event_capacity=queues.event,
            events_count=table.event_count,
            ending=self.ending,
            starting=self.starting,
            workers=self.workers,
            schedulers=self.schedulers,
        ), ring

    def _loop(self, request: Request | None, ring: "TokenRing") -> npt.NDArray[np.void]:
        loop = np.zeros((), LOOP)
        loop["last"] = request.iterations if request else 1
        for field in ("produced", "consumed", "stopped", "entries"):
            loop[field] = getattr(ring, field)
        loop["capacity"] = ring.capacity
        if request and self.decode:
            arguments, terminator = self.program.func.args, self.program.func.body.block.last_op
            assert terminator is not None
            loop["prompt_length"], loop["stop_count"] = len(request.prompt), len(request.stop)
            loop["prompt"] = self._launch.place(np.array(request.prompt, np.uint32))
            loop["stop"] = self._launch.place(np.array([*request.stop, 0], np.uint32))
            loop["token"] = self.addresses[arguments[self.decode.token]]
            loop["position"] = self.addresses[arguments[self.decode.positions]]
            loop["chosen"] = self.addresses[terminator.operands[self.decode.next_token]]
        return loop


class TokenRing:
    """The ring through which a running kernel tells the token that each iteration chose (`mpk::Ring`)."""

    def __init__(self, memory: Memory, capacity: int):
        self.capacity = capacity
        self.produced, self._produced = memory.place_shared(np.zeros(1, np.uint32))
        self.consumed, self._consumed = memory.place_shared(np.zeros(1, np.uint32))
        self.stopped, self._stopped = memory.place_shared(np.zeros(1, np.uint32))
        self.entries, self._entries = memory.place_shared(np.zeros(capacity, np.uint32))

    def tokens(self, running: Callable[[], bool], wait: Callable[[], None]) -> Generator[int]:
        """The tokens as a kernel tells them, until it has ended; a caller that leaves early ends it.

        Args:
            running: whether the kernel may still tell more.
            wait: passes a little time.
        """
        try:
            while True:
                more = running()  # before the look: what the kernel told before it ended is seen
                token = self.peek()
                if token is not None:
                    yield token
                    self.advance()
                elif more:
                    wait()
                else:
                    return
        finally:
            self.stop()

    def peek(self) -> int | None:
        """The oldest token not yet read, or None."""
        consumed = int(self._consumed[0])
        return None if int(self._produced[0]) == consumed else int(self._entries[consumed % self.capacity])

    def stop(self) -> None:
        """The host reads no more: the kernel ends with the iteration that it is in."""
        self._stopped[0] = 1

    def advance(self) -> None:
        """The host has read the oldest token and what belongs to its iteration."""
        self._consumed[0] += 1


def layout(type: Attribute) -> tuple[tuple[int, ...], npt.DTypeLike]:
    """Shape and NumPy dtype of a tensor or buffer."""
    assert isinstance(type, TensorType | MemRefType)
    return type.get_shape(), np.int32 if element_of(cast(Attribute, type)) == i32 else np.float32


def unwritten(type: Attribute) -> Array:
    """An array whose elements show where they are read before they were written: NaN, or -1."""
    shape, dtype = layout(type)
    return np.full(shape, np.nan if dtype is np.float32 else -1, dtype)


def aligned_bytes(size: int) -> Array:
    """`size` bytes from a multiple of ALIGNMENT on. Floats in them are NaN, integers -1."""
    block = np.full(size + ALIGNMENT, 0xFF, np.uint8)
    start = -int(block.ctypes.data) % ALIGNMENT
    return block[start : start + size]


def empty_queues(count: int, capacity: int) -> npt.NDArray[np.void]:
    """`count` circular queues whose slots are free for the positions 0 .. capacity - 1."""
    slots = np.zeros((count, capacity), SLOT)
    slots["turn"] = np.arange(capacity)
    return slots


def assigned_tasks(table: Table, workers: int) -> tuple[Array, Array]:
    """The tasks assigned to each worker ahead of time, worker by worker in linear order, and where each list starts.

    Raises:
        ValueError: where the table was made for more workers.
    """
    worker = np.full(table.task_count, -1) if table.task_worker is None else table.task_worker
    if worker.max(initial=-1) >= workers:
        raise ValueError(f"the task graph assigns tasks to worker {worker.max()}, but there are {workers} workers")
    order = np.argsort(worker, kind="stable")
    bounds = np.searchsorted(worker[order], np.arange(workers + 1))
    items = np.append(order[bounds[0] :], 0).astype(np.uint32)
    return items, (bounds - bounds[0]).astype(np.uint32)


def events(table: Table) -> npt.NDArray[np.void]:
    """`mpk::Event` of each event of a linear table."""
    records = np.zeros(table.event_count, EVENT)
    records["needed"], records["first"], records["last"] = table.triggers_needed, table.event_first, table.event_last
    if table.task_worker is not None:
        records["assigned"] = table.task_worker[table.event_first] >= 0
    return records


def task_record(views: int) -> np.dtype[np.void]:
    """`mpk::Task` compiled for `views` views."""
    header = [(name, np.uint32) for name in ("kind", "triggers", "operands", "waits")]
    return np.dtype([*header, ("view", VIEW, views)])


def descriptors(program: Program, addresses: Mapping[SSAValue, int]) -> npt.NDArray[np.void]:
    """`mpk::Task` of each task: its kind, the event it triggers, and the regions that its operator declares."""
    table = program.table
    records = np.zeros(table.task_count, task_record(program.views))
    records["kind"] = EMPTY_KIND
    records["triggers"] = np.where(table.task_trigger < 0, table.event_count, table.task_trigger)
    records["waits"] = np.where(table.task_wait < 0, NONE, table.task_wait)
    order = np.argsort(table.task_operator, kind="stable")
    bounds = np.searchsorted(table.task_operator[order], np.arange(len(program.operators) + 1))
    for number, op in enumerate(program.operators):
        mine = order[bounds[number] : bounds[number + 1]]
        records["kind"][mine] = program.kinds[number]
        records["operands"][mine] = len(op.operands)
        records["view"][mine] = views(op, op.tasks(), addresses, program.views)[table.task_tile[mine]]
    return records


def views(op: Operator, tasks: Tasks, addresses: Mapping[SSAValue, int], width: int) -> npt.NDArray[np.void]:
    """[tasks, width] views of the operands and results of each task of an operator."""
    records = np.zeros((tasks.count, width), VIEW)
    values, accesses = [*op.operands, *op.results], op.accesses(tasks)
    if len({access.value for access in accesses}) < len(accesses) or any(access.step for access in accesses):
        raise OpError(op, f"a task descriptor describes boxes, but '{op.name}' has a region that is none")
    for access in accesses:
        value = values[access.value]
        shape, dtype = layout(value.type)
        strides = np.cumprod([1, *reversed(shape[1:])], dtype=np.int64)[::-1]
        view = records[:, access.value]
        view["data"] = addresses[value] + access.lo @ strides * np.dtype(dtype).itemsize
        extent = access.hi - access.lo
        view["rows"] = extent[:, 0] if len(shape) > 1 else 1
        view["columns"] = extent[:, -1]
        view["stride"] = np.prod(shape[1:] or shape)
        view["origin"] = access.lo[:, -1]
    return records


def shared_bytes(program: Program) -> int:
    """Bytes of near memory that a block needs: `mpk::Shared` of worker.h."""
    pages, semaphores = 4, 4 + 4 + 1
    size = 4 * (pages * PAGE_FLOATS + SCRATCH_FLOATS) + 16 + VIEW.itemsize * program.views + 4 * semaphores
    return -(-size // 16) * 16
