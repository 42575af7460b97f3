"""Bad input of every kind, through the command line: one message, exit code 2, nothing written."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mpkc.cli import main
from mpkc.cli.errors import told_in_one_line

ROOT = Path(__file__).parents[2]
MLP = ROOT / "examples" / "mlp.mlir"
RNG = np.random.default_rng(0)

Make = Callable[[Path, Any], None]  # writes what a case needs into a folder; the second argument has the tiny models


@dataclass(frozen=True)
class Case:
    """One kind of bad input.

    Attributes:
        args: of mpkc; FOLDER stands for the folder that `make` fills.
        told: what the message must contain; where it is `name:line:col` it is the place that it begins with.
    """

    args: Sequence[str]
    told: Sequence[str]
    make: Make = lambda folder, models: None
    stdin: str | bytes = ""
    env: dict[str, str] = field(default_factory=dict)


def text(content: str, name: str = "p.mlir") -> Make:
    return lambda folder, models: (folder / name).write_text(content) and None


def raw(content: bytes, name: str) -> Make:
    return lambda folder, models: (folder / name).write_bytes(content) and None


def arrays(**named: Any) -> Make:
    return lambda folder, models: np.savez(folder / "in.npz", **named)


def func(body: str, arguments: str = "%x : tensor<4x8xf32>", result: str = "tensor<4x8xf32>") -> Make:
    return text(f"func.func @f({arguments}) -> {result} {{\n{body}\n  func.return %0 : {result}\n}}\n")


def truncated_gguf(folder: Path, models: Any) -> None:
    whole = models.gguf().read_bytes()
    (folder / "m.gguf").write_bytes(whole[: len(whole) // 2])


def gguf(folder: Path, models: Any) -> None:
    (folder / "m.gguf").symlink_to(models.gguf())


def other_architecture(folder: Path, models: Any) -> None:
    data = models.gguf().read_bytes()
    (folder / "m.gguf").write_bytes(data.replace(b"llama", b"mamba"))


def checkpoint(folder: Path, models: Any, **changes: Any) -> None:
    for path in models.checkpoint().iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def many(*makes: Make) -> Make:
    def make(folder: Path, models: Any) -> None:
        for each in makes:
            each(folder, models)

    return make


def copy_of_mlp(folder: Path, models: Any) -> None:
    (folder / "p.mlir").write_text(MLP.read_text())


EMBEDDING = func(
    "  %0 = tops.embedding %i, %t : (tensor<2xi32>, tensor<4x8xf32>) -> tensor<2x8xf32>",
    "%i : tensor<2xi32>, %t : tensor<4x8xf32>",
    "tensor<2x8xf32>",
)
ATTENTION = """func.func @f(%q : tensor<1x24xf32>, %k : memref<2x1x4x8xf32>, %v : memref<2x1x4x8xf32>,
    %pages : tensor<1x2xi32>, %at : tensor<1xi32>) -> tensor<1x8xf32> {
  %0 = tops.attention %q, %k, %v, %pages, %at {heads = 1 : i64, rope_base = 1.0e4 : f64, rope_style = "halves"} : (tensor<1x24xf32>, memref<2x1x4x8xf32>, memref<2x1x4x8xf32>, tensor<1x2xi32>, tensor<1xi32>) -> tensor<1x8xf32>
  func.return %0 : tensor<1x8xf32>
}
"""  # noqa: E501
SOFTMAX = func("  %0 = tops.softmax %x : (tensor<4x8xf32>) -> tensor<4x8xf32>")
ADD = func("  %0 = tops.add %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>")
BF16 = func(
    '  %w = tops.weight "w" : tensor<8x8xbf16>\n'
    "  %0 = tops.linear %x, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>",
    "%x : tensor<4x8xbf16>",
    "tensor<4x8xbf16>",
)
SEM = """sem.program @p(%n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %a = %c0 to %n step %c1 {
    %v = sem.value @V engine "e0" cost 8 : index
  }
}
"""
TILE = """tile.kernel @k(%a : memref<2x4xf32, #tile.space<far>>, %b : memref<?x4xf32, #tile.space<far>>, %n : index)
    engines ["load"] {
}
"""
CYCLE = """tgraph.graph @cycle {
  tgraph.tasks @A kind "linear" grid [2]
  tgraph.tasks @B kind "add" grid [2]
  tgraph.events @there count 2 from @A each 1 to @B each 1
  tgraph.events @back count 2 from @B each 1 to @A each 1
}
"""


def table_of_two_adds(passes: str) -> Make:
    """The task graph of two additions after some of the passes, as a file."""

    def make(folder: Path, models: Any) -> None:
        ops = "\n".join(
            f"  %{i} = tops.add %{i - 1 if i else 'x'}, %x {{grid = array<i64: 2, 1>}} "
            ": (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>"
            for i in range(2)
        )
        text(
            f"func.func @f(%x : tensor<4x8xf32>) -> tensor<4x8xf32> {{\n{ops}\n  func.return %1 : tensor<4x8xf32>\n}}\n"
        )(folder, models)
        result = CliRunner().invoke(main, ["opt", str(folder / "p.mlir"), "-p", passes])
        assert result.exit_code == 0, result.output
        (folder / "p.mlir").write_text(result.stdout)

    return make


GENERATE = ("generate", "FOLDER/m.gguf", "--target", "reference")
RUN = ("run", "FOLDER/p.mlir")
OPT = ("opt", "FOLDER/p.mlir")

CASES: dict[str, Case] = {
    # Models.
    "truncated GGUF": Case(("stats", "FOLDER/m.gguf"), ["m.gguf", "after the end of the file"], truncated_gguf),
    "random bytes as GGUF": Case(("stats", "FOLDER/m.gguf"), ["not a GGUF file"], raw(RNG.bytes(4096), "m.gguf")),
    "random bytes as GGUF, for opt": Case(("opt", "FOLDER/m.gguf"), ["not a GGUF"], raw(RNG.bytes(4096), "m.gguf")),
    "unsupported architecture": Case(("import", "FOLDER/m.gguf"), ["mamba", "llama"], other_architecture),
    "missing model file": Case(("stats", "FOLDER/m.gguf"), ["m.gguf: no such model", "smollm2-135m"]),
    "directory without config.json": Case(("stats", "FOLDER"), ["it has no config.json"]),
    "shapes of config and tensors differ": Case(
        ("stats", "FOLDER"), ["has shape", "expected"], lambda f, m: checkpoint(f, m, intermediate_size=384)
    ),
    "a model without weights and tokenizer": Case(
        ("generate", "qwen3-8b", "--prompt", "a"), ["qwen3-8b", "has no tokenizer", ".gguf"]
    ),
    "unknown model": Case(("generate", "qwen4-8b", "--prompt", "a"), ["qwen4-8b: no such model", "qwen3-8b"]),
    "unknown model as INPUT": Case(("stats", "qwen4-8b"), ["qwen4-8b: no such model", "qwen3-8b"]),
    "import of MLIR": Case(("import", "FOLDER/p.mlir"), ["is MLIR already"], copy_of_mlp),
    "more layers than the model has": Case(("import", "qwen3-8b", "--layers", "99"), ["99", "36"]),
    # Requests.
    "an empty prompt": Case((*GENERATE, "--prompt", ""), ["the prompt is empty"], gguf),
    "a prompt longer than the context": Case((*GENERATE, "--prompt", "the " * 9999), ["longer than the context"], gguf),
    "no tokens": Case((*GENERATE, "--prompt", "a", "--tokens", "0"), ["--tokens", "0 is not in the range"], gguf),
    "no workers": Case(("stats", str(MLP), "--workers", "0"), ["--workers", "0 is not in the range"]),
    "no prompt": Case(GENERATE, ["--prompt", "mpkc generate --help"], gguf),
    # The command line.
    "unknown command": Case(("generat", "qwen3-8b"), ["'generat': did you mean generate?", "compile"]),
    "unknown option": Case(("stats", str(MLP), "--worker", "3"), ["--worker", "--workers", "mpkc stats --help"]),
    "unknown option of mpkc": Case(("--bogus",), ["--bogus", "mpkc --help"]),
    "no INPUT": Case(("stats",), ["INPUT", "mpkc stats --help"]),
    "unknown target": Case(("run", str(MLP), "--target", "tpu"), ["'tpu'", "'reference', 'host', 'cuda'"]),
    "unknown stage": Case(("compile", str(MLP), "--emit", "asm"), ["'asm'", "'tops', 'tgraph', 'table'"]),
    "a binary to standard output": Case(("compile", str(MLP), "--emit", "binary"), ["add -o OUT"]),
    "no compiler": Case(
        ("run", str(MLP), "--target", "host"), ["nonexistent not found"], env={"MPKC_CXX": "nonexistent"}
    ),
    "a cache that is a file": Case(
        ("run", str(MLP), "--target", "host"),
        ["FOLDER/cache: cannot write the cache", "$MPKC_CACHE"],
        raw(b"", "cache"),
        env={"MPKC_CACHE": "FOLDER/cache"},
    ),
    "weights for a cache that is a file": Case(
        (*GENERATE, "--prompt", "a"),
        ["FOLDER/cache: cannot write the cache", "$MPKC_CACHE"],
        many(gguf, raw(b"", "cache")),
        env={"MPKC_CACHE": "FOLDER/cache"},
    ),
    # opt.
    "unknown pass": Case(
        ("opt", str(MLP), "-p", "tgraph-bild"), ["'tgraph-bild'", "did you mean tgraph-build", "tgraph-prune", "--help"]
    ),
    "unknown option of a pass": Case(
        ("opt", str(MLP), "-p", "tgraph-partition{worker=4}"), ["'worker'", "did you mean workers", "min_bytes"]
    ),
    "option of a pass of the wrong type": Case(
        ("opt", str(MLP), "-p", "tgraph-partition{workers=many}"), ["tgraph-partition", "workers takes int", "many"]
    ),
    "option of a pass without a value": Case(
        ("opt", str(MLP), "-p", "tgraph-partition{workers}"), ["workers takes int", "nothing"]
    ),
    "a list of passes that does not end": Case(
        ("opt", str(MLP), "-p", "tgraph-partition{workers="), ["pass-pipeline:1:26: error:"]
    ),
    "unknown option of opt": Case(("opt", str(MLP), "--pases", "cse"), ["--pases", "mpkc opt --help"]),
    "unknown target of opt": Case(("opt", str(MLP), "-t", "mpk-cuba"), ["'mpk-cuba'", "mpk-cuda"]),
    "unknown option of a target": Case(("opt", str(MLP), "-t", "mlir{colour=true}"), ["'colour'", "target mlir"]),
    "unknown frontend": Case(("opt", str(MLP), "-f", "onnx"), ["'onnx'", "gguf"]),
    "a file that no frontend reads": Case(("opt", "FOLDER/p.txt"), ["p.txt", "'.txt'", "-f"], text("", "p.txt")),
    "a target that needs a task graph": Case(
        ("opt", str(MLP), "-t", "mpk-cuda", "-o", "FOLDER/out"), ["mlp.mlir:2:1: error:", "tgraph.table"]
    ),
    "a directory for opt": Case(("opt", "FOLDER"), ["directory"]),
    # MLIR.
    "missing file": Case(RUN, ["FOLDER/p.mlir: no such file"]),
    "missing file for opt": Case(OPT, ["FOLDER/p.mlir: no such file"]),
    "random bytes as MLIR": Case(OPT, ["p.mlir: not UTF-8 text"], raw(b"\xff\xfe" + RNG.bytes(999), "p.mlir")),
    "random text as MLIR": Case(OPT, ["p.mlir:1:1: error:"], text("(%$ lorem ipsum \x00\x07")),
    "a string that does not end": Case(
        RUN,
        ["p.mlir:2:20: error:", "closing string literal"],
        func('  %0 = tops.weight "' + "layers" * 20 + " : tensor<4x8xf32>"),
    ),
    "an empty file": Case(RUN, ["p.mlir:1:1: error:", "expected an operation"], text("")),
    "a syntax error": Case(RUN, ["p.mlir:2:8: error:", "^"], func("  %0 = = tops.add")),
    "a syntax error on standard input": Case(("run", "-"), ["<stdin>:1:11: error:"], stdin="func.func x() {}"),
    "an unknown operation": Case(
        RUN, ["p.mlir:2:8: error:", "'tops.ad': did you mean tops.add?", "tops.linear"], func("  %0 = tops.ad %x : ()")
    ),
    "an unknown dialect": Case(RUN, ["p.mlir:2:8: error:", "'top'", "tops"], func("  %0 = top.add %x : ()")),
    "an attribute that can't be": Case(RUN, ["p.mlir:1:46: error:"], func("", "%x : tensor<4xf32, dense<[1, 2]>>")),
    "a use before its definition": Case(
        RUN,
        ["p.mlir:2:3: error:", "before that is defined"],
        func(
            "  %0 = tops.add %x, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>\n"
            "  %1 = tops.add %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>"
        ),
    ),
    "a use without definition": Case(
        RUN,
        ["p.mlir:2:21: error: %y is used but never defined"],
        func("  %0 = tops.add %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>"),
    ),
    "operands of the wrong type": Case(
        RUN,
        ["p.mlir:3:3: error:", "8 columns"],
        func(
            '  %w = tops.weight "w" : tensor<8x9xf32>\n'
            "  %0 = tops.linear %x, %w : (tensor<4x8xf32>, tensor<8x9xf32>) -> tensor<4x8xf32>"
        ),
    ),
    "a grid that does not fit": Case(
        ("compile", "FOLDER/p.mlir"),
        ["p.mlir:2:3: error:", "cuts rows in 9"],
        func(
            "  %0 = tops.add %x, %x {grid = array<i64: 9, 1>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>"
        ),
    ),
    "two functions": Case(
        RUN, ["p.mlir:2:1: error:", "func.func @f, func.func @g"], text("func.func @f() {}\nfunc.func @g() {}\n")
    ),
    "a function without a body": Case(RUN, ["p.mlir:1:1: error:", "@f has no body"], text("func.func private @f()")),
    "an argument that is no tensor": Case(
        RUN, ["p.mlir:1:1: error:", "'n' is index"], text("func.func @f(%n : index) { func.return }")
    ),
    "an argument of unknown shape": Case(
        RUN, ["p.mlir:1:1: error:", "known shape"], text("func.func @f(%x : tensor<?xf32>) { func.return }")
    ),
    "an argument too large for memory": Case(
        RUN, ["not enough memory"], text("func.func @f(%x : tensor<999999999999x99xf32>) { func.return }")
    ),
    "no program": Case(
        RUN, ["p.mlir:1:1: error:", "no program, but arith.constant"], text("%c = arith.constant 1 : i32")
    ),
    "a program of other operators": Case(
        RUN, ["p.mlir:2:3: error:", "'arith.addf' can't be run"], func("  %0 = arith.addf %x, %x : tensor<4x8xf32>")
    ),
    "nested too deeply": Case(OPT, ["p.mlir:1:", "nested too deeply"], text("builtin.module {" * 5000)),
    # Targets.
    "an operator without a body": Case(
        (*RUN, "--target", "host"), ["p.mlir:2:3: error:", "'tops.softmax' has no task body", "tops.linear"], SOFTMAX
    ),
    "an element type without bodies": Case(
        (*RUN, "--target", "host"), ["p.mlir:3:3: error:", "f32 and i32", "bf16"], BF16
    ),
    "an event graph that can't complete": Case(
        ("opt", "FOLDER/p.mlir"), ["p.mlir:1:1: error:", "can't complete: tasks wait for each other: A[0]"], text(CYCLE)
    ),
    "a task graph that is not linear": Case(
        ("opt", "FOLDER/p.mlir", "-t", "mpk-cuda"), ["error:", "linear"], table_of_two_adds("tgraph-build")
    ),
    "a sem.program on the host": Case(
        (*RUN, "--target", "host"),
        ["p.mlir:1:1: error:", "a sem.program runs on the reference and neuron targets only"],
        text(SEM),
    ),
    "a tile.kernel on a GPU": Case(
        (*RUN, "--target", "cuda"),
        ["p.mlir:1:1: error:", "a tile.kernel runs on the reference and neuron targets only"],
        text(TILE),
    ),
    # Data.
    "a missing binding": Case(RUN, ["p.mlir:1:1: error:", "%n has no value", "n=VALUE"], text(SEM)),
    "a missing value": Case(
        (*RUN, "--bind", "n=2,V=3"), ["p.mlir:5:5: error:", "@V runs for the 2nd time and has 1 value"], text(SEM)
    ),
    "an unknown binding": Case((*RUN, "--bind", "m=2"), ["'m' is neither", "n, V"], text(SEM)),
    "a binding for nothing": Case((*RUN, "--bind", "n=2"), ["--bind does not go with a func.func"], ADD),
    "a bad binding": Case((*RUN, "--bind", "n=two"), ["--bind: 'two' is no value"], text(SEM)),
    "a number of a kernel without value": Case(
        (*RUN, "--inputs", "FOLDER/in.npz"),
        ["p.mlir:1:1: error:", "%n has no value"],
        many(text(TILE), arrays(b=np.zeros((1, 4), np.float32))),
    ),
    "a buffer of a kernel of open size": Case((*RUN, "--bind", "n=1"), ["p.mlir:1:1: error:", "%b is ?x4"], text(TILE)),
    "a buffer of a kernel of the wrong shape": Case(
        (*RUN, "--bind", "n=1", "--inputs", "FOLDER/in.npz"),
        ["p.mlir:1:1: error:", "%b is ?x4", "(1, 5)"],
        many(text(TILE), arrays(b=np.zeros((1, 5), np.float32))),
    ),
    "an .npz that is none": Case(
        (*RUN, "--inputs", "FOLDER/in.npz"), ["in.npz: not an .npz file"], many(ADD, raw(b"PK\3\4nonsense", "in.npz"))
    ),
    "an .npz that is missing": Case((*RUN, "--inputs", "FOLDER/in.npz"), ["in.npz: no such file"], ADD),
    "an .npz of objects": Case(
        (*RUN, "--inputs", "FOLDER/in.npz"), ["not an .npz file"], many(ADD, arrays(x=np.array({"a": 1}, dtype=object)))
    ),
    "an input of an unknown name": Case(
        (*RUN, "--inputs", "FOLDER/in.npz"), ["p.mlir:1:1: error:", "'y'", "there are: x"], many(ADD, arrays(y=1.0))
    ),
    "a weight that has the wrong shape": Case(
        (*RUN, "--inputs", "FOLDER/in.npz"),
        ["p.mlir:", "weight 'norm' is float32 (3,)", "float32 (64,)"],
        many(copy_of_mlp, arrays(norm=np.zeros(3, np.float32))),
    ),
    "a weight some of whose sources are missing": Case(
        (*RUN, "--inputs", "FOLDER/in.npz"),
        ["p.mlir:", "'up' is missing"],
        many(copy_of_mlp, arrays(gate=np.zeros((128, 64), np.float32))),
    ),
    # Files to write.
    "an output in a directory that there is not": Case(
        ("compile", str(MLP), "-o", "FOLDER/no/out.cu"), ["no/out.cu: there is no directory"]
    ),
    "an output that is a directory": Case(("compile", str(MLP), "-o", "FOLDER"), ["is a directory"]),
    "results in a directory that there is not": Case(
        ("run", str(MLP), "--outputs", "FOLDER/no/out.npz"), ["no/out.npz: there is no directory"]
    ),
    "an output of opt in a directory that there is not": Case(
        ("opt", str(MLP), "-o", "FOLDER/no/out.mlir"), ["no/out.mlir: there is no directory"]
    ),
    "an output of opt, and a pass that fails": Case(
        ("opt", str(MLP), "-p", "tgraph-linearize,tgraph-unpack", "-t", "mpk-cuda", "-o", "FOLDER/out.cu"), ["error:"]
    ),
}
for target in ("reference", "host"):
    CASES |= {
        f"an input of the wrong shape, {target}": Case(
            (*RUN, "--inputs", "FOLDER/in.npz", "--target", target),
            ["p.mlir:1:1: error:", "'x' is float32 (4, 9)", "float32 (4, 8)"],
            many(ADD, arrays(x=np.zeros((4, 9), np.float32))),
        ),
        f"an input of the wrong dtype, {target}": Case(
            (*RUN, "--inputs", "FOLDER/in.npz", "--target", target),
            ["p.mlir:1:1: error:", "'x' is float64 (4, 8)", "float32 (4, 8)"],
            many(ADD, arrays(x=np.zeros((4, 8)))),
        ),
        f"an index beyond the table, {target}": Case(
            (*RUN, "--inputs", "FOLDER/in.npz", "--target", target),
            ["p.mlir:2:3: error:", "'i' has 4 at [1]", "4 rows of the table"],
            many(EMBEDDING, arrays(i=np.array([0, 4], np.int32))),
        ),
        f"a negative index, {target}": Case(
            (*RUN, "--inputs", "FOLDER/in.npz", "--target", target),
            ["p.mlir:1:1: error:", "'i' has -1"],
            many(EMBEDDING, arrays(i=np.array([0, -1], np.int32))),
        ),
        f"a page beyond the cache, {target}": Case(
            (*RUN, "--inputs", "FOLDER/in.npz", "--target", target),
            ["p.mlir:3:3: error:", "'pages' has 2 at [0, 1]", "2 pages of the cache"],
            many(text(ATTENTION), arrays(pages=np.array([[0, 2]], np.int32))),
        ),
        f"a position beyond the pages, {target}": Case(
            (*RUN, "--inputs", "FOLDER/in.npz", "--target", target),
            ["p.mlir:3:3: error:", "'at' has 8 at [0]", "8 positions"],
            many(text(ATTENTION), arrays(at=np.array([8], np.int32))),
        ),
    }


class Models:
    def __init__(self, gguf: Callable[..., Path], checkpoint: Callable[..., Path]):
        self.gguf, self.checkpoint = gguf, checkpoint


@pytest.fixture(scope="module")
def models(tiny_gguf: Callable[..., Path], tiny_checkpoint: Callable[..., Path]) -> Models:
    return Models(tiny_gguf, tiny_checkpoint)


def one_message(stderr: str, told: Sequence[str], folder: Path) -> None:
    """Whether `stderr` is one message with all of the words."""
    assert "Traceback" not in stderr
    first, *rest = stderr.splitlines()
    assert "error:" in first, stderr
    assert not any("error:" in line for line in rest), stderr
    for words in told:
        assert words.replace("FOLDER", str(folder)) in stderr, stderr


@pytest.mark.parametrize("kind", CASES)
def test_is_told(kind: str, tmp_path: Path, models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[kind]
    case.make(tmp_path, models)
    for name, value in case.env.items():
        monkeypatch.setenv(name, value.replace("FOLDER", str(tmp_path)))
    before = sorted(tmp_path.rglob("*"))
    args = [arg.replace("FOLDER", str(tmp_path)) for arg in case.args]
    result = CliRunner().invoke(main, args, input=case.stdin)
    assert result.exit_code == 2, (result.output, result.exception)
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert sorted(tmp_path.rglob("*")) == before
    one_message(result.stderr, case.told, tmp_path)


def test_there_are_enough_kinds() -> None:
    assert len(CASES) >= 36


def process(*args: str, tool: str = "mpkc", **options: Any) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / tool), *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize(
    ("tool", "args", "told"),
    [
        ("mpkc", ["stats", "qwen4"], ["qwen4: no such model"]),
        ("mpkc", ["opt", "-p", "nopass"], ["no pass is named 'nopass'"]),
        ("mpkc-opt", ["-p", "nopass"], ["no pass is named 'nopass'", "mpkc-opt --help"]),
        ("mpkc-opt", ["-"], ["<stdin>:1:1: error: expected an operation"]),
        ("mpkc-opt", ["--bogus"], ["--bogus", "mpkc-opt --help"]),
    ],
)
def test_the_exit_code_of_the_process(tool: str, args: list[str], told: list[str], tmp_path: Path) -> None:
    done = process(*args, tool=tool, stdin=subprocess.DEVNULL, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    one_message(done.stderr, told, tmp_path)


def test_a_missing_gpu_is_told(tmp_path: Path) -> None:
    done = process("run", str(MLP), "--target", "cuda", env=os.environ | {"CUDA_VISIBLE_DEVICES": ""})
    assert (done.returncode, done.stdout) == (2, "")
    one_message(done.stderr, [], tmp_path)
    assert any(why in done.stderr for why in ("no CUDA device", "needs CuPy"))


def test_opt_reads_standard_input() -> None:
    result = CliRunner().invoke(main, ["opt", "-"], input=MLP.read_text())
    assert result.exit_code == 0
    assert result.stdout == CliRunner().invoke(main, ["opt", str(MLP)]).stdout
    assert "@mlp" in result.stdout


def test_a_closed_pipe_is_quiet() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [str(Path(sys.executable).parent / "mpkc"), "passes"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("where", ["mpkc.inputs.read_input", "mpkc.taskgraph.linear_task_graph"])
def test_an_interrupt_is_quiet(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupted)
    result = CliRunner().invoke(main, ["stats", str(MLP)])
    assert (result.exit_code, result.output) == (130, "")


def test_a_fault_of_mpkc_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*args: object) -> None:
        raise AssertionError("a fault")

    monkeypatch.setattr("mpkc.inputs.read_input", faulty)
    with pytest.raises(AssertionError, match="a fault"):
        CliRunner().invoke(main, ["stats", str(MLP)], catch_exceptions=False)


@pytest.mark.parametrize("device", ["vliw", "missing.toml"])
def test_unknown_devices(device: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from mpkc.runtime.machine import machine

    with pytest.raises(SystemExit) as ended, told_in_one_line():
        machine(device)
    assert ended.value.code == 2
    one_message(capsys.readouterr().err, [device], tmp_path)


@pytest.mark.parametrize("name", ["run", "compile", "import", "opt", "stats", "passes", "devices"])
def test_help_teaches_by_example(name: str) -> None:
    summary = next(
        line for line in CliRunner().invoke(main, ["--help"]).output.splitlines() if line.startswith(f"  {name} ")
    )
    assert not summary.endswith("...")
    shown = CliRunner().invoke(main, [name, "--help"])
    assert shown.exit_code == 0
    assert f"  mpkc {name}" in shown.output.split("ptions:" if name != "opt" else "examples:")[name == "opt"]
    assert name == "opt" or max(map(len, shown.output.splitlines())) <= 80
