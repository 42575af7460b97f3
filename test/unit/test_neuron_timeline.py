"""Traces, pictures and JSON of simulations of ISA programs."""

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from mpkc.runtime.bindings import parse_bindings
from mpkc.runtime.machine import machine
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import Result, simulate
from mpkc.timeline import to_json, trace
from mpkc.timeline_svg import svg

GENERIC = machine("generic")
PROGRAM = """.program pair
.argument n : index
.semaphore 0 done
.buffer t : near f32[8]

.engine maker registers 2
  REGISTER_MOVE r1 = argument(n)
L:
  COMPARE_BRANCH r0 ge r1 -> end
  .iteration loop 1
  INST @Make S[0]++@complete cost=100 latency=400 depth=1
  REGISTER_ALU r0 = r0 add 1
  COMPARE_BRANCH always -> L
end:
  DRAIN
  HANDSHAKE

.engine "taker<1>" registers 2
  REGISTER_MOVE r1 = argument(n)
L:
  COMPARE_BRANCH r0 ge r1 -> end
  .iteration loop 1
  REGISTER_ALU r0 = r0 add 1
  INST @Take S[0]>=r0 cost=100 after=[Make [0]] depth=1
  COMPARE_BRANCH always -> L
end:
  HANDSHAKE
"""
SVG = "{http://www.w3.org/2000/svg}"


def simulated(bindings: str = "n=3", **options: Any) -> Result:
    return simulate(read_isa(PROGRAM), GENERIC, parse_bindings(bindings), timeline=True, explain=True, **options)


def test_a_trace_has_rows_waits_and_arrows() -> None:
    result = simulated()
    events = json.loads(trace(result))["traceEvents"]
    rows = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert rows == {0: "maker", 1: "taker<1>"}
    slices = [event for event in events if event["ph"] == "X"]
    taken = [event for event in slices if event["name"] == "Take"]
    assert [event["args"]["iteration"] for event in taken] == [[1], [2], [3]]
    assert [event["ts"] * 1000 for event in taken] == pytest.approx([each.issue for each in result.spans["taker<1>"]])
    waits = [event for event in slices if event["name"] == "wait for done"]
    blocked = [each for each in result.spans["taker<1>"] if each.semaphore]
    assert [event["dur"] * 1000 for event in waits] == pytest.approx([each.issue - each.arrival for each in blocked])
    starts, ends = ([event for event in events if event["ph"] == ph] for ph in "sf")
    assert [event["id"] for event in starts] == [event["id"] for event in ends] == [*range(1, len(blocked) + 1)]
    for start, end in zip(starts, ends, strict=True):
        (made,) = (each for each in slices if each["tid"] == 0 and each["ts"] == start["ts"] and each["name"] == "Make")
        (used,) = (each for each in slices if each["tid"] == 1 and each["ts"] == end["ts"] and each["name"] == "Take")
        assert made["args"]["iteration"] == used["args"]["iteration"]
    assert {event["name"] for event in slices} == {"Make", "Take", "wait for done", "HANDSHAKE", "wait for all engines"}


def test_a_picture_has_a_row_an_engine_and_an_arrow_a_wait() -> None:
    result = simulated()
    root = ElementTree.fromstring(svg(result))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"maker", "taker<1>", "Make", "Take"} <= {*texts}
    hatched = [rect for rect in root.iter(f"{SVG}rect") if rect.get("fill") == "url(#wait)"]
    blocked = [each for each in result.spans["taker<1>"] if each.semaphore]
    assert len(blocked) >= 1
    assert len(hatched) == len(blocked) + 2  # the handshakes
    (arrows,) = (group for group in root.iter(f"{SVG}g") if group.get("marker-end"))
    paths = [path.get("d", "").replace("M", "").replace("C", " ").split() for path in arrows]
    assert len(paths) == len(blocked)
    box = next(rect for rect in root.iter(f"{SVG}rect") if rect.get("rx"))  # of the first instruction, issued at 40
    first = result.spans["maker"][0]
    scale = float(box.get("width", "")) / (first.free - first.issue)

    def time_at(x: str) -> float:
        return first.issue + (float(x) - float(box.get("x", ""))) / scale

    for path, span in zip(paths, blocked, strict=True):
        assert span.cause is not None
        assert time_at(path[0]) == pytest.approx(span.issue, abs=1)
        assert time_at(path[-2]) == pytest.approx(result.spans[span.cause[0]][span.cause[1]].retire, abs=1)
    assert svg(simulated()) == svg(result)


def test_a_picture_of_too_much_is_refused() -> None:
    with pytest.raises(ValueError, match="a picture of 6000 instructions: at most 5000; look at fewer iterations"):
        svg(simulated("n=3000", values=False))


def test_pictures_of_nothing() -> None:
    nothing = simulate(read_isa(".program p\n.engine e registers 0\n"), GENERIC, timeline=True)
    assert nothing.time_ns == 0
    ElementTree.fromstring(svg(nothing))
    assert len(json.loads(trace(nothing))["traceEvents"]) == 2


def test_json_has_the_keys_of_the_contract() -> None:
    found = to_json(simulated(), explain=True)
    assert json.loads(json.dumps(found)) == found
    assert found["deadlock"] is None
    assert found["time_ns"] == simulated().time_ns
    assert {*found["engines"]["maker"]} == {"busy_ns", "wait_ns", "control_ns"}
    assert found["engines"]["maker"]["busy_ns"] == 300
    assert found["waits"][0] == {"instruction": "Take", "iteration": [1], "semaphore": "done", "threshold": 1}
    assert "waits" not in to_json(simulated())


def test_json_of_a_deadlock_and_of_a_race() -> None:
    stuck = to_json(simulated("n=3,maker:n=1"))
    assert json.loads(json.dumps(stuck)) == stuck
    wait = next(each for each in stuck["deadlock"]["blocked"] if "semaphore" in each)
    assert (wait["engine"], wait["instruction"], wait["iteration"]) == ("taker<1>", "Take", [2])
    assert (wait["semaphore"], wait["value"], wait["threshold"]) == ("done", 1, 2)
    assert {"engine": "maker", "line": 16, "handshake": 1, "missing": ["taker<1>"]} in stuck["deadlock"]["blocked"]
    assert "Make on maker updates it, and maker has passed them" in stuck["deadlock"]["message"]
    assert stuck["deadlock"]["loops"] == [{"producer": "Make", "loop": "loop", "counts": {"maker": 1, "taker<1>": 2}}]
    fill = "MEMSET dst=t@0[8]:[1]:f32 value=0.0:f32\n"
    text = f".program p\n.buffer t : near f32[8]\n.engine e registers 0\n{fill}.engine f registers 0\n{fill}"
    (race,) = to_json(simulate(read_isa(text), GENERIC, races=True), races=True)["races"]
    assert "races" not in to_json(simulate(read_isa(text), GENERIC))  # nobody looked
    assert (race["buffer"], race["elements"], race["count"]) == ("t", [0, 7], 1)
    assert race["earlier"] == {"engine": "e", "instruction": "MEMSET", "iteration": [], "line": 4, "access": "write"}


def test_a_picture_of_a_long_run_fits_a_page() -> None:
    root = ElementTree.fromstring(svg(simulated("n=200")))
    assert float(root.get("width", "")) < 1400
    assert any((text.text or "").endswith(" ns") for text in root.iter(f"{SVG}text"))
