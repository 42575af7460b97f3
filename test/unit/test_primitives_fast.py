"""Device code on the fast host twins: results, launches side by side, and what a lost launch reports."""

import ctypes
import threading
import time

import device_programs as programs
import numpy as np
import pytest

from mpkc.runtime.host.build import BuildError, build_host
from mpkc.runtime.host.launch import Code, LaunchError
from mpkc.runtime.sources import header_texts

Params = programs.PrimitivesParams


@pytest.mark.parametrize("os_threads", [1, 2])
def test_megakernel(os_threads):
    kernel = programs.Megakernel("fast", workers=14)
    for _ in range(5):
        assert kernel.run(os_threads=os_threads) < 1e-5


@pytest.mark.parametrize(("blocks", "os_threads"), [(1, 1), (16, 1), (16, 2), (200, 1), (200, 3)])
def test_blocks_take_turns(blocks, os_threads):
    turn, counter = np.zeros(1, np.uint32), np.zeros(1, np.uint64)
    programs.primitives("fast").launch(
        "relay",
        Params(words=programs.address(turn), counter=programs.address(counter), n=5),
        blocks,
        os_threads=os_threads,
    )
    assert turn[0] == 5 * blocks
    assert counter[0] == 5 * blocks << 32


def test_lost_launch_reports_who_waits():
    turn, counter = np.zeros(1, np.uint32), np.zeros(1, np.uint64)
    params = Params(words=programs.address(turn), counter=programs.address(counter), n=10, mode=1)
    start = time.monotonic()
    with pytest.raises(LaunchError) as error:
        programs.primitives("fast").launch("relay", params, 4, os_threads=2, timeout_s=0.2)
    assert time.monotonic() - start >= 0.2
    assert error.value.code == Code.TIMEOUT
    assert error.value.report.splitlines() == [
        "timeout: the launch did not end in 0.2 s",
        *(f"  block {block} spins on turn[0] (last value 37)" for block in (1, 2, 3)),
    ]


def test_launch_after_a_lost_one():
    turn, counter = np.zeros(1, np.uint32), np.zeros(1, np.uint64)
    params = Params(words=programs.address(turn), counter=programs.address(counter), n=10, mode=0)
    programs.primitives("fast").launch("relay", params, 4, os_threads=2)
    assert turn[0] == 40


def test_fast_needs_blocks_of_one_thread():
    with pytest.raises(LaunchError, match="not 2 blocks of 32") as error:
        programs.primitives("fast").launch("relay", Params(n=0), 2, 32)
    assert error.value.code == Code.FAULT


def test_host_memory_can_be_watched_during_a_launch():
    words = np.zeros(2, np.uint32)
    library = programs.primitives("fast")
    params = Params(words=programs.address(words), n=50)
    launch = threading.Thread(target=library.launch, args=("converse", params, 1))
    launch.start()
    deadline = time.monotonic() + 20
    for i in range(1, 51):
        words[0] = i
        while words[1] != i:
            assert time.monotonic() < deadline
    launch.join()


@pytest.mark.parametrize("same_library", [True, False])
def test_two_launches_at_once(same_library):
    """Each waits for the other's answer through host memory, so neither ends unless both run."""
    libraries = [programs.primitives("fast"), programs.primitives("fast", fault=0 if same_library else 99)]
    words = np.zeros(3, np.uint32)  # the first reads 0 and answers in 1, the second reads 1 and answers in 2
    launches = [
        threading.Thread(
            target=library.launch,
            args=("converse", Params(words=programs.address(words) + 4 * i, n=20), 1),
            kwargs={"timeout_s": 20.0},
        )
        for i, library in enumerate(libraries)
    ]
    for launch in launches:
        launch.start()
    deadline = time.monotonic() + 20
    for i in range(1, 21):
        words[0] = i
        while words[2] != i:
            assert time.monotonic() < deadline
    for launch in launches:
        launch.join()


def test_denormals_survive_a_caller_that_flushes_them():
    """The launch sets its own floating-point environment and gives the caller's back."""
    libm = ctypes.CDLL("libm.so.6")
    environment = (ctypes.c_uint32 * 8)()
    libm.fegetenv(environment)
    flushing = (ctypes.c_uint32 * 8)(*environment)
    flushing[7] |= 0x8040  # MXCSR: flush to zero, denormals are zero
    try:
        libm.fesetenv(flushing)
        result = programs.evaluate("fast", "exp", np.float32([-100.0]))
        after = (ctypes.c_uint32 * 8)()
        libm.fegetenv(after)
    finally:
        libm.fesetenv(environment)
    assert 0 < result.view(np.uint32)[0] < 1 << 23
    assert after[7] & 0x8040 == 0x8040


def test_source_error_and_missing_compiler(monkeypatch):
    with pytest.raises(BuildError, match=r"kernel.cu:1:\d+: error"):
        build_host("int f() { return undeclared; }", "fast")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("MPKC_CXX", raising=False)
    with pytest.raises(BuildError, match="install the Debian package g\\+\\+"):
        build_host("", "fast")
    with pytest.raises(BuildError, match="install the Debian packages clang-19"):
        build_host("", "lanes", "thread")
    monkeypatch.setenv("MPKC_CXX", "nosuch")
    with pytest.raises(BuildError, match=r"nosuch not found: let \$MPKC_CXX name a compiler"):
        build_host("", "fast")


def test_sanitizers_need_lanes():
    with pytest.raises(BuildError, match="lanes mode only"):
        build_host("", "fast", "thread")


def test_builds_are_named_by_their_content(tmp_path, monkeypatch):
    monkeypatch.setenv("MPKC_CACHE", str(tmp_path / "cache"))
    header = tmp_path / "answer.h"
    header.write_text("#define ANSWER 1\n")
    source = '#include "answer.h"\nint answer() { return ANSWER; }\n'
    first = build_host(source, "fast", include_dirs=[tmp_path])
    written = first.stat().st_mtime_ns
    assert build_host(source, "fast", include_dirs=[tmp_path]) == first
    assert first.stat().st_mtime_ns == written
    header.write_text("#define ANSWER 2\n")
    assert build_host(source, "fast", include_dirs=[tmp_path]) != first
    assert build_host(source, "fast", defines={"X": 1}, include_dirs=[tmp_path]) != first
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.name.startswith(".")]


def test_headers_of_headers_count(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.h").write_text('#include "sub/b.h"\n')
    (tmp_path / "sub" / "b.h").write_text('#include "c.h"\n#include <vector>\n')
    (tmp_path / "sub" / "c.h").write_text("// c\n")
    assert len(header_texts('#include "a.h"\n', [tmp_path])) == 3
