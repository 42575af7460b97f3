"""The streams of a multi-engine program: what each engine runs once semaphores say who waits for whom.

docs/streams.md is the contract of the text form. A stream is ordinary scf and arith around instructions of its
engine; counters of iterations and thresholds are SSA values (barrier-free, sections 5 and 6).

Of what a program has by the ten thousand, `Operation.__init__` takes the operands as they are; that of IRDLOperation,
which sorts out those that may be missing or many, takes twice as long.
"""

from collections.abc import Iterator, Sequence
from functools import cache

from xdsl.dialects import scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    SymbolNameConstraint,
    i1,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import EngineInstruction, engine_of, is_declaration, is_instruction, signal_of
from mpkc.dialects.scalars import SCALAR_OPS


@irdl_op_definition
class StreamsOp(IRDLOperation):
    """A program as one stream an engine, with the semaphores that order them.

    The arguments are those of the program. Buffers that engines share are allocated here, before the streams.
    """

    name = "sem.streams"

    sym_name = prop_def(SymbolNameConstraint())
    counters = prop_def(IntegerType)
    semaphores = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), NoTerminator())

    def __init__(
        self,
        name: str,
        counters: IntegerType,
        semaphores: Sequence[str],
        body: Region,
        attributes: dict[str, Attribute] | None = None,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "counters": counters,
                "semaphores": ArrayAttr([StringAttr(semaphore) for semaphore in semaphores]),
            },
            regions=[body],
            attributes=attributes,
        )

    @property
    def argument_names(self) -> tuple[str, ...]:
        """The names of the arguments, which bind their values."""
        return tuple(arg.name_hint or "" for arg in self.body.block.args)

    @property
    def streams(self) -> "dict[str, StreamOp]":
        """The streams by engine, in order."""
        return {op.engine.data: op for op in self.body.block.ops if isinstance(op, StreamOp)}

    @property
    def semaphore_names(self) -> tuple[str, ...]:
        """The semaphores, in order."""
        return tuple(semaphore.data for semaphore in self.semaphores)

    @property
    def signed(self) -> bool:
        """Whether waits compare signed integers."""
        return self.counters.signedness.data is Signedness.SIGNED

    def verify_(self) -> None:
        if self.counters.signedness.data is Signedness.SIGNLESS:
            raise VerifyException(f"counters of type {self.counters}: say whether waits compare ui or si")
        for what, names in (("semaphore", self.semaphore_names), ("argument", self.argument_names)):
            if len(set(names)) != len(names) or not all(names):
                raise VerifyException(f"each {what} needs a name of its own")
        _check_streams(self)

    @classmethod
    def parse(cls, parser: Parser) -> "StreamsOp":
        name = parser.parse_symbol_name()

        def argument() -> Parser.Argument:
            return parser.parse_argument()

        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
        parser.parse_keyword("counters")
        counters = parser.parse_type()
        if not isa(counters, IntegerType):
            parser.raise_error("expected an integer type such as ui32")
        parser.parse_keyword("semaphores")
        semaphores = parse_names(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(args)
        return cls(name.data, counters, semaphores, body, dict(attributes.data) if attributes else None)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)

        def argument(arg: BlockArgument) -> None:
            printer.print_ssa_value(arg)
            printer.print_string(" : ")
            printer.print_attribute(arg.type)

        with printer.in_parens():
            printer.print_list(self.body.block.args, argument)
        printer.print_string(" counters ")
        printer.print_attribute(self.counters)
        printer.print_string(" semaphores ")
        print_names(printer, self.semaphores)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)


@irdl_op_definition
class StreamOp(IRDLOperation):
    """What one engine runs: `sem.stream "e0" { ... }`."""

    name = "sem.stream"

    engine = prop_def(StringAttr)
    body = region_def("single_block")

    traits = traits_def(HasParent(StreamsOp), NoTerminator())

    def __init__(self, engine: str, body: Region):
        super().__init__(properties={"engine": StringAttr(engine)}, regions=[body])

    @classmethod
    def parse(cls, parser: Parser) -> "StreamOp":
        engine = parser.parse_str_literal()
        return cls(engine, parser.parse_region())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.engine.data)
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)


@irdl_op_definition
class WaitOp(IRDLOperation):
    """`sem.wait "s0" >= %t : i32 for ["P"]`: the engine goes on once the semaphore has reached the threshold.

    It belongs to the next instruction of its block, or to the first one of the scf.for that comes before that, which
    then has to have an iteration. `for` names the producers that it stands for, for reports.
    """

    name = "sem.wait"

    semaphore = prop_def(StringAttr)
    producers = opt_prop_def(ArrayAttr[StringAttr])
    threshold = operand_def(IntegerType)

    def __init__(self, semaphore: str, threshold: SSAValue | Operation, producers: Sequence[str] = ()):
        properties: dict[str, Attribute] = {"semaphore": StringAttr(semaphore)}
        if producers:
            properties["producers"] = ArrayAttr([StringAttr(producer) for producer in producers])
        Operation.__init__(self, operands=[SSAValue.get(threshold)], properties=properties)

    @property
    def producer_names(self) -> tuple[str, ...]:
        return tuple(producer.data for producer in self.producers) if self.producers else ()

    @classmethod
    def parse(cls, parser: Parser) -> "WaitOp":
        semaphore = parser.parse_str_literal()
        parser.parse_punctuation(">")
        parser.parse_punctuation("=")
        threshold = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        producers = parse_names(parser) if parser.parse_optional_keyword("for") else ()
        return cls(semaphore, parser.resolve_operand(threshold, type_), producers)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.semaphore.data)
        printer.print_string(" >= ")
        printer.print_ssa_value(self.threshold)
        printer.print_string(" : ")
        printer.print_attribute(self.threshold.type)
        if self.producers:
            printer.print_string(" for ")
            print_names(printer, self.producers)


@irdl_op_definition
class IterationOp(IRDLOperation):
    """`sem.iteration "a" depth 1`: an iteration of the loop "a" begins. It takes no time and no code.

    `depth` is that of the loop among those that iterations count, 0 for a branch of a conditional.
    """

    name = "sem.iteration"

    loop = prop_def(StringAttr)
    depth = prop_def(IntAttr)

    def __init__(self, loop: str, depth: int):
        Operation.__init__(self, properties={"loop": StringAttr(loop), "depth": IntAttr(depth)})

    @classmethod
    def parse(cls, parser: Parser) -> "IterationOp":
        loop = parser.parse_str_literal()
        parser.parse_keyword("depth")
        return cls(loop, parser.parse_integer(allow_boolean=False, allow_negative=False))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.loop.data)
        printer.print_string(f" depth {self.depth.data}")


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """`sem.barrier reset ["s0"] among ["e0", "e1"]`: these engines retire all they issued, meet, reset, meet again.

    Without `among`, all engines. The semaphores are 0 when the engines go on.
    """

    name = "sem.barrier"

    semaphores = prop_def(ArrayAttr[StringAttr])
    engines = opt_prop_def(ArrayAttr[StringAttr])

    def __init__(self, semaphores: Sequence[str] = (), engines: Sequence[str] | None = None):
        super().__init__(
            properties={
                "semaphores": ArrayAttr([StringAttr(semaphore) for semaphore in semaphores]),
                "engines": None if engines is None else ArrayAttr([StringAttr(engine) for engine in engines]),
            }
        )

    @property
    def engine_names(self) -> tuple[str, ...] | None:
        """The engines that meet; None for all."""
        return None if self.engines is None else tuple(engine.data for engine in self.engines)

    @classmethod
    def parse(cls, parser: Parser) -> "BarrierOp":
        parser.parse_keyword("reset")
        semaphores = parse_names(parser)
        return cls(semaphores, parse_names(parser) if parser.parse_optional_keyword("among") else None)

    def print(self, printer: Printer) -> None:
        printer.print_string(" reset ")
        print_names(printer, self.semaphores)
        if self.engines is not None:
            printer.print_string(" among ")
            print_names(printer, self.engines)


class StreamInstruction(IRDLOperation):
    """What sem.marker and sem.read share: a label, the engine of the stream, the cost of a register operation."""

    label = prop_def(StringAttr)
    engine = prop_def(StringAttr)


@irdl_op_definition
class MarkerOp(StreamInstruction):
    """`sem.marker @M engine "e0" {signal = "s1"}`: an instruction that only retires, behind all before it."""

    name = "sem.marker"

    traits = traits_def(EngineInstruction())

    def __init__(self, label: str, engine: str, attributes: dict[str, Attribute] | None = None):
        super().__init__(properties={"label": StringAttr(label), "engine": StringAttr(engine)}, attributes=attributes)

    @classmethod
    def parse(cls, parser: Parser) -> "MarkerOp":
        label, engine = _parse_label(parser)
        return cls(label, engine, parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        _print_label(printer, self)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class ReadOp(StreamInstruction):
    """`%v = sem.read @V engine "e1" of @W : index`: takes the value that the instruction @W wrote last."""

    name = "sem.read"

    source = prop_def(StringAttr)
    result = result_def()

    traits = traits_def(EngineInstruction())

    def __init__(
        self,
        label: str,
        engine: str,
        source: str,
        result_type: Attribute,
        attributes: dict[str, Attribute] | None = None,
    ):
        super().__init__(
            properties={"label": StringAttr(label), "engine": StringAttr(engine), "source": StringAttr(source)},
            result_types=[result_type],
            attributes=attributes,
        )

    def verify_(self) -> None:
        if self.result.type not in (IndexType(), i1):
            raise VerifyException(f"a value of type {self.result.type}: use index or i1")

    @classmethod
    def parse(cls, parser: Parser) -> "ReadOp":
        label, engine = _parse_label(parser)
        parser.parse_keyword("of")
        source = parser.parse_symbol_name()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls(label, engine, source.data, parser.parse_type(), attributes)

    def print(self, printer: Printer) -> None:
        _print_label(printer, self)
        printer.print_string(" of ")
        printer.print_symbol_name(self.source)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@cache
def threshold_type(counters: IntegerType) -> IntegerType:
    """The signless type of the thresholds and counters that waits of this type compare."""
    return IntegerType(counters.width.data)


def constant_attr(value: int, type_: IntegerType) -> IntegerAttr[IntegerType]:
    """`value` modulo 2 to the width, as the signless integer that holds it."""
    width = type_.width.data
    wrapped = value % (1 << width)
    return IntegerAttr(wrapped - (1 << width) if wrapped >> (width - 1) else wrapped, type_)


def parse_names(parser: Parser) -> list[str]:
    """Parse `["a", "b"]`."""
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)


def print_names(printer: Printer, names: ArrayAttr[StringAttr]) -> None:
    """Print `["a", "b"]`."""
    with printer.in_square_brackets():
        printer.print_list(names.data, lambda name: printer.print_string_literal(name.data))


def _parse_label(parser: Parser) -> tuple[str, str]:
    label = parser.parse_symbol_name()
    parser.parse_keyword("engine")
    return label.data, parser.parse_str_literal()


def _print_label(printer: Printer, op: StreamInstruction) -> None:
    printer.print_string(" ")
    printer.print_symbol_name(op.label)
    printer.print_string(" engine ")
    printer.print_string_literal(op.engine.data)


# What holds for streams as a whole.


def _check_streams(streams: StreamsOp) -> None:
    """Raises OpError at the operation that is wrong."""
    engines: set[str] = set()
    signallers: dict[str, str] = {}
    known = set(streams.semaphore_names)
    for op in streams.body.block.ops:
        if not isinstance(op, StreamOp):
            if not is_declaration(op) and type(op) not in SCALAR_OPS:
                raise OpError(op, f"'{op.name}' does not stand beside streams: only declarations of what they share do")
            continue
        engine = op.engine.data
        if engine in engines:
            raise OpError(op, f'a second stream of engine "{engine}": an engine has one')
        engines.add(engine)
        for nested in op.walk():
            _check_operation(streams, engine, nested, known, signallers)
        for block in _blocks(op):
            _check_waits(block)


def _check_operation(
    streams: StreamsOp, engine: str, op: Operation, known: set[str], signallers: dict[str, str]
) -> None:
    named: Sequence[str] = ()
    if isinstance(op, WaitOp):
        named = (op.semaphore.data,)
        if op.threshold.type != threshold_type(streams.counters):
            raise OpError(op, f"a threshold of type {op.threshold.type}: counters are {streams.counters}")
    elif isinstance(op, BarrierOp):
        named = tuple(semaphore.data for semaphore in op.semaphores)
        if op.engine_names is not None and engine not in op.engine_names:
            raise OpError(op, f'a barrier among other engines in the stream of "{engine}"')
    elif is_instruction(op):
        if engine_of(op) != engine:
            raise OpError(op, f'an instruction of engine "{engine_of(op)}" in the stream of "{engine}"')
        if (signal := signal_of(op)) is not None:
            named = (signal,)
            if signallers.setdefault(signal, engine) != engine:
                raise OpError(
                    op, f'semaphore "{signal}" is signalled by "{signallers[signal]}" and "{engine}": by one alone'
                )
    for semaphore in named:
        if semaphore not in known:
            raise OpError(op, f'no semaphore "{semaphore}"; there are: {", ".join(streams.semaphore_names) or "none"}')


def _check_waits(block: Block) -> None:
    """Every wait is followed by its instruction, with nothing but waits and integers in between."""
    waiting: WaitOp | None = None
    for op in block.ops:
        if isinstance(op, WaitOp):
            waiting = op
        elif waiting is not None and not is_between(op):
            if not begins_with_instruction(op):
                break
            waiting = None
    if waiting is not None:
        raise OpError(
            waiting,
            "a wait without an instruction behind it: it belongs to the next one of its block, or to the first one of "
            "the scf.for there",
        )


def is_between(op: Operation) -> bool:
    """Whether `op` may stand between a wait and its instruction."""
    return isinstance(op, WaitOp) or type(op) in SCALAR_OPS or is_declaration(op)


def begins_with_instruction(op: Operation) -> bool:
    """Whether it is an instruction, or a loop whose iterations begin with one."""
    if not isinstance(op, scf.ForOp):
        return is_instruction(op)
    first = next((each for each in op.body.block.ops if not is_between(each) and type(each) is not IterationOp), None)
    return first is not None and begins_with_instruction(first)


def _blocks(op: Operation) -> Iterator[Block]:
    """The blocks nested in `op`, those of instructions left out."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for nested in block.ops:
                if not is_instruction(nested):
                    yield from _blocks(nested)
