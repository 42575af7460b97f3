"""Values for the run-time integers of a program: `n=3,k=true,V=3,1,4,e1:n=2`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Scalar = int | bool


@dataclass(frozen=True)
class Bindings:
    """What each name stands for.

    Attributes:
        values: by name: one value for an argument, one for each execution in order for a sem.value.
        by_engine: values for one engine alone, which go before those of `values`.
    """

    values: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict[str, tuple[Scalar, ...]])
    by_engine: Mapping[str, Mapping[str, tuple[Scalar, ...]]] = field(
        default_factory=dict[str, Mapping[str, tuple[Scalar, ...]]]
    )

    def for_engine(self, engine: str) -> "Bindings":
        """The bindings as `engine` sees them, for all engines."""
        return Bindings({**self.values, **self.by_engine.get(engine, {})})


def bindings_of(values: Mapping[str, Scalar | Sequence[Scalar]]) -> Bindings:
    """Bindings from Python values: `{"n": 3, "k": True, "V": [3, 1, 4]}`."""
    return Bindings({name: (v,) if isinstance(v, int) else tuple(v) for name, v in values.items()})


def parse_bindings(text: str) -> Bindings:
    """Read `--bind`: items `NAME=VALUE` or `ENGINE:NAME=VALUE`, separated by commas.

    A value is an integer, `true` or `false`. An item without `=` continues the list before it.

    Raises:
        ValueError: an item that is none of these, or a name that is bound twice.
    """
    found: dict[tuple[str, str], list[Scalar]] = {}
    current: list[Scalar] | None = None
    for item in text.split(",") if text.strip() else []:
        target, equals, value = (part.strip() for part in item.rpartition("="))
        if equals:
            engine, _, name = target.rpartition(":")
            if not name or "=" in target:
                raise ValueError(f"--bind: '{item.strip()}' names nothing: write NAME=VALUE")
            if (engine, name) in found:
                raise ValueError(f"--bind: {target} has a value already: write a list as {target}=1,2")
            current = found.setdefault((engine, name), [])
        elif current is None:
            raise ValueError(f"--bind: '{item.strip()}' continues no list: begin with NAME=VALUE")
        current.append(_scalar(value))
    by_engine: dict[str, dict[str, tuple[Scalar, ...]]] = {}
    for (engine, name), values in found.items():
        by_engine.setdefault(engine, {})[name] = tuple(values)
    return Bindings(by_engine.pop("", {}), by_engine)


def _scalar(text: str) -> Scalar:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError(f"--bind: '{text}' is no value: use an integer, true or false") from None
