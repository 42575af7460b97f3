"""From TOML to machine descriptions."""

import tomllib
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from mpkc.runtime.machine.description import Machine, MachineError
from mpkc.runtime.machine.instructions import DEFAULT, NARROWER, OPERATIONS

HERE = Path(__file__).parent
SPACES = ("far", "near", "accumulator")

KNOWN = (DEFAULT, *OPERATIONS, *NARROWER)

T = TypeVar("T")


def machines() -> list[Machine]:
    """The machines that come with mpkc, by name; `generic`, the default, first."""
    found = [machine(path.stem) for path in sorted(HERE.glob("*.toml"))]
    return sorted(found, key=lambda each: each.name != "generic")


@cache
def machine(name_or_path: str) -> Machine:
    """The machine of that name, or the one that a user's own TOML file describes.

    Args:
        name_or_path: a path where it ends in `.toml`.

    Raises:
        MachineError: names what is known where the name is not, and the file and the key where one is wrong.
        OSError: where the file can't be read.
    """
    if name_or_path.endswith(".toml"):
        return read_machine(Path(name_or_path))
    known = sorted(path.stem for path in HERE.glob("*.toml"))
    if name_or_path not in known:
        raise MachineError(
            f"unknown device {name_or_path!r}; there are: {', '.join(known)}; or give a .toml file (docs/machines.md)"
        )
    return read_machine(HERE / f"{name_or_path}.toml")


def read_machine(path: Path) -> Machine:
    """The machine in a TOML file; raises MachineError, OSError."""
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise MachineError(f"{path}: not TOML: {err}") from err
    found = _Reader(path).record(Machine, "", text | {"sources": _flat(text.get("sources", {}))})
    _check(path, found, text)
    return found


class _Reader:
    """Turns tables into dataclasses; fields and their types say what may stand there."""

    def __init__(self, path: Path):
        self.path = path

    def wrong(self, key: str, message: str) -> MachineError:
        return MachineError(f"{self.path}: {key}: {message}")

    def record(self, cls: type[T], key: str, table: Any) -> T:
        """An instance of a dataclass from a table of its fields."""
        if not isinstance(table, dict):
            raise self.wrong(key, f"expected a table, found {table!r}")
        types_of = get_type_hints(cls)
        given = cast(dict[str, Any], table)
        for name in given:
            if name not in types_of:
                raise self.wrong(_join(key, name), f"no such key; there are: {', '.join(types_of)}")
        for field in fields(cast(Any, cls)):
            if field.name not in given and field.default is MISSING and field.default_factory is MISSING:
                raise self.wrong(_join(key, field.name), "missing")
        return cls(**{name: self.value(types_of[name], _join(key, name), value) for name, value in given.items()})

    def value(self, type_: Any, key: str, value: Any) -> Any:
        """A value of that type; raises MachineError where it is another."""
        if isinstance(type_, types.UnionType):  # `T | None`: TOML leaves None out
            return self.value(get_args(type_)[0], key, value)
        if get_origin(type_) is tuple:
            if not isinstance(value, list):
                raise self.wrong(key, f"expected a list, found {value!r}")
            return tuple(self.value(get_args(type_)[0], key, item) for item in cast(list[Any], value))
        if get_origin(type_) is Mapping:
            if not isinstance(value, dict):
                raise self.wrong(key, f"expected a table, found {value!r}")
            element = get_args(type_)[1]
            return {k: self.value(element, _join(key, k), v) for k, v in cast(dict[str, Any], value).items()}
        if type_ is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if type_ in SCALARS:
            if type(value) is not type_:
                raise self.wrong(key, f"expected {SCALARS[type_]}, found {value!r}")
            return value
        return self.record(type_, key, value)


SCALARS: Mapping[Any, str] = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def _check(path: Path, found: Machine, text: Mapping[str, Any]) -> None:
    """Raise MachineError where a value makes no sense, or a number has no source."""
    reader = _Reader(path)
    if found.name != path.stem:
        raise reader.wrong("name", f"is {found.name!r}, but the file is {path.name}")
    if len(set(found.engines)) < len(found.engines):
        raise reader.wrong("engines", "names an engine twice")
    if found.semaphore.bits not in (8, 16, 32, 64):
        raise reader.wrong("semaphore.bits", f"is {found.semaphore.bits}, but must be 8, 16, 32 or 64")
    for space in found.memories:
        if space not in SPACES:
            raise reader.wrong(f"memories.{space}", f"no such space; there are: {', '.join(SPACES)}")
    for key in found.instructions:
        if key not in KNOWN and not _is_special(key, found):
            raise reader.wrong(f"instructions.{key}", f"no such operation; there are: {', '.join(KNOWN)}")
    for engine in found.clocks:
        if not found.has_engine(engine):
            raise reader.wrong(f"clocks.{engine}", "is no engine of the machine")
    for queue in found.dma.queues if found.dma else ():
        if not found.has_engine(queue):
            raise reader.wrong("dma.queues", f"{queue} is no engine of the machine")
    numbers = dict(_numbers("", {key: value for key, value in text.items() if key != "sources"}))
    for key, number in numbers.items():
        if not 0 <= number < float("inf") or (number == 0 and not key.startswith("costs.")):
            raise reader.wrong(key, f"is {number}, but must be above 0")
        if key not in found.sources:
            raise reader.wrong(f"sources.{key}", "missing: every number needs a source")
    for key in found.sources:
        if key not in numbers:
            raise reader.wrong(f"sources.{key}", "is the source of no number")


def _is_special(key: str, machine: Machine) -> bool:
    """Whether it is an operation of one engine, or on one type of elements: `vector.map`, `matmul.f32`."""
    first, _, last = key.partition(".")
    return (first in KNOWN and bool(last)) or (last in KNOWN and bool(first) and machine.has_engine(first))


def _numbers(key: str, value: Any) -> Iterator[tuple[str, float]]:
    """Every number below a key, by its own key."""
    if isinstance(value, dict):
        for name, nested in cast(dict[str, Any], value).items():
            yield from _numbers(_join(key, name), nested)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield key, value


def _flat(value: Any, key: str = "") -> Any:
    """A table of tables as one table with keys such as `costs.wait`."""
    if not isinstance(value, dict):
        return value
    flat: dict[str, Any] = {}
    for name, nested in cast(dict[str, Any], value).items():
        flat |= _flat(nested, _join(key, name)) if isinstance(nested, dict) else {_join(key, name): nested}
    return flat


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name
