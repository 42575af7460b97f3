"""An executor of the ISA for one engine at a time, apart from the simulator: a helper of tests."""

from mpkc.dialects.scalars import wrap
from mpkc.runtime.neuron import isa
from mpkc.runtime.neuron.alu import CONDITIONS, binary, unary, wrapped


class EngineExecutor:
    """Runs the code of one engine; semaphores never block, reads give small numbers."""

    def __init__(self, program: isa.Program, engine: isa.Engine, arguments: dict[str, int], limit: int = 200_000):
        self.program, self.engine, self.arguments, self.limit = program, engine, arguments, limit
        self.registers: list[int | None] = [None] * engine.registers
        self.events: list[tuple[object, ...]] = []
        self.alu = self.moves = self.branches = 0
        self.reads = 0

    def get(self, operand: isa.Operand) -> int:
        if isinstance(operand, int):
            return operand
        value = self.registers[operand.number]
        assert value is not None, f"r{operand.number} is read and holds nothing"
        return value

    def run(self) -> list[tuple[object, ...]]:
        labels = {item.name: at for at, item in enumerate(self.engine.body) if isinstance(item, isa.Label)}
        at = steps = 0
        while at < len(self.engine.body):
            item = self.engine.body[at]
            at += 1
            steps += 1
            assert steps < self.limit, "it does not end"
            match item:
                case isa.Label():
                    pass
                case isa.Iteration():
                    self.events.append(("iteration", item.loop, item.depth))
                case isa.Move():
                    self.moves += 1
                    self.registers[item.dest.number] = self.source(item.source)
                case isa.Alu():
                    self.alu += 1
                    self.registers[item.dest.number] = self.compute(item)
                case isa.Branch():
                    self.branches += 1
                    if item.condition is isa.Condition.ALWAYS or binary(CONDITIONS[item.condition], item.bits)(
                        *map(self.get, item.operands)
                    ):
                        at = labels[item.target]
                case isa.Drain():
                    self.events.append(("drain",))
                case isa.Handshake():
                    self.events.append(("handshake",))
                case isa.Reset():
                    self.events.append(("reset", *(self.program.semaphores[s] for s in item.semaphores)))
                case isa.Issued():
                    self.issue(item)
        return self.events

    def source(self, source) -> int:
        if isinstance(source, isa.ArgumentRef):
            return self.arguments[source.name]
        return self.get(source)

    def compute(self, item: isa.Alu) -> int:
        operands = [self.get(operand) for operand in item.operands]
        if item.op is isa.AluOp.SELECT:
            return operands[1] if operands[0] else operands[2]
        if len(operands) == 1:
            return unary(item.op, item.bits)(*operands)
        return binary(item.op, item.bits)(*operands)

    def issue(self, item: isa.Issued) -> None:
        if item.wait:
            threshold = wrapped(self.get(item.wait.threshold), self.program.counters.bits)
            self.events.append(("wait", self.program.semaphores[item.wait.semaphore], threshold))
        signal = self.program.semaphores[item.update.semaphore] if item.update else None
        match item:
            case isa.Nop(label=None):
                pass
            case isa.Nop():
                self.events.append(("sem.marker", item.label, signal))
            case isa.Read():
                self.reads += 1
                type_ = next(value.type for value in self.program.values if value.name == item.value)
                value = self.reads * 7 % 3
                value = value % 2 if type_ == "i1" else value
                self.registers[item.dest.number] = value
                self.events.append(("read", item.value, value))
            case isa.Opaque():
                self.events.append(("sem.value" if item.is_value else "sem.inst", item.label, signal))
            case isa.Tile():
                self.events.append((item.opcode, item.label, signal, *self.parts(item)))

    def parts(self, item: isa.Tile):
        for part in item.operands.values():
            if isinstance(part, isa.View):
                yield (part.buffer, *(self.get(each) for each in (part.offset, *part.sizes, *part.strides)))
            else:
                yield self.get(part.value) if isinstance(part.value, isa.Register) else part.value


def run_engines(program: isa.Program, arguments: dict[str, int]) -> dict[str, EngineExecutor]:
    """Each engine after its run."""
    found = {}
    for engine in program.engines:
        executor = EngineExecutor(program, engine, arguments)
        executor.run()
        found[engine.name] = executor
    return found


def as_streams_have_it(events: list) -> list:
    """Drain, handshake, reset, handshake as one barrier."""
    found, at = [], 0
    while at < len(events):
        if events[at] == ("drain",):
            reset = events[at + 2] if events[at + 2][0] == "reset" else ("reset",)
            found.append(("barrier", *reset[1:]))
            at += 3 if reset == ("reset",) else 4
        else:
            found.append(events[at])
            at += 1
    return found


__all__ = ["EngineExecutor", "as_streams_have_it", "run_engines", "wrap"]
