"""Through jq and node the meaning stays, or the reader names an error; one process a tool for the whole corpus."""

import json
import shutil
import subprocess
from collections.abc import Callable

import pytest
from onnx import ModelProto

import onnxjson
from onnxjson.model.errors import OnnxJsonError
from tests.corpus.collection import corpus, texts
from tests.generation.messages import generate, size_of
from tests.seeds import portions

NODE_SCRIPT = """
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(texts.map(text => JSON.stringify(JSON.parse(text), null, 2))));
"""


def through_jq(texts: list[str]) -> list[str]:
    """`jq .` over all documents as one stream; a pretty-printed document ends with a brace in the first column."""
    done = subprocess.run(["jq", "."], input="".join(texts), capture_output=True, text=True, check=True, timeout=100)
    documents = done.stdout.split("\n}\n")
    assert documents.pop() == ""
    return [document + "\n}\n" for document in documents]


def through_node(texts: list[str]) -> list[str]:
    """JSON.stringify(JSON.parse(text), null, 2) of each document, in one process."""
    command = ["node", "-e", NODE_SCRIPT]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True, timeout=100)
    found: list[str] = json.loads(done.stdout)
    return found


TOOLS = [
    pytest.param(tool, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed"), id=name)
    for tool, name in ((through_jq, "jq"), (through_node, "node"))
]


def changed_silently(texts: list[str], after: list[str]) -> tuple[list[int], list[str]]:
    """Indices of the documents that read to another message, and the errors of those that do not read."""
    assert len(texts) == len(after)
    silent, errors = [], []
    for index, (text, other) in enumerate(zip(texts, after, strict=True)):
        try:
            same = onnxjson.loads(other) == onnxjson.loads(text)
        except OnnxJsonError as error:
            errors.append(str(error))
        else:
            if not same:
                silent.append(index)
    return silent, errors


@pytest.mark.parametrize("tool", TOOLS)
def test_the_corpus_means_the_same_after_a_json_tool(tool: Callable[[list[str]], list[str]]) -> None:
    found = list(texts().values())
    silent, errors = changed_silently(found, tool(found))
    assert [corpus()[index].name for index in silent] == []
    assert errors == []


@pytest.mark.parametrize("seeds", portions(1_500, always=300, size=300))
@pytest.mark.parametrize("tool", TOOLS)
def test_generated_models_mean_the_same_after_a_json_tool_or_are_refused(
    tool: Callable[[list[str]], list[str]], seeds: range
) -> None:
    protos = [ModelProto.FromString(generate(seed, size_of(seed) // 4 + 1)) for seed in seeds]
    found = [onnxjson.dumps(onnxjson.from_proto(one)) for one in protos]
    silent, errors = changed_silently(found, tool(found))
    assert silent == []
    assert errors == []
