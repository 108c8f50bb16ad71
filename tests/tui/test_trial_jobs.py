"""The jobs of a new user, at 80x24: how many keys each takes, and what comes of it.

Texts that are typed, here in “ ”, are not counted, nor how a job is begun. ``pytest -s`` prints the table.
"""

import asyncio
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import onnxjson
from onnxjson.diffing.difference import diff_models
from onnxjson.editing.script import Script
from onnxjson.model.document import Model
from onnxjson.model.errors import NoMatchError
from tests.benchmarks.graphs import transformer
from tests.editing.graphs import model_of
from tests.tui.benches import SMALL, Bench, bench
from tests.tui.screens import send
from tests.tui.screenshots import keys
from tests.tui.sessions import SMALL as SMALL_GRAPH

MODELS: Final = Path(__file__).parent.parent / "models"
_TWO_EDITS: Final = ":set-attribute op:Softmax axis 2⏎:delete-node /layers.2/Erf⏎"

_SLOW: Final = ("enter", "f5", "c", "q")
"""Keys after which a person waits."""

Done = Callable[[Bench], object]


class Job(NamedTuple):
    """What is typed, and what is true then."""

    name: str
    first: int | None
    """Keys when it was tried for the first time; None if it was impossible, or not tried (19 to 28)."""
    most: int
    typed: str
    is_done: Done
    model: str = "encoder_ts.onnx"
    begin: str = ""
    """What is typed before."""


def _at(position: int) -> Done:
    return lambda found: found.bench.here is not None and found.bench.here.position == position


def _shows(*texts: str) -> Done:
    return lambda found: all(each in " ".join(found.text.split()) for each in texts)


def _count(selector: str, count: int) -> Done:
    def is_found(found: Bench) -> bool:
        try:
            return len(found.session.select(selector)) == count
        except NoMatchError:
            return False

    return is_found


def _same_elsewhere(bench: Bench) -> bool:
    """Whether the exported script does the same to a copy of the model."""
    if not Path("edits.json").exists():
        return False
    other = onnxjson.apply(onnxjson.load("m.onnx"), Script.load(Path("edits.json")).edits)
    return not diff_models(bench.session.model, other).events


JOBS: Final = (
    Job("1 the third Softmax, five nodes upstream", 17, 17, "/“softmax”⏎2n gp gp0 gp0 gp0 gp", _at(247)),
    Job("1 and back", 5, 2, "5⟨ctrl+o⟩", _at(287), begin="/softmax⏎2ngpgp0gp0gp0gp"),
    Job("2 an attribute of one node", 4, 3, "ee“[0,2,3,1]”⏎", _count("attr:perm=[0,2,3,1]", 7), begin="/transpose⏎"),
    Job("2 the same of all", 8, 2, ":“set-attribute op:Transpose perm [0,2,3,1]”⏎", _shows("(24 places)")),
    Job("3 rename", 5, 3, "r2“scores”⏎", _count("output:scores", 1), begin="/softmax⏎"),
    Job("4 delete and reconnect", 1, 1, "D", _count("op:Softmax", 5), begin="/softmax⏎"),
    Job("5 insert", 3, 3, "a“Relu”⏎⟨ctrl+s⟩", _count("op:Relu", 1), begin="/softmax⏎"),
    Job("6 a weight and its histogram", 2, 2, "tS", _shows("mean"), begin=":@/graph/node/46⏎"),
    Job("6 one element of it", None, 4, "tle“0.5”⏎", _shows("set-tensor", "0.5"), begin=":@/graph/node/46⏎"),
    Job("7 the batch size", 3, 3, "i3“N”⟨ctrl+s⟩", _shows("undo 1"), "mobile_ts.onnx"),
    Job("8 difference, undo two, redo", 5, 5, "cquu⟨ctrl+r⟩", _shows("undo 1/2", "redone"), begin=_TWO_EDITS),
    Job("9 save as", 2, 2, ":“save-as copy.onnx”⏎", _shows("read back and compared: copy.onnx")),
    Job("10 run a pass, prove it, apply it", 5, 5, "p⏎⏎pa", _shows("196 nodes", "undo 1"), "mobile_ts.onnx"),
    Job("10 compare with a file", 4, 2, "c“other.onnx”⏎", _shows("other.onnx", "changes"), "mobile_ts.onnx"),
    Job("11 export the edits", 2, 2, "⟨ctrl+e⟩⏎", _same_elsewhere, begin=_TWO_EDITS),
    Job("12 check, go to the problem", 2, 2, "⟨f5⟩⏎", _at(2), "broken.onnx"),
    Job("13 copy a name", 2, 2, "y1", _shows("copied name")),
    Job("13 search a regular expression", 2, 2, "/“/Soft.*x/”⏎", _at(101)),
    Job("13 filter by an attribute", 2, 2, "f“attr:perm=[0,2,1,3]”⏎", _shows("18 nodes of filter")),
    Job("14 by output", 2, 2, "/“Erf_output_0”⏎", _at(129)),
    Job("14 by output, in the palette", None, 2, "⟨ctrl+p⟩“Erf_output_0”⏎", _at(129)),
    Job("15 drawing of the neighbours", 2, 2, "3M", _shows("[101 Softmax]"), begin="/softmax⏎"),
    Job("15 drawing of the whole graph", None, 1, "M", _shows("map of main_graph")),
    Job("16 into a body and back", 4, 3, "gs -", _shows("1 Loop /Loop", "main graph"), "branches_ts.onnx", "G"),
    Job("17 leave", 1, 1, "q", lambda found: not found.app.is_running or not found.bench.is_attached),
    Job("18 last node of many", 1, 1, "G", _at(1399), "many.onnx", "Z"),
    Job("18 filter many", 2, 2, "f“op:Relu”⏎", _shows("nodes of filter op:Relu"), "many.onnx"),
    Job("18 rename in many", 5, 3, "r2“scores”⏎", _count("output:scores", 1), "many.onnx"),
    Job("19 what the network is", None, 0, "", _shows("repeat 6 layers.{i}", "Attention(", "LayerNorm(")),
    Job("20 how many nodes an attention has", None, 2, "/“repeat:layers[0] block:Attention”⏎", _shows("of 604 nodes")),
    Job("21 the nodes of a line", None, 1, "z", _shows("Embedding(", " Gather ")),
    Job("22 all nodes, and lines again", None, 2, "ZZ", _shows("repeat 6 layers.{i}")),
    Job("23 the nodes of all attentions", None, 2, "f“block:Attention”⏎", _shows("nodes of filter block:Attention")),
    Job("24 an attribute in one layer", None, 2, ":“set-attribute 'repeat:layers[2] op:Softmax' axis 2”⏎",
        _shows("undo 1")),
    Job("25 the type of a value that no one states", None, 2, "/“query/Add”⏎", _shows("f32[batch,?,24]")),
    Job("26 an edit that breaks a node, all the same", None, 4, "ee“[0,0,1,3]”⏎⏎", _shows("undo 1"),
        begin="/transpose⏎"),
    Job("27 what it breaks", None, 5, "ee“[0,0,1,3]”⏎⏎⟨f5⟩", _shows("[Problems"), begin="/transpose⏎"),
    Job("28 beside the model of another exporter", None, 3, "c“other.onnx”⏎v", _shows("m.onnx", "other.onnx", "Conv"),
        "mobile_ts.onnx"),
)  # fmt: skip


def presses(typed: str) -> tuple[list[str], int]:
    """Return the keys of what is typed, and how many of them are counted."""
    pressed, count = list[str](), 0
    for text in re.findall(r"“[^”]*”|[^“]+", typed):
        is_text = text.startswith("“")
        found = keys(text.strip("“”")) if is_text else keys(text.replace(" ", ""))
        pressed += found
        count += 0 if is_text else len(found)
    return pressed, count


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(MODELS / "mobile_dynamo.onnx", "other.onnx")


def _model(name: str) -> Model:
    if name == "many.onnx":
        return transformer(1_400)
    if name == "broken.onnx":
        return model_of(SMALL_GRAPH.replace("LeakyRelu(b)", "Relu(nothing)"))
    return onnxjson.load(MODELS / name)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_job_takes_no_more_keys_than_at_first(job: Job) -> None:
    onnxjson.save(_model(job.model), "m.onnx")
    pressed, count = presses(job.typed)
    print(f"{job.name:<52} {job.first or '-':>10} {count:>3}")
    assert count == job.most <= (job.first or count)

    async def go() -> None:
        async with bench(Path("m.onnx"), SMALL) as found:
            for key in (*keys(job.begin), *pressed):
                if key in _SLOW:
                    await found.press(key)
                else:
                    send(found.app, key)
            for _ in range(200):
                await found.press()
                if job.is_done(found):
                    break
            assert job.is_done(found), (found.bench.here and found.bench.here.position, found.text)
            found.session.discard()

    asyncio.run(go())


def test_seven_jobs_take_fewer_keys() -> None:
    tried = [job for job in JOBS if int(job.name.split()[0]) <= 18]
    fewer = {job.name.split()[0] for job in tried if job.first is None or job.most < job.first}
    assert len(fewer) >= 7, fewer
