"""Lets pytest run and count the lit tests, one item a .mlir file, and run FileCheck in process.

$CI=true makes random inputs the same on every run, and a skipped test a failure, unless there is no GPU for it.
$MPKC_FUZZ=N runs each property test N times, with other inputs each time.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser as CheckParser
from filecheck.parser import pattern_for_opts
from xdsl.passes import PassPipeline
from xdsl.printer import Printer
from xdsl.universe import Universe

TESTS = Path(__file__).parent
RESULTS = pytest.StashKey[dict[str, dict[str, Any]]]()

IN_CI = os.environ.get("CI") == "true"
FUZZ_ROUNDS = int(os.environ.get("MPKC_FUZZ", "1"))
NEEDS_GPU = "no GPU"  # stands in the reason of a skip that CI allows

hypothesis.settings.register_profile("mpkc", deadline=None, derandomize=IN_CI and FUZZ_ROUNDS == 1)
hypothesis.settings.load_profile("mpkc")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if FUZZ_ROUNDS > 1 and getattr(metafunc.function, "is_hypothesis_test", False):
        metafunc.fixturenames.append("fuzz_round")
        metafunc.parametrize("fuzz_round", range(FUZZ_ROUNDS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not hasattr(report, "wasxfail"):
        fail_where_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    fail_where_skipped(report)
    return report


def fail_where_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    """In CI a test that is skipped for want of a tool is a test that is missing."""
    if IN_CI and report.skipped and NEEDS_GPU not in str(report.longrepr):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"skipped in CI, which installs what tests need: {reason}"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".mlir" and "RUN:" in file_path.read_text():
        return LitFile.from_parent(parent, path=file_path)
    return None


class LitFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        yield LitTest.from_parent(self, name="lit")


class LitTest(pytest.Item):
    def setup(self) -> None:
        """The setup of the first one takes the time of all."""
        stash = self.session.stash
        if RESULTS not in stash:
            stash[RESULTS] = run_lit([item.path for item in self.session.items if isinstance(item, LitTest)])

    def runtest(self) -> None:
        result = self.session.stash[RESULTS][str(self.path.relative_to(TESTS))]
        if result["code"] in ("UNSUPPORTED", "SKIPPED"):
            pytest.skip(result["code"])
        if result["code"] != "PASS":
            raise LitFailure(result["output"])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:
        return str(excinfo.value) if excinfo.errisinstance(LitFailure) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"lit {self.path.name}"


class LitFailure(Exception):
    """A lit test failed; the message is lit's own output."""


def run_lit(paths: list[Path]) -> dict[str, dict[str, Any]]:
    """The result of each test by its path below test/; lit runs them all at once, in parallel."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        lit = [sys.executable, "-c", "from lit.main import main; main()", "-q", "-o", out.name]
        subprocess.run([*lit, *map(str, paths)], check=False, stdout=subprocess.DEVNULL)
        tests = json.loads(Path(out.name).read_text())["tests"]
    return {test["name"].split(" :: ")[1]: test for test in tests}


@pytest.fixture
def run_filecheck() -> Callable[..., None]:
    """`run_filecheck(text, "PASS,PASS")`: parse `text`, run the passes, verify, match its CHECK lines."""
    from mpkc.dialects.diagnostics import verify
    from mpkc.parsing import new_context, parse_module

    def run(text: str, pipeline: str = "") -> None:
        ctx = new_context()
        module = parse_module(text, "test.mlir", ctx)
        verify(module)
        PassPipeline.parse_spec(Universe.get_multiverse().all_passes, pipeline).apply(ctx, module)
        verify(module)
        out = StringIO()
        Printer(out).print_op(module)
        options = parse_argv_options(["filecheck", "test.mlir"])
        checks = CheckParser(options, StringIO(text), *pattern_for_opts(options))
        assert Matcher(options, FInput("test.mlir", out.getvalue()), checks).run() == 0

    return run
