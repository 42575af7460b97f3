"""Models as input of xDSL's tools."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.context import Context

from mpkc.dialects.diagnostics import verify
from mpkc.models.errors import ModelError
from mpkc.models.frontend import GgufFrontend
from mpkc.models.source import open_model
from mpkc.opt import MpkcOpt


@pytest.fixture
def model(tiny_gguf: Callable[..., Path]) -> Path:
    return tiny_gguf()


def test_a_file_becomes_its_decoding_step(model: Path) -> None:
    module = GgufFrontend(layers=1).parse(Context(), io.BytesIO(), str(model))
    verify(module)
    assert sum(op.name == "tops.attention" for op in module.walk()) == 1
    assert str(module) != str(GgufFrontend(layers=1, rows=2).parse(Context(), io.BytesIO(), str(model)))


def test_a_stream_without_a_file(model: Path) -> None:
    with model.open("rb") as file:
        streamed = GgufFrontend().parse(Context(), file, "stdin")
    assert str(streamed) == str(GgufFrontend().parse(Context(), io.BytesIO(), str(model)))


def test_the_tool_reads_models_by_their_ending(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    MpkcOpt(args=[str(model)]).run()
    assert capsys.readouterr().out.count("tops.attention") == open_model(str(model)).config.layers


def test_a_number_that_does_not_fit(model: Path) -> None:
    with pytest.raises(ModelError, match="layers is 3, expected at least 1 and at most 2"):
        GgufFrontend(layers=3).parse(Context(), io.BytesIO(), str(model))
