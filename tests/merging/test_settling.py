"""Conflicts settled one by one: what is shown, choices made, changed, taken back, and saved."""

from itertools import permutations
from pathlib import Path

import pytest

import onnxjson
from onnxjson.merging.conflicted_files import ResolutionSession, open_session, save
from onnxjson.merging.resolving import resolve
from onnxjson.model.addresses import SIDES, Choice
from onnxjson.model.conflicts import ConflictError
from onnxjson.model.document import Model
from onnxjson.model.errors import ChangedUnderneathError, DecodeError, MissingInputError, SelectorError
from onnxjson.storage import files
from tests.merging.models import BASE, attribute, both, metadata, node, renamed
from tests.merging.test_conflicted_texts import MANY

OURS, THEIRS = attribute(1, "alpha", 0.2)(BASE), attribute(1, "alpha", 0.3)(BASE)

NAMES = ("m.onnx", "m.onnx.json")


@pytest.fixture(params=NAMES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file with four conflicts."""
    place = tmp_path / str(request.param)
    save(MANY.model, MANY.conflicts, place, files.format_for(place))
    return place


def stored(path: Path, model: Model | None) -> Path:
    """A file of a model; an empty one for None."""
    if model is None:
        path.write_bytes(b"")
    else:
        onnxjson.save(model, path)
    return path


def sides(folder: Path, base: Model | None, ours: Model, theirs: Model) -> tuple[Path, Path, Path]:
    """The three files that git makes."""
    return (
        stored(folder / "m_BASE.onnx", base),
        stored(folder / "m_LOCAL.onnx", ours),
        stored(folder / "m_REMOTE.onnx", theirs),
    )


def test_every_conflict_is_shown_with_what_each_side_has(path: Path) -> None:
    settling = open_session(path)
    assert [each.id for each in settling.conflicts] == ["1", "2", "3", "4"]
    (place,) = next(each for each in settling.conflicts if "alpha" in each.places[0].title).places
    assert place.address == place.title == "/graph/node/1/attribute/alpha"
    values = {"base": 0.1, "ours": 0.2, "theirs": 0.3}
    assert place.values == {
        side: (f'{{"name": "alpha", "f": {value}, "type": "FLOAT"}}',) for side, value in values.items()
    }
    gone = next(each for each in settling.conflicts if each.places[0].values["ours"] is None)
    assert gone.places[0].values["theirs"] is not None
    assert all(
        line.isprintable() for each in settling.conflicts for at in each.places for line in at.values["base"] or ()
    )


def test_each_choice_counts_and_the_last_one_makes_a_model(path: Path) -> None:
    settling = open_session(path)
    assert (settling.remaining, settling.exit_code, settling.is_changed) == (4, 16, False)
    for count, each in enumerate(settling.conflicts):
        settling.choose(each.id, "theirs")
        assert settling.remaining == 3 - count
    assert (settling.exit_code, settling.is_changed) == (16, True)
    settling.save()
    assert (settling.exit_code, settling.is_changed) == (0, False)
    assert onnxjson.load(path) == resolve(MANY.model, MANY.conflicts, "theirs")[0]
    assert files.load(path).format == files.format_for(path)


def test_some_choices_are_saved_with_the_conflicts_that_are_left(path: Path) -> None:
    settling = open_session(path)
    settling.choose("2", "theirs")
    settling.save()
    assert settling.exit_code == 16
    again = open_session(path)
    assert [each.id for each in again.conflicts] == ["1", "3", "4"]
    assert again.model == settling.model


@pytest.mark.parametrize("first", SIDES)
@pytest.mark.parametrize("second", SIDES)
def test_changed_choice_is_as_if_it_was_the_first(path: Path, first: Choice, second: Choice) -> None:
    settling, straight = open_session(path), open_session(path)
    for each in settling.conflicts:
        settling.choose(each.id, first)
    for each in settling.conflicts:
        settling.choose(each.id, second)
        straight.choose(each.id, second)
    assert settling.model == straight.model
    assert dict(settling.choices) == dict.fromkeys(["1", "2", "3", "4"], second)


def test_every_order_of_choosing_gives_the_same_model(path: Path) -> None:
    wanted: dict[str, Choice] = {"1": "theirs", "2": "base", "3": "ours", "4": "theirs"}
    models = []
    for order in permutations(wanted):
        settling = open_session(path)
        for each in order:
            settling.choose(each, wanted[each])
        models.append(settling.model)
    assert all(model == models[0] for model in models)


def test_choice_that_is_taken_back_leaves_nothing(path: Path) -> None:
    settling = open_session(path)
    before = settling.model
    for each in settling.conflicts:
        settling.choose(each.id, "theirs")
    settling.save()
    for each in settling.conflicts:
        settling.undo_choice(each.id)
    assert (settling.model, settling.remaining, settling.is_changed) == (before, 4, True)
    settling.save()
    assert files.load(path, conflicted=True).conflicts == MANY.conflicts
    assert settling.exit_code == 16


def test_side_that_cannot_be_taken_changes_nothing(tmp_path: Path) -> None:
    from onnxjson.merging.merge import merge

    merged = merge(BASE, both(renamed("b", "b1"), attribute(1, "alpha", 0.2))(BASE),
                   both(renamed("b", "b2"), attribute(1, "alpha", 0.3))(BASE))  # fmt: skip
    path = tmp_path / "m.onnx"
    save(renamed("a", "b2")(merged.model), merged.conflicts, path, "onnx")
    settling = open_session(path)
    name = next(each.id for each in settling.conflicts if each.places[0].values["ours"] == ('"b1"',))
    settling.choose(name, "ours")
    before = settling.model, dict(settling.choices), settling.remaining
    with pytest.raises(ConflictError, match="names are taken"):
        settling.choose(name, "theirs")
    assert (settling.model, dict(settling.choices), settling.remaining) == before
    with pytest.raises(SelectorError):
        settling.choose("99", "ours")


def test_file_that_another_program_changed_is_not_replaced(path: Path) -> None:
    settling = open_session(path)
    settling.choose("1", "theirs")
    path.write_bytes(b"else")
    with pytest.raises(ChangedUnderneathError):
        settling.save()
    assert path.read_bytes() == b"else"
    assert settling.exit_code == 16


@pytest.mark.parametrize("found", ["nothing", "ours", "theirs", "base", "markers", "empty"])
def test_file_without_both_sides_is_merged_anew(tmp_path: Path, found: str) -> None:
    three = sides(tmp_path, BASE, OURS, THEIRS)
    path = tmp_path / "m.onnx"
    if found in ("ours", "theirs", "base"):
        path.write_bytes(three[SIDES.index(found)].read_bytes())
    elif found != "nothing":
        path.write_bytes({"markers": b"{\n<<<<<<< ours\n=======\n>>>>>>> theirs\n}\n", "empty": b""}[found])
    settling = open_session(path, three)
    assert [each.places[0].address for each in settling.conflicts] == ["/graph/node/1/attribute/alpha"]
    assert (settling.exit_code, settling.is_changed, settling.is_under_git) == (16, True, True)
    settling.choose("1", "theirs")
    settling.save()
    assert settling.exit_code == 0
    assert onnxjson.load(path) == THEIRS


def test_clean_merge_leaves_only_the_saving(tmp_path: Path) -> None:
    ours, theirs = metadata("k", "1")(BASE), node(0, doc_string="d")(BASE)
    settling = open_session(tmp_path / "m.onnx", sides(tmp_path, BASE, ours, theirs))
    assert (settling.conflicts, settling.exit_code, settling.is_changed) == ((), 16, True)
    settling.save()
    assert (settling.exit_code, onnxjson.load(settling.path)) == (0, node(0, doc_string="d")(ours))


def test_model_that_is_none_of_the_sides_was_settled_by_hand(tmp_path: Path) -> None:
    path = stored(tmp_path / "m.onnx", attribute(1, "alpha", 0.25)(BASE))
    before = path.read_bytes()
    settling = open_session(path, sides(tmp_path, BASE, OURS, THEIRS))
    assert (settling.conflicts, settling.exit_code, settling.is_changed) == ((), 0, False)
    assert path.read_bytes() == before


def test_both_added_is_one_conflict_of_all(tmp_path: Path) -> None:
    settling = open_session(tmp_path / "m.onnx", sides(tmp_path, None, OURS, THEIRS))
    ((place,),) = [each.places for each in settling.conflicts]
    assert (place.address, place.title) == ("", "the whole model")
    assert place.values == {"base": None, "ours": ("a model of 6 nodes",), "theirs": ("a model of 6 nodes",)}


@pytest.mark.parametrize("which", [1, 2])
def test_side_that_is_no_model_or_has_conflicts_is_refused(tmp_path: Path, which: int) -> None:
    three = sides(tmp_path, BASE, OURS, THEIRS)
    three[which].write_bytes(b"")
    with pytest.raises(DecodeError, match="empty file"):
        open_session(tmp_path / "m.onnx", three)
    save(MANY.model, MANY.conflicts, three[which], "onnx")
    with pytest.raises(ConflictError):
        open_session(tmp_path / "m.onnx", three)


def test_file_without_sides_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        open_session(tmp_path / "m.onnx")


def test_nothing_is_written_by_choosing(path: Path) -> None:
    before = path.read_bytes()
    settling: ResolutionSession = open_session(path)
    settling.choose("1", "theirs")
    assert path.read_bytes() == before
