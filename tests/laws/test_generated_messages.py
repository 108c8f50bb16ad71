"""20,000 generated messages come back message-identical, through the bytes and through the text."""

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto

import onnxjson
from onnxjson.model.errors import OnnxJsonError
from tests.generation.messages import generate, generate_from, size_of
from tests.seeds import portions


def broken_laws(data: bytes, thorough: bool = True) -> list[str]:
    """What does not hold for one serialised ModelProto; empty when all does.

    `thorough` adds the laws of texts that are not canonical, which are read by another, slower part of the reader.
    """
    proto = ModelProto.FromString(data)
    expected = proto.SerializeToString()
    model = onnxjson.from_proto(proto)
    text = onnxjson.dumps(model)
    again = onnxjson.loads(text)
    laws = {
        "from_proto and to_proto lose nothing": onnxjson.to_proto(model).SerializeToString() == expected,
        "from_proto leaves the message alone": proto.SerializeToString() == expected,
        "the text gives the identical message": onnxjson.to_proto(again).SerializeToString() == expected,
        "the text gives the identical records": again == model,
        "canonical text is a fixed point": onnxjson.dumps(again) == text,
        "bytes of text are text": onnxjson.loads(text.encode()) == model,
        "text ends with one line feed": text.endswith("}\n"),
        "text holds no tab and no carriage return": "\t" not in text and "\r" not in text,
        "no line ends with a space": not any(line.endswith(" ") for line in text.split("\n")),
    }
    if thorough:
        laws |= {
            "the reader of hand-written text agrees with the reader of canonical text": onnxjson.loads("\n" + text)
            == model,
            "text on one line, as other writers of JSON have it, means the same": onnxjson.loads(on_one_line(text))
            == model,
        }
    return [law for law, holds in laws.items() if not holds]


def on_one_line(text: str) -> str:
    """The same document as Python's json module writes it."""
    return json.dumps(json.loads(text))


def failures(seeds: range) -> list[str]:
    found: list[str] = []
    for seed in seeds:
        data = generate(seed, size_of(seed))
        try:
            broken = broken_laws(data, thorough=seed % 4 == 0)
        except Exception as error:  # the report names the seed of every failure
            broken = [f"{type(error).__name__}: {error}"[:300]]
        found.extend(f"seed {seed}, {len(data):,} bytes: {law}" for law in broken)
    return found


@pytest.mark.parametrize("seeds", portions(20_000, always=1_000, size=500))
def test_generated_messages_are_identical_through_records_and_text(seeds: range) -> None:
    assert not failures(seeds)


def drawn(count: int) -> settings:
    return settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


@drawn(150)
@given(rng=st.randoms(use_true_random=False), size=st.integers(1, 300))
def test_drawn_messages_are_identical_and_failures_shrink(rng: Random, size: int) -> None:
    assert not broken_laws(generate_from(rng, size))


@pytest.mark.exhaustive
@drawn(1000)
@given(rng=st.randoms(use_true_random=False), size=st.integers(1, 300))
def test_many_drawn_messages_are_identical(rng: Random, size: int) -> None:
    assert not broken_laws(generate_from(rng, size))


@pytest.mark.parametrize("seeds", portions(2_000, always=400, size=400))
def test_files_of_generated_messages_load_to_the_message_or_are_refused_by_name(tmp_path: Path, seeds: range) -> None:
    """`load` refuses only what is surely not a whole model; it never reads another message."""
    refused = []
    for seed in seeds:
        data = generate(seed, size_of(seed) // 4 + 1)
        path = tmp_path / "model.onnx"
        path.write_bytes(data)
        proto = ModelProto.FromString(data)
        try:
            model = onnxjson.load(path)
        except OnnxJsonError as error:
            refused.append((seed, proto.HasField("graph"), str(error)))
        else:
            assert onnxjson.to_proto(model).SerializeToString() == proto.SerializeToString(), seed
    assert 0 < len(refused) < len(seeds) / 5
    assert [one for one in refused if one[1] and "twice" not in one[2]] == []


def test_files_survive_saving_as_text_and_as_binary(tmp_path: Path) -> None:
    for seed in range(300):
        proto = ModelProto.FromString(generate(seed, size_of(seed)))
        if not proto.HasField("graph"):
            continue
        onnxjson.save(onnxjson.from_proto(proto), tmp_path / "model.onnx.json")
        onnxjson.save(onnxjson.load(tmp_path / "model.onnx.json"), tmp_path / "model.onnx")
        assert (tmp_path / "model.onnx").read_bytes() == proto.SerializeToString(), seed
