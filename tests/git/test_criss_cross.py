"""Histories that cross, with real git: the common ancestors are merged by structure too, and no side wins silently."""

import subprocess
from pathlib import Path

import pytest

import onnxjson
from onnxjson.merging.merge import Merged, merge, merge_uncertain
from onnxjson.merging.resolving import resolve
from onnxjson.model.conflicts import ConflictError
from onnxjson.model.document import Model
from onnxjson.storage import files
from tests.git.test_merge_driver import NAMES, Merging
from tests.merging.models import BASE, Change, attribute, both, metadata

ALPHA, RIVAL, THIRD = (attribute(1, "alpha", value) for value in (0.2, 0.3, 0.4))
AXIS, OTHER_AXIS = (attribute(4, "beta", value) for value in (2.0, 3.0))
DOC = metadata("doc", "1")


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """A binary or a text."""
    return str(request.param)


class Crossed(Merging):
    """Branches main and topic, each of which has merged the commit that the other one began with."""

    def __init__(self, top: Path, name: str, ours: Change, theirs: Change) -> None:
        super().__init__(top, name, ours, theirs)
        self.first, self.second = self.git("rev-parse", "main"), self.git("rev-parse", "topic")

    def cross(self, on_main: Change | None = None, on_topic: Change | None = None) -> None:
        """Merge; with a change instead where the merge has conflicts, and a person decides."""
        for branch, other, decided in (("main", self.second, on_main), ("topic", self.first, on_topic)):
            self.git("checkout", "-q", branch)
            assert self.run("merge", "--no-edit", other) == (0 if decided is None else 1)
            if decided is not None:
                self.edit(decided, BASE)

    def edit(self, change: Change, model: Model | None = None) -> None:
        """Commit a change of what is there, or of a model."""
        onnxjson.save(change(onnxjson.load(self.path) if model is None else model), self.path)
        self.commit("edited")

    def conflicts(self) -> list[str]:
        """Where the file has conflicts."""
        return [conflict.at for conflict in files.load(self.path, conflicted=True).conflicts]


@pytest.mark.parametrize("into", ["main", "topic"])
def test_revert_on_one_side_stands(tmp_path: Path, name: str, into: str) -> None:
    repository = Crossed(tmp_path / "r", name, ALPHA, DOC)
    repository.cross()
    repository.git("revert", "--no-edit", repository.first)
    repository.git("checkout", "-q", "main")
    repository.edit(metadata("late", "1"))
    repository.git("checkout", "-q", into)
    repository.git("merge", "-q", "--no-edit", "topic" if into == "main" else "main")
    assert onnxjson.load(repository.path) == both(DOC, metadata("late", "1"))(BASE)


def test_same_with_the_setting_of_earlier_versions_is_what_the_new_one_mends(tmp_path: Path) -> None:
    repository = Crossed(tmp_path / "r", "m.onnx", ALPHA, DOC)
    repository.git("config", "merge.onnx.recursive", "binary")
    repository.cross()
    repository.git("revert", "--no-edit", repository.first)
    repository.git("checkout", "-q", "main")
    repository.edit(metadata("late", "1"))
    repository.git("merge", "-q", "--no-edit", "topic")
    assert onnxjson.load(repository.path) != both(DOC, metadata("late", "1"))(BASE)


def test_ancestors_in_conflict_that_both_sides_settled_alike_merge(tmp_path: Path, name: str) -> None:
    repository = Crossed(tmp_path / "r", name, ALPHA, RIVAL)
    repository.cross(RIVAL, RIVAL)
    repository.edit(metadata("late", "1"))
    merged = subprocess.run(["git", "merge", "main"], cwd=repository.top, capture_output=True, text=True, check=True)
    assert "has a conflict" not in merged.stderr  # nobody can settle one that is in the base
    assert onnxjson.load(repository.path) == both(RIVAL, metadata("late", "1"))(BASE)


def test_ancestors_in_conflict_that_each_side_settled_its_way_conflict(tmp_path: Path, name: str) -> None:
    repository = Crossed(tmp_path / "r", name, ALPHA, RIVAL)
    repository.cross(ALPHA, RIVAL)
    assert repository.run("merge", "main") == 1
    (conflict,) = files.load(repository.path, conflicted=True).conflicts
    assert (conflict.at, conflict.ours, conflict.theirs) == ("", RIVAL(BASE), ALPHA(BASE))


@pytest.mark.parametrize("kept", [ALPHA, RIVAL])
def test_side_that_chose_anew_is_in_conflict_with_the_one_that_kept(tmp_path: Path, name: str, kept: Change) -> None:
    repository = Crossed(tmp_path / "r", name, ALPHA, RIVAL)
    repository.cross(kept, THIRD)
    repository.edit(DOC)
    assert repository.run("merge", "main") == 1
    assert repository.conflicts() == ["/graph/node/1/attribute/alpha"]
    loaded = files.load(repository.path, conflicted=True)
    assert resolve(loaded.model, loaded.conflicts, "ours")[0] == both(THIRD, DOC)(BASE)
    assert resolve(loaded.model, loaded.conflicts, "theirs")[0] == both(kept, DOC)(BASE)


def test_three_common_ancestors_two_of_which_are_in_conflict_merge(tmp_path: Path, name: str) -> None:
    """git merges the third one with what the merge of the first two gave, conflicts and all."""
    repository = Crossed(tmp_path / "r", name, ALPHA, RIVAL)
    repository.git("checkout", "-q", "-b", "more", "main~1")
    repository.edit(DOC)
    third = repository.git("rev-parse", "HEAD")
    repository.cross(THIRD, THIRD)
    for branch in ("main", "topic"):
        repository.git("checkout", "-q", branch)
        repository.git("merge", "-q", "--no-edit", third)
    assert len(repository.git("merge-base", "--all", "main", "topic").split()) == 3
    repository.edit(metadata("late", "1"))
    repository.git("checkout", "-q", "main")
    repository.git("revert", "--no-edit", "-m", "1", "HEAD")
    assert repository.run("merge", "topic") == 0
    assert onnxjson.load(repository.path) == both(THIRD, metadata("late", "1"))(BASE)


def uncertain(one: Change, other: Change, base: Model = BASE) -> Merged:
    merged = merge(base, one(base), other(base))
    assert not merged.is_clean
    return merged


def clean(change: Change) -> Merged:
    return Merged(change(BASE))


def test_slot_that_only_one_reading_of_the_base_decides_is_never_decided() -> None:
    """In one slot both readings conflict or differ, in the other one each reading lets another side win."""
    base = uncertain(both(ALPHA, AXIS), both(RIVAL, OTHER_AXIS))
    ours, theirs = clean(both(ALPHA, AXIS)), clean(both(THIRD, OTHER_AXIS))
    found = merge_uncertain(base, ours, theirs)
    assert [(conflict.at, conflict.ours, conflict.theirs) for conflict in found.conflicts] == [
        ("", ours.model, theirs.model)
    ]


def test_result_in_which_all_readings_are_is_taken() -> None:
    base = uncertain(both(ALPHA, AXIS), both(RIVAL, OTHER_AXIS))
    ours, theirs = clean(both(ALPHA, AXIS)), clean(both(THIRD, attribute(4, "beta", 4.0)))
    found = merge_uncertain(base, ours, theirs)
    assert sorted(conflict.at for conflict in found.conflicts) == [
        "/graph/node/1/attribute/alpha",
        "/graph/node/4/attribute/beta",
    ]


def test_base_whose_conflicts_cannot_be_settled_is_none() -> None:
    base = uncertain(ALPHA, RIVAL)
    broken = Merged(THIRD(base.model), base.conflicts)
    found = merge_uncertain(broken, clean(ALPHA), clean(RIVAL))
    assert [(conflict.at, conflict.base) for conflict in found.conflicts] == [("", None)]
    assert merge_uncertain(broken, clean(ALPHA), clean(ALPHA)) == clean(ALPHA)


@pytest.mark.parametrize("is_ours", [True, False])
def test_uncertain_side_keeps_every_value_that_may_be_the_one(is_ours: bool) -> None:
    side, other = uncertain(ALPHA, RIVAL), clean(THIRD)
    found = merge_uncertain(Merged(BASE), *((side, other) if is_ours else (other, side)))
    (conflict,) = found.conflicts
    assert conflict.at == ""
    for change in (ALPHA, RIVAL, THIRD):
        assert change(BASE) in (conflict.base, conflict.ours, conflict.theirs)


@pytest.mark.parametrize("is_ours", [True, False])
def test_uncertain_side_takes_what_the_other_one_changed_elsewhere(is_ours: bool) -> None:
    side, other = uncertain(ALPHA, RIVAL), clean(DOC)
    found = merge_uncertain(Merged(BASE), *((side, other) if is_ours else (other, side)))
    assert [conflict.at for conflict in found.conflicts] == [""]
    assert {each.metadata_props for each in (found.conflicts[0].ours, found.conflicts[0].theirs)} == {
        DOC(BASE).metadata_props
    }


def test_two_uncertain_sides_are_refused() -> None:
    side = uncertain(ALPHA, RIVAL)
    with pytest.raises(ConflictError, match="both sides"):
        merge_uncertain(Merged(BASE), side, side)
