"""The examples of docs/format.md hold, both ways.

An example is a fenced block ``json NAME`` with the text of one element, followed by a block ``textproto`` (protobuf's
text format) or ``hex`` (the serialised message, where the text format cannot say it) with the message of type NAME that
it stands for. ``json NAME read`` marks text that is read but never written.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

import onnx
import pytest
from google.protobuf import text_format

import onnxjson

FORMAT = Path(__file__).parent.parent.parent / "docs" / "format.md"


class Example(NamedTuple):
    """One element and the message it stands for."""

    line: int
    section: int
    message: str
    """The message's name in onnx.proto."""
    read_only: bool
    text: str
    notation: str
    """"textproto" or "hex"."""
    meaning: str

    def parsed(self) -> Any:
        """The message that the second block holds."""
        empty = getattr(onnx, self.message)()
        if self.notation == "hex":
            data = bytes.fromhex(re.sub(r"#.*", "", self.meaning))
            return type(empty).FromString(data)
        return text_format.Parse(self.meaning, empty)


class Home(NamedTuple):
    """Where elements of one kind stand in the smallest document that has one."""

    before: str
    indent: int
    after: str
    field: str
    """The path to the repeated or singular field in a ModelProto."""

    def document(self, text: str) -> str:
        """A document with the element."""
        return self.before + text.replace("\n", "\n" + " " * self.indent) + self.after

    def model(self, message: Any) -> onnx.ModelProto:
        """A model with the message."""
        model = onnx.ModelProto()
        if not self.field:
            model.CopyFrom(message)
            return model
        *parents, last = self.field.split(".")
        place: Any = model
        for parent in parents:
            place = getattr(place, parent)
        target = getattr(place, last)
        (target if last == "graph" else target.add()).CopyFrom(message)
        return model


def in_graph(field: str) -> Home:
    start = '{\n"format": "onnxjson/1",\n"graph": {\n'
    return Home(f'{start}  "{field}": [\n    ', 4, "\n  ]\n}\n}\n", f"graph.{field}")


def in_model(field: str) -> Home:
    return Home(f'{{\n"format": "onnxjson/1",\n"{field}": [\n  ', 2, "\n]\n}\n", field)


HOMES = {
    "ModelProto": Home("", 0, "\n", ""),
    "GraphProto": Home('{\n"format": "onnxjson/1",\n"graph": ', 0, "\n}\n", "graph"),
    "NodeProto": in_graph("node"),
    "ValueInfoProto": in_graph("value_info"),
    "TensorProto": in_graph("initializer"),
    "SparseTensorProto": in_graph("sparse_initializer"),
    "TensorAnnotation": in_graph("quantization_annotation"),
    "FunctionProto": in_model("functions"),
    "TrainingInfoProto": in_model("training_info"),
    "DeviceConfigurationProto": in_model("configuration"),
}

BLOCK = re.compile(r"^```json (\w+)( read)?\n(.*?)\n```\n\n?```(textproto|hex)\n(.*?)```$", re.MULTILINE | re.DOTALL)


def examples() -> list[Example]:
    source = FORMAT.read_text(encoding="utf-8")
    found = []
    for block in BLOCK.finditer(source):
        message, read, text, notation, meaning = block.groups()
        before = source[: block.start()]
        section = int(re.findall(r"^## (\d+)\.", before, re.MULTILINE)[-1])
        found.append(Example(before.count("\n") + 1, section, message, bool(read), text, notation, meaning))
    return found


def label(example: Example) -> str:
    return f"line-{example.line}-{example.message}"


def test_every_fenced_example_of_the_format_is_run() -> None:
    source = FORMAT.read_text(encoding="utf-8")
    assert len(examples()) == len(re.findall(r"^```json", source, re.MULTILINE))
    assert len(examples()) == len(re.findall(r"^```(?:textproto|hex)", source, re.MULTILINE))


def test_every_section_with_rules_has_examples() -> None:
    assert {example.section for example in examples()} >= set(range(2, 12))
    assert len(examples()) >= 40


@pytest.mark.parametrize("example", examples(), ids=label)
def test_the_text_of_the_example_reads_to_its_message(example: Example) -> None:
    home = HOMES[example.message]
    read = onnxjson.to_proto(onnxjson.loads(home.document(example.text)))
    assert read.SerializeToString() == home.model(example.parsed()).SerializeToString()


@pytest.mark.parametrize("example", [one for one in examples() if not one.read_only], ids=label)
def test_the_message_of_the_example_is_written_as_its_text(example: Example) -> None:
    home = HOMES[example.message]
    assert onnxjson.dumps(onnxjson.from_proto(home.model(example.parsed()))) == home.document(example.text)


@pytest.mark.parametrize("example", [one for one in examples() if one.read_only], ids=label)
def test_text_that_is_only_read_is_not_canonical(example: Example) -> None:
    home = HOMES[example.message]
    assert onnxjson.dumps(onnxjson.from_proto(home.model(example.parsed()))) != home.document(example.text)
