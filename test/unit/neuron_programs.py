"""Random programs of the neuron target for property tests: what the text can say, whether it makes sense or not."""

from hypothesis import strategies as st

from mpkc.runtime.neuron.isa import (
    ARITY,
    After,
    Alu,
    AluOp,
    Argument,
    ArgumentRef,
    Branch,
    Buffer,
    Condition,
    Counters,
    Drain,
    Engine,
    Handshake,
    Item,
    Iteration,
    Label,
    Move,
    Nop,
    Number,
    Opaque,
    Operand,
    Program,
    Read,
    Register,
    Reset,
    SizeRef,
    Tile,
    Update,
    Value,
    View,
    Wait,
)

REGISTERS = 4
SEMAPHORES = ("s0", "S", "e0/loop b")
BUFFERS = (
    Buffer("x", "far", (None, 32), "f32"),
    Buffer("t", "near", (2, 8, 32), "f32"),
    Buffer("inf", "near", (8, 8), "f32"),
    Buffer("acc 0", "accumulator", (8, 8), "f32"),
    Buffer("rows", "near", (8,), "i32"),
    Buffer("mask", "near", (8, 32), "i1"),
)
INT64 = st.integers(-(2**63), 2**63 - 1)

names = st.sampled_from(["P", "Q", "a.b", "two words", "r1", "S", "nan", 'quo"ted', "// no comment", "ü"])
registers = st.builds(Register, st.integers(0, REGISTERS - 1))
operands: st.SearchStrategy[Operand] = registers | INT64
floats = st.floats(allow_nan=False, width=32)
widths = st.sampled_from([1, 8, 32, 64])


@st.composite
def heads(draw: st.DrawFn, engine: int, label: str | None = None) -> dict[str, object]:
    """The label, wait, update and depth of an instruction; engine i updates semaphore i alone."""
    waits = st.none() | st.builds(Wait, st.integers(0, len(SEMAPHORES) - 1), operands)
    updates = st.none() | st.builds(Update, st.just(engine), st.integers(1, 16))
    return {
        "label": draw(st.none() | names) if label is None else label,
        "wait": draw(waits),
        "update": draw(updates),
        "depth": draw(st.integers(0, 3)),
    }


def view(buffer: str, *sizes: int, offset: Operand = 0) -> View:
    """A part of a buffer whose rows follow each other."""
    strides = tuple(32 if len(sizes) > 1 and axis == 0 else 1 for axis in range(len(sizes)))
    if buffer in ("inf", "acc 0"):
        strides = (8, 1)
    element = next(each.element for each in BUFFERS if each.name == buffer)
    return View(buffer, offset, sizes, strides, element)


@st.composite
def tiles(draw: st.DrawFn, engine: int) -> Tile:
    """A tile instruction that its verifier takes."""
    tile = view("t", 8, 32, offset=draw(registers | st.integers(0, 256)))
    far = view("x", 8, 32, offset=draw(registers | st.integers(0, 10**6)))
    number = Number(draw(floats | st.just(float("inf"))), "f32")
    square, acc = view("inf", 8, 8), view("acc 0", 8, 8)
    start = Number(draw(registers | INT64), "index")
    more = {} if draw(st.booleans()) else {"accumulate": Number(draw(registers | st.integers(0, 1)), "i1")}
    opcode, given, options = draw(
        st.sampled_from(
            [
                ("DMA_COPY", {"dst": tile, "src": far}, {}),
                ("TENSOR_COPY", {"dst": acc, "src": square}, {}),
                ("DMA_GATHER", {"dst": tile, "src": far, "rows": view("rows", 8)}, {}),
                ("DMA_SCATTER", {"dst": far, "rows": view("rows", 8), "src": tile}, {"add": True}),
                ("DMA_SCATTER", {"dst": far, "rows": view("rows", 8), "src": tile}, {}),
                ("MATMUL", {"dst": acc, "lhs": square, "rhs": square} | more, {"transpose_rhs": True}),
                ("ACTIVATE", {"dst": tile, "src": tile}, {"op": "exp"}),
                ("TENSOR_TENSOR", {"dst": tile, "src0": tile, "src1": number}, {"op": "mul"}),
                (
                    "TENSOR_TENSOR",
                    {"dst": tile, "src0": Number(ArgumentRef("scale"), "f32"), "src1": tile},
                    {"op": "max"},
                ),
                ("TENSOR_SELECT", {"dst": tile, "mask": view("mask", 8, 32), "src0": tile, "src1": number}, {}),
                (
                    "TENSOR_REDUCE",
                    {"dst": view("t", 8, 1), "src": tile} | more,
                    {"op": "sum", "of": "square", "axis": 1},
                ),
                ("TENSOR_REDUCE", {"dst": view("t", 1, 32), "src": tile}, {"op": "max", "axis": 0}),
                ("TRANSPOSE", {"dst": acc, "src": square}, {}),
                ("MEMSET", {"dst": tile, "value": number}, {}),
                ("MEMSET", {"dst": tile, "value": start}, {}),
                ("IOTA", {"dst": view("rows", 8), "start": start}, {"axis": 0}),
                ("TENSOR_LOAD", {"src": view("rows", 1, offset=Register(1))}, {}),
            ]
        )
    )
    head = draw(heads(engine, label=f"V{engine}" if opcode == "TENSOR_LOAD" else None))
    return Tile(opcode, given, options, **head)


@st.composite
def bodies(draw: st.DrawFn, engine: int) -> tuple[Item, ...]:
    """A stream in which every jump has its label."""
    distances = st.none() | st.lists(st.integers(-2, 3) | st.just("*"), max_size=3).map(tuple)
    afters = st.lists(st.builds(After, st.just("P"), distances), max_size=2).map(tuple)

    def alu(op: AluOp) -> st.SearchStrategy[Alu]:
        return st.builds(Alu, registers, st.just(op), st.tuples(*[operands] * ARITY[op]), widths)

    items = st.one_of(
        st.builds(Move, registers, operands | st.just(ArgumentRef("n")) | st.just(SizeRef("x", 0))),
        st.sampled_from(AluOp).flatmap(alu),
        st.builds(
            Branch,
            st.sampled_from([each for each in Condition if each is not Condition.ALWAYS]),
            st.tuples(operands, operands),
            st.sampled_from(["L0", "two words"]),
            widths,
        ),
        st.builds(Branch, st.just(Condition.ALWAYS), st.just(()), st.just("L0")),
        st.just(Drain()),
        st.just(Handshake()),
        st.builds(Reset, st.lists(st.integers(0, len(SEMAPHORES) - 1), min_size=1, max_size=3).map(tuple)),
        st.builds(Iteration, names, st.integers(0, 3)),
        heads(engine).map(lambda head: Nop(**head)),
        st.builds(lambda dest, head: Read(dest, "V0", **head), registers, heads(engine)),
        st.builds(
            lambda cost, latency, after, head: Opaque(cost, latency, after, **head),
            st.integers(0, 1000),
            st.none() | st.integers(0, 1000),
            afters,
            heads(engine, label="P"),
        ),
        heads(engine, label=f"V{engine}").map(lambda head: Opaque(64, is_value=True, **head)),
        tiles(engine),
    )
    ends = (Label("L0"), Opaque(1, label="P"), Label("two words"))
    return (*draw(st.lists(items, max_size=12)), *ends)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A program that the reader takes."""
    engines = draw(st.lists(st.sampled_from(["e0", "Vector", "e/2"]), min_size=1, max_size=3, unique=True))
    return Program(
        draw(names),
        tuple(Engine(name, REGISTERS, draw(bodies(at))) for at, name in enumerate(engines)),
        Counters(draw(st.sampled_from([8, 16, 32, 64])), draw(st.booleans())),
        (Argument("n", "index"), Argument("scale", "f32"), Argument("last", "i1")),
        BUFFERS,
        (*(Value(f"V{at}", "index") for at in range(3)), Value("flag", "i1")),
        SEMAPHORES,
    )
