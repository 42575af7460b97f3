"""The programs of test/device with their inputs, outputs and references."""

import ctypes
from functools import cache
from pathlib import Path

import numpy as np

from mpkc.runtime.host.build import build_host
from mpkc.runtime.host.launch import HostLibrary

DEVICE = Path(__file__).parent.parent / "device"

u32, pointer = ctypes.c_uint32, ctypes.c_void_p


def source(name):
    return (DEVICE / f"{name}.cu").read_text()


@cache
def library(name, mode, sanitizer=None, fault=0):
    return HostLibrary(build_host(source(name), mode, sanitizer, {"FAULT": fault}))


def structure(*fields):
    return type("Params", (ctypes.Structure,), {"_fields_": list(fields)})


def address(array):
    return array.ctypes.data


def threads_of(mode, lanes):
    return 1 if mode == "fast" else lanes


PrimitivesParams = structure(*((name, pointer) for name in ["x", "y", "words", "counter"]), ("n", u32), ("mode", u32))
FUNCTIONS = ["exp", "rsqrt", "sin", "cos", "tanh", "bf16", "f16"]


def primitives(mode, sanitizer=None, fault=0):
    return library("primitives", mode, sanitizer, fault)


def evaluate(mode, function, x, **launch):
    """`function` of each float of `x`, computed by device code."""
    y = np.zeros_like(x)
    params = PrimitivesParams(x=address(x), y=address(y), n=x.size, mode=FUNCTIONS.index(function))
    primitives(mode).launch("evaluate", params, 2, threads_of(mode, 32), **launch)
    return y


MEGAKERNEL_FAULTS = {
    name: i + 1
    for i, name in enumerate(
        [
            "relaxed_event",
            "relaxed_publish",
            "no_sync_after_load",
            "no_copy_wait",
            "write_past_shared",
            "misaligned_store",
            "plain_event",
            "no_free_slot_wait",
            "torn_event",
            "write_past_global",
        ]
    )
}
RING_FAULTS = {
    name: i + 1
    for i, name in enumerate(["no_empty_wait", "no_full_wait", "signal_before_copy", "no_warp_sync", "lost_signal"])
}

MegakernelParams = structure(
    *((name, pointer) for name in ["x", "w1", "w2", "h", "y", "tasks", "need", "offsets", "released", "counters"]),
    *((name, pointer) for name in ["task_slots", "event_slots", "task_tails", "event_tails"]),
    *((name, u32) for name in ["depth", "hidden", "columns", "workers", "events", "task_capacity", "event_capacity"]),
)


class Megakernel:
    """relu(x @ w1) @ w2 in tiles of 16 x 32: an event for each 16 rows of the hidden layer, and one for the end."""

    rows, depth, hidden, columns = 64, 64, 128, 64

    def __init__(self, mode, sanitizer=None, fault=0, workers=8, schedulers=2, extra_need=0):
        self.library = library("megakernel", mode, sanitizer, fault)
        self.workers, self.blocks, self.threads = workers, workers + schedulers, threads_of(mode, 64)
        rng = np.random.default_rng(0)
        shapes = ((self.rows, self.depth), (self.depth, self.hidden), (self.hidden, self.columns))
        self.x, self.w1, self.w2 = ((rng.standard_normal(s) / 8).astype(np.float32) for s in shapes)
        self.expected = np.maximum(self.x @ self.w1, 0) @ self.w2
        groups, across1, across2 = self.rows // 16, self.hidden // 32, self.columns // 32
        first = [(0, 1 + g, 16 * g, 32 * c) for g in range(groups) for c in range(across1)]
        second = [(1, 1 + groups, 16 * g, 32 * c) for g in range(groups) for c in range(across2)]
        self.tasks = np.array(first + second, np.uint32)
        self.need = np.array([1] + [across1] * groups + [groups * across2], np.uint32)
        self.need[2] += extra_need
        released = [len(first)] + [across2] * groups + [0]
        self.offsets = np.concatenate([[0], np.cumsum(released)]).astype(np.uint32)
        self.released = np.arange(len(self.tasks), dtype=np.uint32)
        self.schedulers = schedulers

    def run(self, seed=0, os_threads=0, capacity=2, timeout_s=30.0):
        """The largest error of one launch, NaN where something was read that nobody wrote."""
        h = np.full((self.rows, self.hidden), np.nan, np.float32)
        y = np.full((self.rows, self.columns), np.nan, np.float32)
        events = len(self.need)
        counters = np.zeros(events, np.uint32)
        task_slots = np.zeros((self.workers, capacity, 2), np.uint32)
        event_slots = np.zeros((self.schedulers, events, 2), np.uint32)
        task_slots[:, :, 0] = np.arange(capacity)
        event_slots[:, :, 0] = np.arange(events)
        event_slots[0, 0] = 1, 0  # event 0 is active
        task_tails = np.zeros(self.workers, np.uint32)
        event_tails = np.array([1] + [0] * (self.schedulers - 1), np.uint32)
        arrays = (self.x, self.w1, self.w2, h, y, self.tasks, self.need, self.offsets, self.released, counters)
        queues = (task_slots, event_slots, task_tails, event_tails)
        params = MegakernelParams(
            *map(address, (*arrays, *queues)),
            *(self.depth, self.hidden, self.columns, self.workers, events, capacity, events),
        )
        self.library.launch(
            "megakernel",
            params,
            self.blocks,
            self.threads,
            (16 * 128 + 128 * 32) * 4 + 16,
            seed=seed,
            os_threads=os_threads,
            timeout_s=timeout_s,
        )
        return np.abs(y - self.expected).max()


class Ring:
    """Weighted sums of 20 pages through a ring of 3; lanes mode only, as it has two roles in a block."""

    pages, page = 20, 128
    params = structure(("x", pointer), ("y", pointer), ("n", u32))

    def __init__(self, sanitizer=None, fault=0, blocks=2):
        self.library = library("ring", "lanes", sanitizer, fault)
        self.blocks = blocks
        self.x = np.random.default_rng(1).standard_normal((self.pages, self.page)).astype(np.float32)
        self.expected = np.arange(1, self.pages + 1, dtype=np.float32) @ self.x

    def run(self, seed=0):
        y = np.full((self.blocks, self.page), np.nan, np.float32)
        params = self.params(address(self.x), address(y), self.pages)
        self.library.launch("ring", params, self.blocks, 64, 3 * 128 * 4 + 8, seed=seed, timeout_s=30.0)
        return np.abs(y - self.expected).max()
