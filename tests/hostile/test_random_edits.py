"""Random edits of texts: a clear error, or a model that is written and read again as the same; never anything else."""

import json
from random import Random

import pytest
from onnx import ModelProto

import onnxjson
from onnxjson.model.errors import OnnxJsonError
from tests.generation.messages import generate
from tests.hostile.documents import BASE
from tests.seeds import portions

PIECES = (
    "{", "}", "[", "]", ",", ":", '"', "\\", "\n", " ", "0", "1", "-", "-0", ".5", "e9", "null", "true", "[]", "{}",
    '""', "//", "/*", "\\u0041", "\\ud800", "\x00", "\t", "\ufeff", "é", "😀", "NaN", '"NaN"', "99999999999999999999",
    '"base64"', '"type"', '"x": 1, ', "'", "<<<<<<<", "#", "?",
)  # fmt: skip


def edited(rng: Random, text: str) -> str:
    """`text` with one to three random edits: characters replaced, removed, doubled, moved, or pieces of JSON put in."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(text))
        end = min(len(text), at + rng.choice((1, 1, 1, 2, 5, 20)))
        kind = rng.randrange(6)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif kind == 2:
            text = text[:at] + rng.choice(PIECES) + text[end:]
        elif kind == 3:
            text = text[:end] + text[at:end] + text[end:]
        elif kind == 4:
            other = rng.randrange(len(text))
            text = text[:at] + text[end:other] + text[at:end] + text[max(end, other) :]
        else:
            lines = text.split("\n")
            line = rng.randrange(len(lines))
            lines.insert(rng.randrange(len(lines)), lines.pop(line))
            text = "\n".join(lines)
    return text or "{"


def wrong(text: str) -> str | None:
    """What is wrong with how an edited text is taken; None if it is refused clearly, or read for good."""
    try:
        model = onnxjson.loads(text)
    except OnnxJsonError as error:
        return None if error.exit_code in (65, 71) and str(error).strip() else f"unclear: {error!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    try:
        again = onnxjson.loads(onnxjson.dumps(model))
    except OnnxJsonError as error:
        return f"written and refused: {error}"[:300]
    return None if again == model else "written and read as another model"


@pytest.mark.parametrize("seeds", portions(4_000, always=1_000, size=1_000))
def test_random_edits_of_a_document_are_refused_or_read_for_good(seeds: range) -> None:
    found = []
    for seed in seeds:
        text = edited(Random(seed), BASE)
        if outcome := wrong(text):
            found.append((seed, outcome))
    assert found == []


@pytest.mark.parametrize("seed", [1667, 3627])
def test_a_reason_is_withdrawn_for_a_better_one_only(seed: int) -> None:
    assert wrong(edited(Random(seed), BASE)) is None


@pytest.mark.parametrize("seeds", portions(2_000, always=500, size=500))
def test_random_edits_of_generated_models_are_refused_or_read_for_good(seeds: range) -> None:
    found = []
    for seed in seeds:
        model = ModelProto.FromString(generate(seed % 97, 50 + seed % 400))
        text = edited(Random(seed), onnxjson.dumps(onnxjson.from_proto(model)))
        if outcome := wrong(text):
            found.append((seed, outcome))
    assert found == []


@pytest.mark.parametrize("seeds", portions(4_000, always=1_000, size=1_000))
def test_no_edit_makes_a_key_that_stands_twice_readable(seeds: range) -> None:
    """Whatever the edit: a text that loads has no duplicate key anywhere, by another parser's word."""

    def refuse_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
        assert len({key for key, _ in pairs}) == len(pairs)
        return dict(pairs)

    loaded = 0
    for seed in seeds:
        text = edited(Random(seed), BASE)
        try:
            onnxjson.loads(text)
            json.loads(text)
        except ValueError:
            continue  # comments and trailing commas are ours
        except OnnxJsonError:
            continue
        json.loads(text, object_pairs_hook=refuse_duplicates)
        loaded += 1
    assert loaded > len(seeds) / 20
