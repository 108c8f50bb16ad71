"""Every word of another program leads to something that this program has."""

import re

import click
import pytest

import onnxjson
from onnxjson.cli.group import onnxjson as program
from onnxjson.cli.overview import COMMANDS
from onnxjson.editing import catalogue as edits
from onnxjson.model.dtypes import DATA_TYPE_NAMES
from onnxjson.model.foreign_words import WORDS, meant
from onnxjson.optimizing.passes import catalogue as passes

CLASSES = sorted({*WORDS} - {"command", "option", "pass", "edit", "dtype", "onnxjson"})


def _options() -> set[str]:
    """The options of all commands and edits."""
    context = click.Context(program)
    commands = [program.get_command(context, name) for name in COMMANDS]
    groups = [each for each in commands if isinstance(each, click.Group)]
    commands += [group.get_command(context, name) for group in groups for name in group.list_commands(context)]
    return {option for each in commands if each for parameter in each.get_params(context) for option in parameter.opts}


def test_passes_edits_and_dtypes_exist() -> None:
    assert {*WORDS["pass"]} <= {*passes.NAMES}
    assert {*WORDS["edit"]} <= {*edits.NAMES}
    assert {*WORDS["dtype"]} <= {*DATA_TYPE_NAMES.values()}


def test_options_exist() -> None:
    known = _options()
    for advice in WORDS["option"]:
        assert {word.strip(",;`") for word in advice.split() if re.fullmatch("--?[a-z-]+", word)} <= known, advice


def test_names_of_the_package_exist() -> None:
    names = {name for kind in WORDS for advice in WORDS[kind] for name in re.findall(r"onnxjson\.([\w.]+)\(", advice)}
    assert len(names) > 15
    for name in names:
        value: object = onnxjson
        for part in name.split("."):
            value = getattr(value, part)


@pytest.mark.parametrize("name", CLASSES)
def test_words_for_a_class_are_no_names_of_it_and_their_advice_is(name: str) -> None:
    kind = getattr(onnxjson, name)
    for advice, words in WORDS[name].items():
        assert [word for word in words.split() if hasattr(kind, word)] == []
        for attribute in re.findall(r"^\.(\w+)", advice):
            assert hasattr(kind, attribute), advice


def test_a_word_has_one_meaning_in_a_class() -> None:
    for kind in [*CLASSES, "onnxjson", "pass", "edit", "dtype"]:
        words = " ".join(WORDS[kind].values()).split()
        assert sorted(words) == sorted({*words}), kind


def test_a_word_is_looked_up_as_it_is_written_or_in_small_letters() -> None:
    assert meant("dtype", "FP16") == ["float16"]
    assert meant("onnxjson", "InferenceSession") != []
    assert meant("command", "compare") == ["diff", "verify"]
    assert meant("command", "nothing-of-the-sort") == []
