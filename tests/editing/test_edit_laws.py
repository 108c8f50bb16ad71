"""Whatever is edited: the result hangs together or nothing happened, and it can be undone."""

import random

import onnx
import pytest

import onnxjson
from onnxjson import edits
from onnxjson.editing.declaration import Edit
from onnxjson.editing.spelling import parse_line, spell_line
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.structure import check_structure
from onnxjson.patching.patch import Patch
from tests.editing.graphs import EXPORTED, exported
from tests.editing.random_models import bytes_of, random_edit, random_model
from tests.seeds import seeds


def require_checked(model: Model) -> None:
    """Fails where the structure or onnx's checker finds something."""
    findings = [finding for finding in check_structure(model) if finding.severity == "error"]
    assert not findings, findings
    onnx.checker.check_model(onnxjson.to_proto(model))


def made(model: Model, edit: Edit) -> Model | None:
    """The model after an edit, None where it is refused; either way the model before is what it was."""
    before = bytes_of(model)
    try:
        after = onnxjson.apply(model, edit)
    except OnnxJsonError:
        assert bytes_of(model) == before
        return None
    assert bytes_of(model) == before
    return after


@pytest.mark.parametrize("seed", seeds(60, always=30))
def test_random_edits_of_random_models_leave_valid_models_or_are_refused(seed: int) -> None:
    rng = random.Random(seed)
    model = random_model(rng)
    require_checked(model)
    done: list[Edit] = []
    current = model
    for _ in range(12):
        edit = random_edit(current, rng, texts=True)
        after = made(current, edit)
        if after is None:
            continue
        require_checked(after)
        patch = Patch.between(current, after)
        assert bytes_of(patch.apply(current)) == bytes_of(after)
        assert bytes_of(patch.invert().apply(after)) == bytes_of(current)
        assert parse_line(spell_line(edit)) == edit
        done.append(edit)
        current = after
    script = edits.Script(tuple(done))
    text = script.dumps()
    again = edits.Script.loads(text)
    assert again.edits == script.edits
    assert again.dumps() == text
    assert bytes_of(onnxjson.apply(model, again)) == bytes_of(current)
    patch = edits.plan(model, again)
    assert bytes_of(Patch.loads(patch.dumps()).invert().apply(current)) == bytes_of(model)


@pytest.mark.parametrize("seed", seeds(8, always=4))
@pytest.mark.parametrize("name", EXPORTED)
def test_random_edits_of_exported_models_leave_valid_models_or_are_refused(name: str, seed: int) -> None:
    rng = random.Random(seed)
    model = exported(name)
    current = model
    for _ in range(6):
        after = made(current, random_edit(current, rng, texts=True))
        if after is None:
            continue
        findings = [finding for finding in check_structure(after) if finding.severity == "error"]
        assert not findings, findings
        onnx.checker.check_model(onnxjson.to_proto(after))
        current = after
    patch = Patch.between(model, current)
    assert bytes_of(patch.invert().apply(current)) == bytes_of(model)


@pytest.mark.parametrize("seed", range(20))
def test_script_with_one_step_that_cannot_be_made_changes_nothing(seed: int) -> None:
    rng = random.Random(1000 + seed)
    model = random_model(rng)
    steps = [random_edit(model, rng, texts=True) for _ in range(4)]
    bad: Edit = edits.DeleteNode(node="name:none such")
    steps.insert(rng.randrange(5), bad)
    before = bytes_of(model)
    with pytest.raises(OnnxJsonError):
        onnxjson.apply(model, steps)
    assert bytes_of(model) == before
