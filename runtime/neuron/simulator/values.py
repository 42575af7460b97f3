"""The integers that a program is given: its arguments, and the values that its VALUE instructions find."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from mpkc.dialects.tile_types import is_float
from mpkc.dialects.wording import counted, ordinal
from mpkc.runtime.bindings import Bindings
from mpkc.runtime.neuron.alu import wrapped
from mpkc.runtime.neuron.isa import INDEX_BITS, Program
from mpkc.runtime.neuron.simulator.memory import Fault
from mpkc.runtime.neuron.tile_operations import attribute_of
from mpkc.runtime.reference.elements import Array

Input = Array | int | float


class Given:
    """What `bindings` and `inputs` say, checked against the program.

    Attributes:
        arrays: the inputs that are arrays.

    Raises:
        ValueError: a name that the program has not; a value of the wrong type; more than one for an argument.
    """

    def __init__(self, program: Program, bindings: Bindings, inputs: Mapping[str, Input]):
        self.program, self.bindings = program, bindings
        self.types = {each.name: each.type for each in (*program.arguments, *program.values)}
        self.arrays: dict[str, Array] = {}
        self.numbers: dict[str, int | float] = {}
        for name, value in inputs.items():
            if isinstance(value, np.ndarray) and value.ndim:
                self.arrays[name] = value
            else:
                self.numbers[name] = value if isinstance(value, bool | int | float) else value.item()
        if named := [value.name for value in program.values if value.name in inputs]:
            raise ValueError(f"{named[0]} is a value, and no input: bind what it finds, {named[0]}=1,2,...")
        of_engines = (name for each in bindings.by_engine.values() for name in each)
        for name in (*self.numbers, *bindings.values, *of_engines):
            if name not in self.types:
                known = ", ".join(self.types) or "none"
                raise ValueError(f"'{name}' is neither an argument nor a value of the program; there are: {known}")
        engines = [engine.name for engine in program.engines]
        if unknown := [engine for engine in bindings.by_engine if engine not in engines]:
            raise ValueError(f"the program has no engine {unknown[0]}; there are: {', '.join(engines)}")

    def arguments(self, engine: str) -> dict[str, int | float]:
        """The arguments as an engine sees them; ValueError where one is missing."""
        return {argument.name: self._argument(argument.name, engine) for argument in self.program.arguments}

    def values(self, name: str, engine: str) -> tuple[int, ...] | None:
        """What the executions of VALUE `name` find, in order, as an engine sees it; None where nothing is bound."""
        given = self.bindings.for_engine(engine).values.get(name)
        return None if given is None else tuple(int(self._typed(name, value)) for value in given)

    def _argument(self, name: str, engine: str) -> int | float:
        given = self.bindings.for_engine(engine).values.get(name)
        if given is None:
            if name not in self.numbers:
                raise ValueError(f"the argument {name} has no value: bind it, {name}=VALUE")
            return self._typed(name, self.numbers[name])
        if len(given) != 1:
            raise ValueError(f"the argument {name} has {len(given)} values: bind one")
        return self._typed(name, given[0])

    def _typed(self, name: str, value: float) -> int | float:
        """A value as its type has it: an i1 takes true, false, 0 and 1, other integers no truth values."""
        type_ = self.types[name]
        if _is_float(type_):
            return float(value)
        if type_ == "i1" and value not in (0, 1):
            raise ValueError(f"{name} is an i1 and cannot be {value}: use true or false")
        if type_ != "i1" and (isinstance(value, bool) or value != int(value)):
            raise ValueError(f"{name} is of type {type_} and cannot be {str(value).lower()}: use an integer")
        return wrapped(int(value), INDEX_BITS if type_ == "index" else int(type_.lstrip("sui")))


@dataclass(eq=False)
class Mailbox:
    """Where a value is written for every engine to read.

    Attributes:
        bound: what it finds, in order, by engine; None where it comes from memory.
        issued: how many instructions that write it have issued.
        current: what is in it: the number of the execution that wrote it, from 0, and, where it comes from memory, the
            value; None before the first.
    """

    name: str
    bound: Mapping[str, tuple[int, ...]] | None
    issued: int = 0
    current: tuple[int, int | None] | None = None

    def take_turn(self) -> int:
        """The number of the next execution; Fault where no value is bound for it."""
        number = self.issued
        self.issued += 1
        for values in self.bound.values() if self.bound is not None else ():
            if number >= len(values):
                raise Fault(
                    f"@{self.name} runs for the {ordinal(number + 1)} time and has {counted(len(values), 'value')}: "
                    f"bind one for each execution, {self.name}=1,2,..."
                )
        return number

    @property
    def left(self) -> tuple[int, ...]:
        """What is bound, for the engine that has the most, and was not taken."""
        return max((values[self.issued :] for values in (self.bound or {}).values()), key=len, default=())

    def write(self, number: int, value: int | None) -> None:
        """The execution of that number writes it: what is bound for it, or a value from memory."""
        self.current = (number, value)

    def read(self, engine: str) -> int:
        """What an engine finds in it; Fault where nothing has been written."""
        if self.current is None:
            raise Fault(f"reads @{self.name} before anything has written it")
        number, value = self.current
        if value is not None:
            return value
        assert self.bound is not None
        return self.bound[engine][number]


@cache
def _is_float(type_: str) -> bool:
    return is_float(attribute_of(type_))
