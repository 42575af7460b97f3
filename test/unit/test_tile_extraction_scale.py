"""Extracting dependencies takes time in proportion to a program, straight or in loops."""

import time
from random import Random

import pytest
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, NoneAttr, StringAttr, f32
from xdsl.ir import Block, Region, SSAValue

from mpkc.dialects.sem_structure import structure_of
from mpkc.dialects.tile import KernelOp
from mpkc.dialects.tile_buffers import RotateOp
from mpkc.dialects.tile_compute import MapOp
from mpkc.dialects.tile_types import Function, FunctionAttr, Space, SpaceAttr
from mpkc.passes.tile_extract_dependencies import extract_dependencies

ENGINES = ("e0", "e1", "e2", "e3")
NEAR = SpaceAttr(Space.NEAR)
TILE = MemRefType(f32, [8], NoneAttr(), NEAR)
SLOTS = MemRefType(f32, [2, 8], NoneAttr(), NEAR)


def exp(source: SSAValue, dest: SSAValue, engine: str) -> MapOp:
    properties = {"engine": StringAttr(engine), "function": FunctionAttr(Function.EXP)}
    return MapOp.build(operands=[[source], dest], properties=properties)


def alloc(block: Block, type: MemRefType) -> SSAValue:
    op = memref.AllocOp([], [], type)
    block.add_op(op)
    return op.memref


def index(block: Block, value: int) -> SSAValue:
    op = arith.ConstantOp(IntegerAttr(value, IndexType()))
    block.add_op(op)
    return op.result


def straight(instructions: int) -> KernelOp:
    """Each buffer is touched by a few instructions, far apart."""
    rng, block = Random(0), Block()
    buffers = [alloc(block, TILE) for _ in range(instructions // 3)]
    for _ in range(instructions):
        block.add_op(exp(rng.choice(buffers), rng.choice(buffers), rng.choice(ENGINES)))
    return KernelOp("straight", ENGINES, Region(block))


def loops(instructions: int) -> KernelOp:
    """Loops of 50 instructions; a buffer rotates in each of a few that follow each other."""
    rng, block = Random(0), Block(arg_types=[IndexType()])
    zero, one = index(block, 0), index(block, 1)
    buffers = [alloc(block, SLOTS) for _ in range(instructions // 50 + 6)]
    for number in range(instructions // 50):
        body = Block(arg_types=[IndexType()])
        slots = [RotateOp.build(operands=[b, body.args[0]], result_types=[TILE]) for b in buffers[number : number + 6]]
        body.add_ops(slots)
        for _ in range(50):
            body.add_op(exp(rng.choice(slots).result, rng.choice(slots).result, rng.choice(ENGINES)))
        body.add_op(scf.YieldOp())
        block.add_op(scf.ForOp(zero, block.args[0], one, [], body))
    return KernelOp("loops", ENGINES, Region(block))


def seconds(kernel: KernelOp) -> float:
    """CPU time to extract the dependencies of a program."""
    begin = time.process_time()
    extract_dependencies(kernel)
    return time.process_time() - begin


@pytest.mark.parametrize("build", [straight, loops])
def test_time_grows_with_the_program(build):
    kernel = build(2000)
    small = min(seconds(build(1000)) for _ in range(2))
    large = min(seconds(kernel), seconds(build(2000)))
    assert sum(1 for _ in structure_of(kernel).edges) > 200
    assert large < 3 * small
