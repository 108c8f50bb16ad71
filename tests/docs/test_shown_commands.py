"""Every command in the table of README and in the examples of the help does something, on a model that fits it."""

import re
import shutil
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import pytest

import onnxjson
from onnxjson.cli import options
from tests.contracts.test_commands import COMMANDS
from tests.docs.sessions import ROOT, run

SETUP = """
git init -q . && git config user.name n && git config user.email e@x && git config core.hooksPath /dev/null
for name in before base big a; do cp m.onnx $name.onnx; done
for name in models release-1 release-2; do mkdir $name && cp m.onnx $name/one.onnx; done
onnxjson convert -q models/one.onnx
onnxjson convert -q m.onnx
onnxjson git install -q
git branch -M main
git add -A && git commit -qm models && git update-ref refs/remotes/origin/main HEAD
for number in 1 2 3; do git commit -q --allow-empty -m $number; done
for name in after ours mine new b; do onnxjson rewrite set-attribute m.onnx act alpha 0.2 -q -o $name.onnx; done
for name in theirs other; do onnxjson rewrite set-doc m.onnx text -q -o $name.onnx; done
onnxjson optimize -q m.onnx -p float16 -o m16.onnx
onnxjson diff m.onnx after.onnx --format patch -o change.json --exit-zero -q
echo '{"format": "onnxjson-rewrite/1", "edits": [{"edit": "set-doc", "text": "new"}]}' > rewrite.json
onnxjson optimize -q m.onnx -p onnxoptimizer -p prune -o z.onnx --trace steps && rm z.onnx
onnxjson run -q m.onnx -o test_data_set_0
echo '{"format": "onnxjson-recipe/1", "passes": [{"edit": "prune"}, "onnxslim"]}' > recipe.json
printf 'format = "onnxjson-policy/1"\n[budgets]\nnodes = "<= 100"\n' > policy.toml
printf 'def optimize(model):\n    model.doc_string = "mine"\n    return model\n' > mine.py
printf 'def evaluate(run):\n    return {"loss": 0.5}\n' > accuracy.py
git switch -q -c topic && cp theirs.onnx m.onnx && git commit -qam topic
git switch -q main && cp new.onnx m.onnx && git commit -qam again && git switch -q -c work
onnxjson rewrite set-doc m.onnx work -q -i && onnxjson convert -q m.onnx -o m.onnx.json && git commit -qam work
"""

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(300)]

SKIPPED = ("tui", "lsp", "mcp", "mergetool", "resolve", "completion")
"""Of a terminal, of a client, of a merge with conflicts; and what writes into the folder of the user."""

BEFORE = (
    (r"onnxjson convert m\.onnx( --weights blobs)?", "rm -f m.onnx.json"),
    (r"onnxjson undo-save (\S+)", r"onnxjson rewrite set-doc \1 changed -i"),
    (r"onnxjson apply change\.json m\.onnx.*", "cp before.onnx m.onnx"),
)
"""What precedes some commands; the others find everything prepared."""


def _readme() -> list[str]:
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Common tasks")[2].partition("\n\n`")[0]
    return [line for line in re.findall(r"`(onnxjson [^`]+)`", table) if line.split()[1] not in SKIPPED]


def _cases() -> Iterator[object]:
    yield pytest.param(_readme(), id="README")
    for name, command in COMMANDS.items():
        lines = [line for line in options.examples(command) if line.startswith("onnxjson")]
        lines = [line for line in lines if line.split()[1] not in SKIPPED]
        if lines and name != "rewrite":
            yield pytest.param(lines, id=name)


def _save_model(path: Path, values: Callable[..., object]) -> None:
    node, pads = onnxjson.node, [1, 1, 1, 1]
    graph = onnxjson.Graph(
        name="g",
        node=(
            node("Conv", ["image", "w"], "a", name="conv1", pads=pads, group=1, auto_pad="NOTSET"),
            node("Conv", ["a", "conv.weight"], "features", name="/layer1/conv", pads=pads),
            node("LeakyRelu", ["features"], "active", name="act", alpha=0.1),
            node("GlobalAveragePool", ["active"], "pooled", name="pool"),
            node("Flatten", ["pooled"], "flat", name="flat"),
            node("Gemm", ["flat", "fc.weight", "fc.bias"], "scores", name="fc"),
            node("Softmax", ["scores"], "probabilities", name="softmax"),
        ),
        initializer=(
            onnxjson.tensor("w", values(3, 3, 3, 3)),
            onnxjson.tensor("conv.weight", values(3, 3, 3, 3)),
            onnxjson.tensor("fc.weight", values(3, 10)),
            onnxjson.tensor("fc.bias", values(10)),
        ),
        input=(onnxjson.value("image", "float32", ["N", 3, 8, 8]),),
        output=(onnxjson.value("probabilities", "float32", ["N", 10]),),
    )
    onnxjson.save(onnxjson.Model(ir_version=8, opset_import=(onnxjson.OperatorSetId("", 17),), graph=graph), path)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shown") / "prepared"
    folder.mkdir()
    random = numpy.random.default_rng(0)
    _save_model(folder / "m.onnx", lambda *shape: random.standard_normal(shape).astype(numpy.float32))
    numpy.save(folder / "x.npy", random.standard_normal((1, 3, 8, 8)).astype(numpy.float32))
    numpy.save(folder / "weights.npy", numpy.ones(4, numpy.float32))
    numpy.save(folder / "bias.npy", numpy.ones(10, numpy.float32))
    (folder / "weights.b64").write_text("AAAA" * 666 + "AAA=")
    printed = run(f"set -e\n{textwrap.dedent(SETUP)}\necho done", folder)
    assert printed.endswith("done\n"), printed
    return folder


@pytest.mark.parametrize("lines", list(_cases()))
def test_shown_commands_do_something(lines: list[str], prepared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "session"
    shutil.copytree(prepared, folder, symlinks=True)
    for line in lines:
        for pattern, command in BEFORE:
            if found := re.match(f"{pattern}( *#.*)?$", line):
                run(found.expand(command), folder)
        printed = run(f"export EDITOR=true; {line}\necho code $?", folder)
        assert re.search("code (0|1|141)\n$", printed), f"$ {line}\n{printed}"
