"""A benchmark: what stands in its rows, and what happens to variants that fail."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from onnx import TensorProto, helper

from onnxjson import example
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.document import Model
from onnxjson.model.errors import FeedError
from onnxjson.optimizing.bench import Bench, Options, Subject
from onnxjson.optimizing.passes import PassResult, Pipeline, Step
from onnxjson.optimizing.trace_records import size_of
from onnxjson.optimizing.variants import BenchReport, file_names, parse_grid, parse_variant
from onnxjson.rendering.bench_report import report_lines
from onnxjson.running.inputs import InputOptions
from onnxjson.storage import api
from tests.running.small_models import model as onnx_model
from tests.running.small_models import scaled

QUICK = Options(rounds=3, warm_up=1, starts=1, seeds=1)


@pytest.fixture(scope="module")
def model() -> Model:
    return api.from_proto(example.make_example())


def measured(model: Model, *variants: str, options: Options = QUICK) -> BenchReport:
    with Bench([Subject("m.onnx", model)], [parse_variant(each) for each in variants], options) as bench:
        return bench.run()


def script(folder: Path, text: str, name: str = "script.py") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_rows_have_what_the_models_are_and_what_they_take(model: Model) -> None:
    report = measured(model, "prune=prune@off", "int8=quantize-dynamic")
    original, plain, quantized = report.rows
    size = size_of(model, len(message_bytes(model)))
    assert (original.nodes, original.parameters, original.bytes) == (size.nodes, size.parameters, size.bytes)
    assert [row.variant for row in report.rows] == ["original", "prune", "int8"]
    assert original.verdict in ("same", "close")
    assert (plain.verdict, plain.largest_difference) == ("same", 0.0)  # nothing is optimised, so nothing is rounded
    assert (quantized.is_exact, quantized.verdict, quantized.is_fine) == (False, "differs", True)
    assert quantized.largest_difference is not None
    assert 0 < quantized.largest_difference < 0.1
    assert quantized.largest_share is not None
    assert quantized.largest_difference < quantized.largest_share < 1  # probabilities
    for row in report.rows:
        assert row.engine.startswith("onnxruntime ")
        assert len(row.times) == 3
        assert len(row.starts) == 1
        assert len(row.offline_starts) == (row.settings.level != "off")
    assert report.sizes == {"m.onnx": {"N": 1}}


def test_a_variant_that_computes_something_else_is_not_fine(model: Model) -> None:
    report = measured(model, "wrong=set-attribute{node=op:LeakyRelu,attribute=alpha,value=0.5}")
    (original, wrong) = report.rows
    assert original.is_fine
    assert (wrong.verdict, wrong.is_fine, len(wrong.times)) == ("differs", False, 3)


def test_a_variant_that_fails_costs_the_others_nothing(model: Model, tmp_path: Path) -> None:
    fails = script(tmp_path, "def optimize(model):\n    raise ValueError('no good')\n")
    broken = script(
        tmp_path, "def optimize(model):\n    model.graph.node[0].op_type = 'Nothing'\n    return model\n", "broken.py"
    )
    crashes = script(tmp_path, "import os\ndef optimize(model):\n    os.abort()\n", "crashes.py")
    report = measured(model, f"fails={fails}", f"broken={broken}", f"after={fails},prune", f"crashes={crashes}")
    assert [row.verdict for row in report.rows[1:]] == ["fails"] * 4
    assert "no good" in report.rows[1].problem
    assert "no good" in report.rows[3].problem
    assert "crashed" in report.rows[4].problem
    assert all(row.problem and not row.times and not row.is_fine for row in report.rows[1:])
    assert len(report.rows[0].times) == 3


def test_a_pass_that_several_variants_begin_with_runs_once(model: Model, tmp_path: Path) -> None:
    log = tmp_path / "log"
    count = script(tmp_path, f"def optimize(model):\n    open({str(log)!r}, 'a').write('x')\n    return model\n")
    options = msgspec.structs.replace(QUICK, trust=True)
    measured(model, f"once={count}", f"more={count},prune", f"off={count}@off", options=options)
    assert log.read_text() == "x"


def test_a_script_says_loss_and_metric_of_every_variant(model: Model, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("SHAPE = (3, 1, 8, 8)\n")
    path = script(
        tmp_path,
        "import numpy\nfrom beside import SHAPE\n"
        "def evaluate(run):\n"
        "    (found,) = run({'image': numpy.ones(SHAPE, 'float32')}).values()\n"
        "    return {'loss': found.std(), 'metric': found.sum(), 'classes': found.shape[1]}\n",
    )
    options = Options(rounds=1, starts=0, seeds=1, script=path)
    report = measured(model, "off=@off", options=options)
    assert report.scores == ("loss", "metric", "classes")
    for row in report.rows:
        assert row.scores["metric"] == pytest.approx(3, rel=1e-4)
        assert row.scores["classes"] == 10


def test_a_script_speaks_of_the_original_whatever_a_variant_calls_and_takes(model: Model, tmp_path: Path) -> None:
    path = script(
        tmp_path,
        "import numpy\ndef evaluate(run):\n"
        "    return 0, run({'image': numpy.ones((1, 1, 8, 8), 'f')})['probabilities'].astype('f').sum()\n",
    )
    renamed = "renamed=rename{kind=input,from=image,to=x},rename{kind=output,from=probabilities,to=y}"
    options = Options(rounds=0, starts=0, seeds=1, script=path)
    report = measured(model, renamed, "half=float16", options=options)
    assert [row.problem for row in report.rows] == ["", "", ""]
    assert [row.scores["metric"] for row in report.rows] == pytest.approx([1.0] * 3, abs=5e-3)


def test_what_was_found_before_an_interruption_stays(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Pipeline.run

    def interrupted(self: Pipeline, model: Model, steps: Sequence[Step], *rest: Any) -> Iterator[PassResult]:
        if str(steps[0]) == "onnxsim":
            raise KeyboardInterrupt
        return run(self, model, steps, *rest)

    monkeypatch.setattr(Pipeline, "run", interrupted)
    report = measured(model, "pruned=prune", "simple=onnxsim")
    assert report.is_interrupted
    assert [row.nodes for row in report.rows] == [6, 6, None]
    text = "".join(span.text for line in report_lines(report, 80) for span in line)
    assert "simple" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def score(run): pass", "defines no `def evaluate"),
        ("def evaluate(run):\n    return 1 / 0", "script.py:2: ZeroDivisionError"),
        ("def evaluate(run):\n    return 'good'", "returns a str"),
        ("def evaluate(run):\n    return {'loss': 'low'}", "not a number"),
        ("import os\ndef evaluate(run):\n    os._exit(3)", "ended its process"),
    ],
)
def test_a_script_that_is_wrong_is_told(model: Model, tmp_path: Path, text: str, said: str) -> None:
    report = measured(model, options=Options(rounds=1, starts=0, seeds=1, script=script(tmp_path, text)))
    (row,) = report.rows
    assert said in row.problem
    assert not row.is_fine
    assert len(row.times) == 1


def test_two_numbers_are_loss_and_metric(model: Model, tmp_path: Path) -> None:
    path = script(tmp_path, "def evaluate(run):\n    return 0.5, 2")
    report = measured(model, options=Options(rounds=0, starts=0, seeds=1, script=path))
    assert report.rows[0].scores == {"loss": 0.5, "metric": 2.0}


def test_session_settings_are_tried_and_the_best_is_named(model: Model) -> None:
    grid = parse_grid(["threads=1,2", "level=off,all"])
    report = measured(model, options=Options(rounds=3, warm_up=0, starts=0, seeds=1, grid=grid))
    assert [(row.settings.threads, row.settings.level) for row in report.rows] == [
        (1, "off"), (1, "all"), (2, "off"), (2, "all")
    ]  # fmt: skip
    (best,) = report.best.values()
    assert best.median == min(row.median for row in report.rows if row.median is not None)


def test_sizes_of_open_dimensions_reach_passes_that_measure(model: Model) -> None:
    options = Options(rounds=1, starts=0, seeds=1, input_options=InputOptions(dims={"N": 4}))
    report = measured(model, "int8=quantize-static", options=options)
    assert report.sizes == {"m.onnx": {"N": 4}}
    assert report.rows[1].problem == ""
    with pytest.raises(FeedError):
        measured(model, options=Options(input_options=InputOptions(dims={"M": 4})))


def test_what_is_wished_for_one_of_several_models_costs_the_others_nothing(model: Model) -> None:
    subjects = [Subject("m.onnx", model), Subject("s.onnx", scaled(2))]
    input_options = InputOptions(dims={"image:0": 2}, fills={"x": 1.0, "": 0.5})
    with Bench(subjects, [], Options(rounds=1, starts=0, seeds=1, input_options=input_options)) as bench:
        report = bench.run()
    assert report.sizes == {"m.onnx": {"N": 2}, "s.onnx": {"N": 1}}
    assert all(row.is_fine for row in report.rows)


def test_a_model_without_values_ends_all_before_anything_is_made(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = onnx_model([helper.make_node("Relu", ["x"], ["y"])], {"x": (TensorProto.FLOAT, None)}, ["y"])
    monkeypatch.setattr(Pipeline, "run", lambda *_: pytest.fail("a pass ran"))
    subjects = [Subject("m.onnx", model), Subject("n.onnx", nothing)]
    with (
        Bench(subjects, [parse_variant("a=prune")], QUICK) as bench,
        pytest.raises(FeedError, match=r"n.onnx: .*--shape"),
    ):
        bench.run()


def test_time_limits_the_rounds(model: Model) -> None:
    report = measured(model, options=Options(rounds=1000, warm_up=1, starts=0, seeds=1, seconds=0.0))
    assert len(report.rows[0].times) < 1000


def test_models_that_were_made_can_be_kept(model: Model) -> None:
    with Bench([Subject("m.onnx", model)], [parse_variant("int8=quantize-dynamic")], QUICK) as bench:
        bench.run()
        found = bench.models()
    assert [(name, variant) for name, variant, _ in found] == [("m.onnx", "original"), ("m.onnx", "int8")]
    assert found[0][2] == message_bytes(model)
    names = [("a/m.onnx.json", "+ onnxoptimizer + onnxsim"), ("b/m.onnx", "a b"), ("a/m.onnx", "a-b"), ("m", "a.b")]
    assert file_names(names) == ["m-onnxoptimizer-onnxsim.onnx", "m-a-b.onnx", "m-a-b-2.onnx", "m-a.b.onnx"]
