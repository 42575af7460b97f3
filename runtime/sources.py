"""What compiled code is made of, so that its place in the cache can be named by that."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path


def header_texts(source: str, include_dirs: Sequence[Path]) -> list[str]:
    """The text of every header that `source` includes from `include_dirs`, directly or not."""
    texts: dict[Path, str] = {}
    pending = [(None, source)]
    while pending:
        folder, text = pending.pop()
        for name in re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', text, re.MULTILINE):
            candidates = [directory / name for directory in ([folder] if folder else []) + list(include_dirs)]
            path = next((path for path in candidates if path.is_file()), None)
            if path and path not in texts:
                texts[path] = path.read_text()
                pending.append((path.parent, texts[path]))
    return [texts[path] for path in sorted(texts)]


def digest(*parts: str) -> str:
    """A name for what is made of `parts`, and of nothing else."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
