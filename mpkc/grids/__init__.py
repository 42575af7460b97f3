"""Tables of grids that come with mpkc (docs/partition.md)."""

from pathlib import Path

HERE = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in HERE.glob("*.toml")))


def grids_file(name_or_path: str) -> str:
    """The path of a table that comes with mpkc, or of a user's own."""
    return str(HERE / f"{name_or_path}.toml") if name_or_path in NAMES else name_or_path
