"""Typed access to the fields of a file that nobody has checked yet."""

import json
import math
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from mpkc.models.errors import ModelError

SHORT = reprlib.Repr()
SHORT.maxstring = SHORT.maxother = 80
LARGEST = 1 << 24
"""Bound of every size in a model: no real one comes near it, and a damaged one is told early."""


class Fields:
    """The fields of `file` by name; every getter raises ModelError with the file and the field.

    A field that is absent or null has the default; without a default it must be there.
    """

    def __init__(self, file: Path, values: Mapping[str, object]):
        self.file = file
        self.values = values
        self.read: set[str] = set()

    def get(self, key: str) -> object:
        self.read.add(key)
        return self.values.get(key)

    def error(self, key: str, expected: str) -> ModelError:
        if self.values.get(key) is None:
            return ModelError(f"{self.file}: {key} is missing, expected {expected}")
        return ModelError(f"{self.file}: {key} is {SHORT.repr(self.values[key])}, expected {expected}")

    def integer(self, key: str, default: int | None = None, low: int = 1, high: int = LARGEST) -> int:
        value = self.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.error(key, f"an integer from {low} to {high}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
            raise self.error(key, "a positive number")
        return float(value)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(key, "true or false")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.error(key, "a string")
        return value

    def texts(self, key: str) -> list[str]:
        value = self.get(key)
        if not isinstance(value, list) or not all(isinstance(v, str) for v in cast(list[object], value)):
            raise self.error(key, "a list of strings")
        return cast(list[str], value)

    def integers(self, key: str, high: int = LARGEST) -> tuple[int, ...]:
        """One integer or a list of them, each from 0 to `high`; none where the field is absent."""
        value = self.get(key)
        values = cast(list[object], value) if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(v, int) and not isinstance(v, bool) and 0 <= v <= high for v in values):
            raise self.error(key, f"integers from 0 to {high}")
        return tuple(cast(list[int], values))

    def only(self, key: str, *supported: object) -> None:
        """Refuse every value but the supported ones: what is not computed must not be ignored."""
        value = self.get(key)
        if value is not None and not any(type(value) is type(s) and value == s for s in supported):
            raise self.error(key, " or ".join(map(repr, supported)) + "; nothing else is supported")


def read_json(file: Path, largest: int = LARGEST) -> dict[str, object]:
    """The JSON object in `file`, of at most `largest` bytes.

    Raises:
        ModelError: where it cannot be read, is not UTF-8, not JSON or not an object.
    """
    try:
        if not file.is_file():
            raise ModelError(f"{file}: no such file")
        if file.stat().st_size > largest:
            raise ModelError(f"{file}: larger than {largest} bytes, which no such JSON file is")
        data: object = json.loads(file.read_text(encoding="utf-8"))
    except OSError as err:
        raise ModelError(f"{file}: {err.strerror}") from err
    except UnicodeDecodeError as err:
        raise ModelError(f"{file}: not UTF-8 at byte {err.start}") from err
    except json.JSONDecodeError as err:
        raise ModelError(f"{file}:{err.lineno}:{err.colno}: not JSON: {err.msg}") from err
    except (ModelError, RecursionError, ValueError) as err:
        raise err if isinstance(err, ModelError) else ModelError(f"{file}: not JSON: {err}") from err
    if not isinstance(data, dict):
        raise ModelError(f"{file}: a JSON {type(data).__name__}, expected an object")
    return cast(dict[str, object], data)
