"""Hostile files by recipe: the same number leads to the same files."""

import json
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from onnx import ModelProto, TensorProto, helper

import onnxjson
from onnxjson.codecs import protojson
from tests.generation.messages import generate
from tests.hostile import binaries, documents
from tests.hostile.bounds import cases
from tests.hostile.test_random_edits import PIECES, edited
from tests.hostile.test_strange_arrays import archives, npy

MODELS = Path(__file__).parents[2] / "models"

NAMES = (
    "x[/]", "[@click=app.bell]z[/]", "\x1b]0;t\x07\x1b[31mred", "\x9b31m", "\u202egnp", "two\nlines\r\n\t", "-o",
    "--help", "%s%n", "{0.__class__}", "$(reboot)", "`id`", "../../etc/passwd", "/", "/graph/node/0", "op:Relu",
    "a" * 5_000, "", " ", "a ", "o\u0321\u0322\u0328", "\ud7ff\U000e0001", "\0", "漢字" * 40, "*", "[", "(a+)+$",
    "name:", "x,y", "<<<<<<<",
)  # fmt: skip

LOCATIONS = (
    "w.bin", "", ".", "..", "../w.bin", "/etc/passwd", "a/../../w.bin", "w.bin\0x", "\\\\host\\w", "C:\\w", "./w.bin",
    "w.bin/", "link", "fifo", "/dev/zero", "~", "$HOME", "a.onnx", "*/_ORT_MEM_ADDR_/*", "x" * 300, "sub/w.bin",
    "http://a", "\x1b[2J", "é", "w.bin ", "//w.bin", "hard", "loop", "/proc/self/mem", "nothing",
)  # fmt: skip

NUMBERS = ("0", "4", "-1", "8", "1_0", " 4 ", "٤", "0x4", "9" * 25, "", "1e1", "+4", "9223372036854775807", "00")

Files = dict[str, bytes]


@cache
def _exported(name: str) -> bytes:
    return (MODELS / name).read_bytes()


def _some_model(rng: Random) -> ModelProto:
    name = rng.choice(("branches_ts.onnx", "branches_ts.onnx", "branches_ts.onnx", "mobile_ts.onnx", "base"))
    return ModelProto.FromString(binaries.base() if name == "base" else _exported(name))


def broken(rng: Random) -> Files:
    """A binary that is no model."""
    return {"a.onnx": rng.choice(binaries.binaries(rng.choice(list(binaries.CATEGORIES)))).data}


def mutated(rng: Random) -> Files:
    """A model with changed bytes."""
    data = _some_model(rng).SerializeToString()
    return {"a.onnx": binaries.mutation(rng, data), "b.onnx": binaries.mutation(rng, data), "base.onnx": data}


def generated(rng: Random) -> Files:
    """Messages with any fields."""
    return {f"{file}.onnx": generate(rng.randrange(10**6), rng.choice((60, 300, 1500))) for file in ("a", "b", "base")}


def changed(rng: Random, message: Any) -> None:
    """Change a random field somewhere in a message, as an unfinished edit might."""
    fields = message.DESCRIPTOR.fields
    inside = [found for field, found in message.ListFields() if field.type == FieldDescriptor.TYPE_MESSAGE]
    if inside and rng.random() < 0.8:
        deeper = rng.choice(inside)
        many = hasattr(deeper, "add")
        changed(rng, rng.choice(deeper) if many and deeper else message if many else deeper)
        return
    field = rng.choice(fields)
    if rng.random() < 0.3:
        message.ClearField(field.name)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        known = getattr(message, field.name)
        if hasattr(known, "add"):
            if known and rng.random() < 0.5:
                known.append(known[rng.randrange(len(known))])
            elif known:
                del known[rng.randrange(len(known))]
            else:
                known.add()
        else:
            known.SetInParent()
    else:
        value = _scalar(rng, field)
        if hasattr(getattr(message, field.name), "append"):
            getattr(message, field.name).extend([value] * rng.choice((1, 1, 2, 70)))
        else:
            setattr(message, field.name, value)


def _scalar(rng: Random, field: Any) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        return rng.choice((*NAMES, "x", "y"))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice((b"", b"\xff\xfe", b"\0" * 8, rng.randbytes(5)))
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e30))
    if field.type == FieldDescriptor.TYPE_INT64:
        return rng.choice((0, -1, 1, 2, 7, 2**31, 2**62, -(2**63)))
    if field.type == FieldDescriptor.TYPE_UINT64:
        return rng.choice((0, 1, 2**64 - 1))
    if field.type == FieldDescriptor.TYPE_ENUM:
        return rng.choice(field.enum_type.values).number
    return rng.choice((0, -1, 1, 2, 3, 8, 16, 23, 26, 99, 2**31 - 1))


def half_edited(rng: Random) -> Files:
    """A model some of whose fields were changed, twice, and the model."""
    base, found = _some_model(rng), {}
    for file in ("a", "b"):
        other = ModelProto.FromString(base.SerializeToString())
        for _ in range(rng.choice((1, 2, 3, 5))):
            changed(rng, other)
        found[f"{file}.onnx"] = other.SerializePartialToString()
    return {**found, "base.onnx": base.SerializeToString()}


WRITERS = (
    cases.scopes, cases.cycle, cases.cycle_made_by_both, cases.consumers, cases.inputs, cases.calls,
    cases.identities, cases.attributes, cases.ifs, cases.expansion, cases.filled, cases.chain,
)  # fmt: skip


def grown(rng: Random) -> Files:
    """Inputs of `tests.hostile.bounds` in a random size."""
    here = Path("grown")
    here.mkdir()
    write = rng.choice(WRITERS)
    write(here, rng.choice((4, 9, 20, 33)) if write in (cases.calls, cases.expansion) else rng.choice((4, 20, 300)))
    found = {path.name: path.read_bytes() for path in here.iterdir()}
    for path in here.iterdir():
        path.unlink()
    here.rmdir()
    renamed = {"ours.onnx": "a.onnx", "theirs.onnx": "b.onnx"}
    return {renamed.get(name, name): data for name, data in found.items()}


def tensors(rng: Random) -> Files:
    """A constant of any dtype, with dims and bytes that may not fit."""
    tensor = TensorProto(name="w", data_type=rng.randrange(32))
    tensor.dims.extend(
        rng.choice(
            ([], [2], [2, 2], [0], [-1], [2**62], [2**32, 2**32], [0, 2**62, 2**62], [1] * 65, [1] * 3_000, [3], [7])
        )
    )
    for _ in range(rng.choice((1, 1, 2))):
        match rng.randrange(5):
            case 0:
                tensor.raw_data = rng.randbytes(rng.choice((0, 1, 2, 3, 4, 8, 16, 17, 64)))
            case 1:
                tensor.float_data.extend([rng.choice((0.0, float("nan"), 1e38))] * rng.randrange(6))
            case 2:
                tensor.int32_data.extend([rng.choice((0, -1, 300, 2**31 - 1))] * rng.randrange(6))
            case 3:
                tensor.string_data.extend([rng.choice((b"", b"\xff", b"a"))] * rng.randrange(6))
            case 4:
                tensor.int64_data.extend([rng.choice((0, -(2**63)))] * rng.randrange(6))
    model = cases.model([helper.make_node("Add", ["x", "w"], ["y"], name="n")])
    base = model.SerializeToString()
    if rng.random() < 0.3:
        model.graph.sparse_initializer.add(values=tensor, dims=[2**40])
    else:
        model.graph.initializer.append(tensor)
    return {"a.onnx": model.SerializeToString(), "b.onnx": base, "base.onnx": base}


def external(rng: Random) -> Files:
    """A constant in another file, or what claims to be one."""
    model = cases.model([helper.make_node("Add", ["x", "w"], ["y"], name="n")])
    base = model.SerializeToString()
    tensor = model.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=rng.choice(LOCATIONS))
    for key in ("offset", "length", "checksum", "location", "__class__"):
        if rng.random() < 0.3:
            tensor.external_data.add(key=key, value=rng.choice(NUMBERS))
    return {"a.onnx": model.SerializeToString(), "base.onnx": base, "w.bin": bytes(8)}


def named(rng: Random) -> Files:
    """A model in which everything has a hostile name."""
    one, other, third = (rng.choice(NAMES).encode("utf-8", "replace").decode() for _ in range(3))
    node = helper.make_node(rng.choice(("Relu", third)), [one], [other], name=third, doc_string=one)
    model = cases.model([node], inputs=[one], outputs=[other])
    model.graph.name = model.producer_name = other
    model.metadata_props.add(key=third, value=one)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = third
    base = model.SerializeToString()
    model.graph.node[0].op_type = "Abs"
    return {"a.onnx": base, "b.onnx": model.SerializeToString(), "base.onnx": base}


def written(rng: Random) -> Files:
    """A text with mistakes."""
    if rng.random() < 0.4:
        text = rng.choice(documents.documents(rng.choice(list(documents.CATEGORIES)))).text
    else:
        text = edited(rng, documents.BASE).encode("utf-8", "surrogatepass")
    return {"a.onnx.json": text, "base.onnx.json": documents.BASE.encode()}


def proto_json(rng: Random) -> Files:
    """JSON of protobuf with mistakes."""
    text = protojson.dumps(onnxjson.from_proto(_some_model(rng)), lossy=True).decode()
    for _ in range(rng.randrange(3)):
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(PIECES) + text[at + rng.randrange(4) :]
    return {"a.json": text.encode("utf-8", "surrogatepass")}


KINDS: tuple[Callable[[Random], Files], ...] = (
    broken, mutated, mutated, generated, half_edited, half_edited, grown, tensors, external, named, named, written,
    proto_json,
)  # fmt: skip

_SCRIPT = json.dumps([{"edit": "set-metadata", "key": "k", "value": "v"}, {"edit": "delete-node", "node": "op:Relu"}])

_RECIPE = "steps:\n  - onnxoptimizer\n  - onnxsim\n"


@cache
def _arrays() -> tuple[bytes, ...]:
    odd = (npy("(" + "1," * 100_000 + ")", 2), npy("(9223372036854775807,)"), b"", b"\x93NUMPY", struct.pack("<d", 1.0))
    return (*(data for _, data in archives()), *odd)


def surroundings(rng: Random) -> Files:
    """Other files of a command: a script, a recipe, a patch, arrays."""
    script, recipe = (edited(rng, text) if rng.random() < 0.7 else text for text in (_SCRIPT, _RECIPE))
    patch = edited(rng, json.dumps({"format": "onnxjson-patch/1", "changes": []}))
    return {
        "script.json": script.encode("utf-8", "surrogatepass"),
        "recipe.yaml": recipe.encode("utf-8", "surrogatepass"),
        "patch.json": patch.encode("utf-8", "surrogatepass"),
        "w.npz": rng.choice(_arrays()),
        "w.npy": rng.choice(_arrays()),
    }
