"""The cache of arrays: mapped on a hit, whole or absent, made anew where it is damaged."""

import os
import threading
import time

import numpy as np
import pytest

from mpkc.models.cache import DAY, cached_arrays, file_digest
from mpkc.models.errors import ModelError
from mpkc.runtime.cache import cache_dir

SHAPES = {"a": (3, 5), "b.c": (7,), "d": (2, 3, 4)}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MPKC_CACHE", str(tmp_path / "cache"))


class Filler:
    def __init__(self):
        self.filled = []

    def __call__(self, name, array):
        assert not array.any()
        self.filled.append(name)
        array[...] = np.arange(array.size).reshape(array.shape) + len(name)


def check(arrays):
    assert list(arrays) == list(SHAPES)
    for name, array in arrays.items():
        assert array.dtype == np.float32
        assert array.shape == SHAPES[name]
        assert array.ctypes.data % 64 == 0
        assert np.array_equal(array.ravel(), np.arange(array.size) + len(name))
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def weights():
    return cache_dir() / "weights"


def stored():
    return weights() / "key.arrays"


def test_filled_once_then_mapped():
    fill = Filler()
    for _ in range(2):
        check(cached_arrays("key", SHAPES, fill))
    assert fill.filled == list(SHAPES)
    assert [path.name for path in weights().iterdir()] == ["key.arrays"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data[:70],
        lambda data: data + b"x",
        lambda data: b"x" + data[1:],
        lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
        lambda data: bytes(len(data)),
    ],
)
def test_damaged_file_is_made_anew(damage):
    fill = Filler()
    cached_arrays("key", SHAPES, fill)
    stored().write_bytes(damage(stored().read_bytes()))
    check(cached_arrays("key", SHAPES, fill))
    assert fill.filled == 2 * list(SHAPES)


def test_other_shapes_under_the_same_key_are_made_anew():
    cached_arrays("key", {"a": (5, 3), "b.c": (7,), "d": (2, 3, 4)}, Filler())
    fill = Filler()
    check(cached_arrays("key", SHAPES, fill))
    assert fill.filled == list(SHAPES)


def test_arrays_stay_valid_when_the_file_is_made_anew():
    arrays = cached_arrays("key", SHAPES, Filler())
    stored().unlink()
    cached_arrays("key", SHAPES, lambda name, array: None)
    check(arrays)


def test_failure_leaves_nothing():
    def fill(name, array):
        if name == "d":
            raise KeyError(name)

    with pytest.raises(KeyError, match="d"):
        cached_arrays("key", SHAPES, fill)
    assert list(weights().iterdir()) == []


def test_two_at_the_same_time():
    barrier, results = threading.Barrier(2), []

    def work():
        fill = Filler()

        def slowly(name, array):
            barrier.wait()
            fill(name, array)

        results.append((cached_arrays("key", SHAPES, slowly), fill))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for arrays, fill in results:
        check(arrays)
        assert fill.filled == list(SHAPES)
    assert [path.name for path in weights().iterdir()] == ["key.arrays"]


def test_progress_counts_bytes():
    seen = []
    cached_arrays("key", SHAPES, Filler(), lambda *step: seen.append(step))
    assert seen == [(0, 184, "a"), (60, 184, "b.c"), (88, 184, "d"), (184, 184, "")]
    cached_arrays("key", SHAPES, Filler(), lambda *step: seen.append(step))
    assert len(seen) == 4


@pytest.mark.parametrize("blocked", ["cache", "cache/weights", "cache/weights/key.arrays"])
def test_unusable_cache_names_the_way_out(tmp_path, blocked):
    path = tmp_path / blocked
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if blocked.endswith("arrays") else path.write_text("")
    with pytest.raises(ModelError, match=rf"{path}.*: cannot (read|write) the cache: .*; \$MPKC_CACHE names"):
        cached_arrays("key", SHAPES, Filler())


def test_full_disk_is_the_caches_error_and_fill_keeps_its_own(monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    def fill(name, array):
        raise OSError("of fill")

    monkeypatch.setattr("mpkc.models.cache.os.fsync", full)
    with pytest.raises(ModelError, match="key.arrays: cannot write the cache: No space left on device"):
        cached_arrays("key", SHAPES, Filler())
    with pytest.raises(OSError, match="of fill"):
        cached_arrays("key", SHAPES, fill)
    assert list(weights().iterdir()) == []


def test_abandoned_files_go():
    cached_arrays("key", SHAPES, Filler())
    old, new = weights() / ".key.arrays.old", weights() / ".key.arrays.new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "key.arrays").write_text("")
    os.utime(old, (time.time() - DAY - 1,) * 2)
    cached_arrays("other", SHAPES, Filler())
    assert not old.exists()
    assert new.exists()
    assert stored().exists()


@pytest.mark.parametrize("key", ["", "../key", "a/b", ".hidden", "a b"])
def test_keys_are_file_names(key):
    with pytest.raises(ValueError, match="not a plain file name"):
        cached_arrays(key, SHAPES, Filler())


def test_where_the_cache_is(monkeypatch, tmp_path):
    assert cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("MPKC_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "mpkc"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_dir() == tmp_path / "home" / ".cache" / "mpkc"


def test_digest_of_every_byte(tmp_path):
    path = tmp_path / "data"
    data = bytearray(np.random.default_rng(0).bytes(300_000))
    digests = set()
    for at in (0, 150_001, 299_999):
        data[at] ^= 1
        path.write_bytes(data)
        digests |= {file_digest(path)}
        assert file_digest(path) in digests
    assert len(digests) == 3


def test_digest_of_no_file(tmp_path):
    with pytest.raises(ModelError, match="gone: No such file"):
        file_digest(tmp_path / "gone")
