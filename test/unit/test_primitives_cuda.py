"""The GPU's primitives compile for every architecture, spill nothing, and become the instructions they should."""

import re
import shutil
import subprocess

import device_programs as programs
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="needs cuda-bindings (mpkc[cuda])")

from mpkc.runtime.cuda.compile import (  # noqa: E402
    INCLUDE,
    CompileError,
    compile_cuda,
    compile_cuda_verbosely,
    parse_resources,
)

ARCHITECTURES = pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])


@ARCHITECTURES
@pytest.mark.parametrize("program", ["megakernel", "primitives", "ring"])
def test_compiles_without_spills(program, arch):
    compiled = compile_cuda_verbosely(programs.source(program), arch)
    assert compiled.cubin[:4] == b"\x7fELF"
    kernels = set(re.findall(r"MPK_KERNEL\((\w+)", programs.source(program)))
    assert set(compiled.resources) == kernels
    for resources in compiled.resources.values():
        assert resources.spill_stores == resources.spill_loads == resources.stack == 0
        assert 0 < resources.registers <= 128


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
@pytest.mark.parametrize("program", ["megakernel", "primitives", "ring"])
def test_nvcc_compiles_the_same_source(program, tmp_path):
    options = ["-std=c++17", "-arch=sm_90a", "-cubin", f"-I{INCLUDE}", "-Xptxas", "-warn-spills,-Werror"]
    subprocess.run(
        ["nvcc", *options, str(programs.DEVICE / f"{program}.cu"), "-o", str(tmp_path / "out.cubin")], check=True
    )


def ptx(body, *headers):
    """The PTX of one kernel made of `body`, by NVRTC with the options of compile_cuda."""
    from cuda.bindings import nvrtc

    includes = "".join(f'#include "primitives/{header}.h"\n' for header in (*headers, "launch"))
    source = f"{includes}namespace mpk {{ struct Params {{ u32 *a; u64 *b; float *c; u32 n; }};\n"
    source += f"MPK_KERNEL(kernel, Params, 64) {{ {body} }} }}"
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    flags = [b"--std=c++17", b"-ftz=true", b"-arch=sm_80", f"-I{INCLUDE}".encode()]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
    assert not result
    _, size = nvrtc.nvrtcGetPTXSize(program)
    text = bytearray(size)
    out = bytes(text)
    nvrtc.nvrtcGetPTX(program, out)
    return out.decode()


@pytest.mark.parametrize(
    ("body", "instruction"),
    [
        ("p.a[1] = load_acquire(p.a);", "ld.acquire.gpu.global.u32"),
        ("p.a[1] = load_relaxed(p.a);", "ld.relaxed.gpu.global.u32"),
        ("store_release(p.a, 1);", "st.release.gpu.global.u32"),
        ("store_relaxed(p.a, 1);", "st.relaxed.gpu.global.u32"),
        ("p.a[1] = add_acq_rel(p.a, 1);", "atom.acq_rel.gpu.global.add.u32"),
        ("p.a[1] = add_release(p.a, 1);", "atom.release.gpu.global.add.u32"),
        ("p.a[1] = add_relaxed(p.a, 1);", "atom.relaxed.gpu.global.add.u32"),
        ("add_relaxed(p.b, 1);", "atom.relaxed.gpu.global.add.u64"),
        ("p.a[1] = load_acquire_system(p.a);", "ld.acquire.sys.global.u32"),
        ("store_release_system(p.a, 1);", "st.release.sys.global.u32"),
        ("p.a[1] = load_acquire_shared(&shared<u32>());", "ld.acquire.cta.shared.u32"),
        ("signal_shared(&shared<u32>(), 1);", "red.release.cta.shared.add.u32"),
        ("sync_threads(3, 64);", "barrier.sync"),
        ("pause();", "nanosleep.u32"),
        ("copy_async16(&shared<f4>(), p.c);", "cp.async.cg.shared.global"),
        ("copy_async4(&shared<f4>(), p.c);", "cp.async.ca.shared.global"),
        ("copy_commit(); copy_wait<1>();", "cp.async.wait_group 1"),
        ("p.c[1] = exp(p.c[0]);", "ex2.approx.ftz.f32"),
        ("p.c[1] = rsqrt(p.c[0]);", "rsqrt.approx.ftz.f32"),
        ("p.a[1] = float_to_bf16(p.c[0]);", "cvt.rn.bf16.f32"),
        ("p.a[1] = float_to_f16(p.c[0]);", "cvt.rn.f16.f32"),
        ("p.c[1] = f16_to_float((u16)p.n);", "cvt.f32.f16"),
        ("p.c[1] = max(p.c[0], 1.0f);", "max.ftz.f32"),
    ],
)
def test_instructions(body, instruction):
    assert instruction in ptx(body, "types", "thread", "atomic", "copy", "math")


def test_shared_memory_is_aligned():
    assert re.search(r"\.extern \.shared \.align 1024", ptx("shared<u32>() = p.n;", "thread"))


def test_angles_need_no_stack():
    text = ptx("p.c[1] = sin(p.c[0]) + cos(p.c[0]);", "math")
    assert ".local" not in text
    assert text.count("fma.rn.ftz.f32") >= 12


def test_errors():
    with pytest.raises(CompileError, match=r"NVRTC failed for sm_80:\nkernel.cu\(1\): error"):
        compile_cuda("int f() { return undeclared; }", "sm_80")
    with pytest.raises(CompileError, match="invalid value for --gpu-architecture"):
        compile_cuda("", "sm_8")


def test_cubins_are_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("MPKC_CACHE", str(tmp_path))
    source = '#include "primitives/types.h"\nextern "C" __global__ void kernel(mpk::u32* p) { *p = 1; }'
    first = compile_cuda(source, "sm_90a")
    (path,) = (tmp_path / "cuda").iterdir()
    path.write_bytes(b"from the cache")
    assert compile_cuda(source, "sm_90a") == b"from the cache"
    assert compile_cuda(source, "sm_80") != first
    assert compile_cuda(source + " ", "sm_90a")[:4] == b"\x7fELF"
    assert len(list((tmp_path / "cuda").iterdir())) == 3


def test_architecture_below_the_floor_is_refused():
    with pytest.raises(CompileError, match=r"cp\.async|bf16"):
        compile_cuda(programs.source("ring"), "sm_75")


def test_resources_are_read_from_the_log():
    source = """
    extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* x) {
      __shared__ float tile[8];
      float v[96];
      for (int i = 0; i < 96; ++i) v[i] = x[i * 1024 + threadIdx.x];
      tile[threadIdx.x % 8] = v[3];
      __syncthreads();
      for (int i = 0; i < 96; ++i) x[i * 2048 + threadIdx.x] = v[i] * v[95 - i] + tile[i % 8];
    }"""
    resources = compile_cuda_verbosely(source, "sm_90a").resources["spilling"]
    assert resources.registers == 32
    assert resources.spill_stores > 0
    assert resources.spill_loads > 0
    assert resources.static_shared >= 32
    assert resources.barriers == 1
    assert parse_resources("nothing of the kind") == {}
