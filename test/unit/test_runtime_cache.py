"""Where the cache is, and that its files appear whole or not at all."""

from pathlib import Path

import pytest

from mpkc.runtime.cache import atomic_path, cache_dir, write_atomic


def test_cache_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MPKC_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_dir() == tmp_path / "home" / ".cache" / "mpkc"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "mpkc"
    monkeypatch.setenv("MPKC_CACHE", str(tmp_path / "own"))
    assert cache_dir() == tmp_path / "own"
    assert cache_dir().is_dir()


def test_a_file_that_could_not_be_finished_is_not_there(tmp_path):
    path = tmp_path / "folder" / "file"

    def half(part: Path) -> None:
        part.write_bytes(b"half")
        raise RuntimeError

    with pytest.raises(RuntimeError), atomic_path(path) as part:
        half(part)
    assert list(path.parent.iterdir()) == []


def test_readers_see_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "file"
    write_atomic(path, b"old")
    with atomic_path(path) as part:
        part.write_bytes(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]
