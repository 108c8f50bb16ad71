"""Passes that misbehave: each is named, each leaves the model, this process and the next pass alone."""

import re
from pathlib import Path

import pytest

from onnxjson import example
from onnxjson.model.document import Model
from onnxjson.model.errors import LimitError, PassError
from onnxjson.optimizing.passes import PassResult, Pipeline, parse_step
from onnxjson.optimizing.passes.big_constants import stage_of
from onnxjson.storage import api

GOOD = "def optimize(model):\n    model.producer_name = 'good'\n    return model\n"

BAD = {
    "segfault": ("import ctypes\n    ctypes.string_at(0)", r"crashed: signal SIGSEGV"),
    "hangs": ("import time\n    time.sleep(1000)", r"does not finish: no answer within 2 s"),
    "ends with 0": ("import os\n    os._exit(0)", r"ended its process: exit code 0 without an answer"),
    "sys.exit(0)": ("import sys\n    sys.exit(0)", r"ended its process: sys\.exit\(0\)"),
    "10 GB": ("model.doc_string = 'x' * 10_000_000_000\n    return model", r"needs more than 1\.0 GiB of memory"),
    "raises": ("raise ValueError('no good')", r"failed: .*pass\.py:2: ValueError: no good"),
    "raises what is no Exception": ("raise KeyboardInterrupt", r"ended its process: exit code 1"),
    "gives nothing": ("pass", r"failed: .*TypeError: optimize returned nothing; it must return an onnx\.ModelProto"),
    "gives another message": ("return model.graph", r"failed: .*TypeError: optimize returned a GraphProto"),
    "gives no bytes": ("return b''", r"returned nothing"),
    "gives garbage": ("return bytes(range(1, 200))", r"returned 199 bytes that are not a model"),
    "gives text": ("return b'this is a model, believe me'", r"returned 27 bytes that are not a model"),
    "gives half a model": ("return model.SerializeToString()[:-100]", r"returned [\d,]+ bytes that are not a model"),
    "gives two models": (
        "return model.SerializeToString() * 2",
        r"returned what looks like two models: \w+ appears twice",
    ),
    "gives no graph": ("model.ClearField('graph')\n    return model", r"returned a model without a graph"),
    "leaves nodes without inputs": (
        "del model.graph.node[0]\n    return model",
        r"returned an inconsistent model: /graph/node/0.*: .*features",
    ),
    "floods both outputs": (
        "import os\n    for _ in range(500): os.write(1, b'x' * 65536); os.write(2, b'\\xff\\x1b[2J')\n    os._exit(0)",
        r"ended its process",
    ),
    "closes all files": ("import os\n    os.closerange(0, 100)\n    return model", r"(ended its process|failed)"),
    "is no Python": ("return (", r"failed: .*pass\.py:2: SyntaxError"),
}


@pytest.fixture(scope="module")
def model() -> Model:
    return api.from_proto(example.make_example())


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.py"
    path.write_text(GOOD)
    return str(path)


def planted(folder: Path, body: str) -> str:
    """A pass in a file of its own."""
    path = folder / "pass.py"
    path.write_text(f"def optimize(model):\n    {body}\n")
    return str(path)


def made_by(model: Model, *passes: str, keep_going: bool = True, trust: bool = False) -> list[PassResult]:
    """What passes did that have 2 seconds and 1 GiB."""
    steps = [parse_step(each) for each in passes]
    with Pipeline(seconds=2, memory=1 << 30, keep_going=keep_going, trust=trust) as pipeline:
        return list(pipeline.run(model, steps))


@pytest.mark.parametrize("name", BAD)
def test_a_bad_pass_is_named_and_the_next_one_runs(name: str, model: Model, good: str, tmp_path: Path) -> None:
    body, said = BAD[name]
    bad = planted(tmp_path, body)
    failed, fine = made_by(model, bad, good)
    assert failed.failure is not None
    assert (failed.failure.name, failed.is_changed) == (bad, False)
    assert str(failed.failure).startswith(f"{bad} ")
    assert re.search(said, str(failed.failure)), str(failed.failure)
    assert "\x1b" not in str(failed.failure) + failed.failure.printed
    assert fine.failure is None
    assert fine.before == stage_of(model)
    assert fine.after.model.producer_name == "good"


def test_what_a_failing_pass_printed_is_told(model: Model, tmp_path: Path) -> None:
    body = "import os\n    os.write(1, b'one\\n')\n    os.write(2, b'two\\x1b[2J\\n')\n    os._exit(4)"
    (made,) = made_by(model, planted(tmp_path, body))
    assert made.failure is not None
    assert made.failure.printed == "one\ntwo\\u{1b}[2J"
    assert "(it printed: one | two\\u{1b}[2J)" in str(made.failure)


def test_what_a_pass_prints_does_not_mix_with_its_model(model: Model, tmp_path: Path) -> None:
    body = "import os, sys\n    os.write(1, b'noise\\n')\n    print('more', file=sys.stderr)\n    return model"
    (made,) = made_by(model, planted(tmp_path, body))
    assert (made.failure, made.is_changed) == (None, False)
    assert made.printed.splitlines() == ["noise", "more"]
    assert made.notes == ("it printed: noise | more",)


def test_what_a_pass_raises_is_made_visible_once(model: Model, tmp_path: Path) -> None:
    (made,) = made_by(model, planted(tmp_path, "raise ValueError('\\x1b[2J')"))
    assert "pass.py:2: ValueError: \\u{1b}[2J; the model is unchanged" in str(made.failure)


def test_a_failing_pass_is_given_before_it_is_raised(model: Model, good: str, tmp_path: Path) -> None:
    bad = planted(tmp_path, "raise ValueError('no good')")
    with Pipeline() as pipeline:
        run = pipeline.run(model, [parse_step(bad), parse_step(good)])
        assert next(run).failure is not None
        with pytest.raises(PassError, match="no good"):
            next(run)


def test_what_is_too_big_is_not_even_read(model: Model, tmp_path: Path) -> None:
    garbage = planted(tmp_path, "return bytes(range(1, 200)) * 100")
    with Pipeline(max_size=8_000) as pipeline, pytest.raises(PassError, match="at most 8,000 are allowed"):
        list(pipeline.run(model, [parse_step(garbage)]))


def test_a_model_that_does_not_fit_a_message_is_refused(model: Model) -> None:
    from msgspec.structs import replace

    from onnxjson.model.payloads import Payload

    class Long(Payload):
        """Says that it has many bytes."""

    assert model.graph is not None
    tensor = replace(model.graph.initializer[0], raw_data=Long(1 << 31))
    big = replace(model, graph=replace(model.graph, initializer=(tensor,)))
    with Pipeline() as pipeline, pytest.raises(LimitError, match="passes accept at most"):
        list(pipeline.run(big, []))
