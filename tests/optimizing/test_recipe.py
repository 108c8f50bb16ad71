"""Recipes: read, written, refused with the place of every mistake."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from onnxjson.model.errors import DecodeError, MissingInputError
from onnxjson.optimizing.passes import Step, parse_step
from onnxjson.optimizing.passes.recipe import load_recipe, parse_recipe
from tests.schemas.declared import recipe_schema

SPELLED = [
    "onnxsim{fold=false}*",
    "onnxoptimizer:nop",
    "onnxoptimizer*",
    "onnxoptimizer{passes=[nop,eliminate_identity],fixed_point=true}",
    "prune",
    "set-attribute{node=op:Conv,attribute=pads,value=[1,1,1,1]}",
    "prune{what=nodes}*",
    "rewrite.json",
]


def refusals(text: str) -> list[tuple[int, int, str]]:
    """Where a recipe is wrong, and in what way."""
    with pytest.raises(DecodeError) as caught:
        parse_recipe(text.encode())
    return [(each.line, each.column, each.code) for each in caught.value.findings]


def recipe(*steps: str) -> str:
    """A recipe whose steps stand on the third line and after it."""
    return '{"format": "onnxjson-recipe/1",\n"passes": [\n' + ",\n".join(steps) + "\n]}"


def test_texts_of_a_recipe_are_read_as_on_the_command_line() -> None:
    text = recipe(*map(json.dumps, SPELLED))
    assert parse_recipe(text.encode()) == tuple([parse_step(each) for each in SPELLED])
    Draft202012Validator(recipe_schema()).validate(json.loads(text))


def test_options_stand_in_objects() -> None:
    (step,) = parse_recipe(recipe('{"pass": "onnxsim", "fold": false, "skip": ["a", "b"], "repeat": true}').encode())
    assert step == Step(parse_step("onnxsim{fold=false,skip=[a,b]}").subject, repeats=True)


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ('"onnxsimm"', "wrong-pass"),
        ('"onnxsim{fodl=true}"', "wrong-pass"),
        ("3", "wrong-type"),
        ("{}", "wrong-type"),
        ('{"pass": "x"}', "unknown-pass"),
        ('{"pass": 3}', "wrong-type"),
        ('{"pass": "onnxsim", "fold": 1}', "wrong-type"),
        ('{"pass": "onnxsim", "fodl": true}', "unknown-key"),
        ('{"pass": "onnxsim", "skip": ["a", 1]}', "wrong-type"),
        ('{"pass": "onnxsim", "repeat": 2}', "wrong-type"),
        ('{"pass": "onnxoptimizer", "passes": ["nopp"]}', "wrong-pass"),
        ('{"edit": "prun"}', "unknown-edit"),
        ('{"edit": "prune", "what": 3}', "wrong-type"),
        ('"../up.json"', "outside-folder"),
        ('"/etc/up.json"', "outside-folder"),
        ('{"pass": "extract-adapters", "save": "../up.npz"}', "outside-folder"),
        ('"extract-adapters{save=/etc/up.npz}"', "outside-folder"),
        ('{"pass": "float16", "data": ["samples.npz", "../up.npz"]}', "outside-folder"),
        ('"mine.py"', "python-file"),
        ('"mine.py{a=1}*"', "python-file"),
    ],
)
def test_a_wrong_step_is_named_with_its_line(step: str, code: str) -> None:
    assert [(line, found) for line, _, found in refusals(recipe('"onnxoptimizer"', step))] == [(4, code)]


def test_all_mistakes_are_told_at_once() -> None:
    assert refusals('{"format": "onnxjson-recipe/2", "steps": [],\n"passes": ["onnxsimm",\n3]}') == [
        (1, 12, "other-format"),
        (1, 33, "unknown-key"),
        (2, 12, "wrong-pass"),
        (3, 1, "wrong-type"),
    ]
    assert refusals("[]") == [(1, 1, "wrong-type")]
    assert refusals("{}") == [(1, 1, "no-format"), (1, 1, "missing-key")]


def test_mistakes_in_a_step_are_placed_where_they_are() -> None:
    assert refusals(recipe('{"edit": "prune",\n"what": ["nodse"]}', '{"pass": "onnxsim", "fold": null}')) == [
        (4, 10, "wrong-type"),
        (5, 29, "wrong-type"),
    ]
    assert refusals('{"format": 3, "passes": []}') == [(1, 12, "wrong-type")]


def test_files_stand_beside_the_recipe(tmp_path: Path) -> None:
    path = tmp_path / "recipe.json"
    path.write_text(recipe('"rewrite.json"'))
    (step,) = load_recipe(path)
    assert step == parse_step(str(tmp_path / "rewrite.json"))


def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    path = inside / "recipe.json"
    path.write_text(recipe('"extract-adapters{save=link/up.npz}"'))
    with pytest.raises(DecodeError, match=r"link/up\.npz is not in the folder of the recipe"):
        load_recipe(path)
    path.write_text(recipe('"extract-adapters{save=up.npz}"'))
    (step,) = load_recipe(path)
    assert step == parse_step(f"extract-adapters{{save={inside / 'up.npz'}}}")


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ('{"pass": "onnxoptimizer:nop"}', 'write it as a string, "onnxoptimizer:nop"'),
        (
            '{"pass": "onnxoptimizer:nop", "fixed_point": true}',
            'write {"pass": "onnxoptimizer", "passes": ["nop"]} with its options',
        ),
        ('{"pass": "prune"}', 'an edit is written {"edit": "prune"}'),
    ],
)
def test_names_that_only_a_text_may_have_are_answered_with_how_to_write_them(step: str, said: str) -> None:
    with pytest.raises(DecodeError) as caught:
        parse_recipe(recipe(step).encode())
    assert [each.hint for each in caught.value.findings] == [said]


def test_a_recipe_that_is_not_there_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        load_recipe(tmp_path / "recipe.json")
