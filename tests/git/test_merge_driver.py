"""Real git with the merge driver: it merges, records both sides of conflicts, or stops; no file is ever one-sided."""

import hashlib
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

import onnxjson
from onnxjson.git import driver_lines
from onnxjson.git.merge_driver import main
from onnxjson.git.repository import open_revision
from onnxjson.git.unmerged_models import unmerged
from onnxjson.merging.resolving import resolve
from onnxjson.model.conflicts import ConflictError
from onnxjson.model.document import Model
from onnxjson.model.errors import DecodeError
from onnxjson.storage import files
from tests.cli.running import run
from tests.git.conftest import Repository
from tests.merging.models import BASE, Change, attribute, both, metadata, renamed

OURS = both(metadata("ours", "1"), attribute(1, "alpha", 0.2))
THEIRS = both(metadata("theirs", "1"), renamed("b", "other"))
RIVAL = attribute(1, "alpha", 0.3)

NAMES = ("m.onnx", "m.onnx.json")

RECURSIVE = driver_lines.settings_for(sys.executable)["merge.onnx.recursive"]


def stored(model: Model, folder: Path, name: str) -> bytes:
    """A model as a file of some name holds it."""
    place = folder / f"made-{name}"
    onnxjson.save(model, place)
    content = place.read_bytes()
    place.unlink()
    return content


class Merging(Repository):
    """A repository with a base on main, and a branch ``topic`` with theirs."""

    def __init__(self, top: Path, name: str, ours: Change = OURS, theirs: Change = THEIRS) -> None:
        super().__init__(top)
        self.name = name
        self.use_driver(driver_lines.settings_for(sys.executable)["merge.onnx.driver"])
        self.commit("base", **{name: self.bytes_of(BASE), ".gitattributes": b"*.onnx* merge=onnx\n"})
        self.git("checkout", "-q", "-b", "topic")
        self.commit("theirs", **{name: self.bytes_of(theirs(BASE))})
        self.git("checkout", "-q", "main")
        self.commit("ours", **{name: self.bytes_of(ours(BASE))})

    def bytes_of(self, model: Model) -> bytes:
        """A model as the file has it."""
        return stored(model, self.top.parent, self.name)

    def use_driver(self, line: str) -> None:
        """Let git start a driver by a line."""
        self.git("config", "merge.onnx.driver", line)
        self.git("config", "merge.onnx.recursive", RECURSIVE)

    def run(self, *arguments: str) -> int:
        """The exit code of a command that may fail."""
        result = subprocess.run(["git", *arguments], cwd=self.top, capture_output=True, timeout=60, check=False)
        return result.returncode

    @property
    def path(self) -> Path:
        """The file."""
        return self.top / self.name


def drive(places: list[Path]) -> int:
    """The exit code of the driver alone; the second file takes the result."""
    return main([*map(str, places), "7", "m.onnx", str(places[1])])


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """A binary or a text."""
    return str(request.param)


def has_both(model: Model) -> bool:
    """Whether a model has what ours and theirs did."""
    assert model.graph is not None
    node = model.graph.node[1]
    keys = {entry.key for entry in model.metadata_props}
    changed = OURS(BASE).graph
    assert changed is not None
    return keys == {"ours", "theirs"} and node.output == ("other",) and node.attribute == changed.node[1].attribute


def test_merge_has_both_changes(tmp_path: Path, name: str) -> None:
    repository = Merging(tmp_path / "r", name)
    repository.git("merge", "-q", "topic")
    assert has_both(onnxjson.load(repository.path))
    assert files.load(repository.path).format == files.format_for(name)
    assert repository.git("status", "--porcelain") == ""


@pytest.mark.parametrize("command", ["rebase", "cherry-pick", "stash"])
def test_other_ways_to_merge_have_both_changes(tmp_path: Path, command: str) -> None:
    repository = Merging(tmp_path / "r", "m.onnx")
    if command == "rebase":
        repository.git("rebase", "-q", "topic")
    elif command == "cherry-pick":
        repository.git("cherry-pick", "topic")
    else:
        repository.git("checkout", "-q", "HEAD~1")
        repository.write("m.onnx", repository.bytes_of(OURS(BASE)))
        repository.git("stash", "-q")
        repository.git("checkout", "-q", "topic")
        repository.git("stash", "pop", "-q")
    assert has_both(onnxjson.load(repository.path))


def test_revert_takes_one_change_back(tmp_path: Path) -> None:
    repository = Merging(tmp_path / "r", "m.onnx")
    repository.git("merge", "-q", "topic")
    repository.git("revert", "--no-edit", "topic")
    assert onnxjson.load(repository.path) == OURS(BASE)


def test_merge_tree_leaves_the_work_tree_alone(tmp_path: Path) -> None:
    repository = Merging(tmp_path / "r", "m.onnx")
    before = {path.name: path.read_bytes() for path in repository.top.iterdir() if path.is_file()}
    tree = repository.git("merge-tree", "--write-tree", "main", "topic").splitlines()[0]
    after = {path.name: path.read_bytes() for path in repository.top.iterdir() if path.is_file()}
    assert after == before
    repository.git("restore", "--source", tree, "m.onnx")
    assert has_both(onnxjson.load(repository.path))


def test_conflict_has_both_sides_in_the_file(tmp_path: Path, name: str) -> None:
    repository = Merging(tmp_path / "r", name, theirs=RIVAL)
    assert repository.run("merge", "topic") == 1
    assert repository.git("status", "--porcelain") == f"UU {name}"
    with pytest.raises(ConflictError):
        onnxjson.load(repository.path)
    repository.git("add", name)
    repository.git("commit", "-q", "-m", "with conflicts")
    loaded = files.load(repository.path, conflicted=True)
    assert [conflict.at for conflict in loaded.conflicts] == ["/graph/node/1/attribute/alpha"]
    assert resolve(loaded.model, loaded.conflicts, "ours")[0] == OURS(BASE)
    taken, _ = resolve(loaded.model, loaded.conflicts, "theirs")
    assert taken.graph == RIVAL(BASE).graph


def test_whole_sides_of_a_conflict_are_where_git_keeps_them(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = both(OURS, metadata("mine", "1"))
    theirs = both(RIVAL, metadata("its", "1"))
    repository = Merging(tmp_path / "r", name, ours=ours, theirs=theirs)
    monkeypatch.chdir(repository.top)
    sides = {":1": BASE, ":2": ours(BASE), ":3": theirs(BASE)}
    repository.run("merge", "topic")
    conflicted = repository.path.read_bytes()
    for stage, model in sides.items():
        with open_revision(f"{stage}:{name}") as found:
            assert found.path.read_bytes() == repository.bytes_of(model)
    assert run("merge", *[f"{stage}:{name}" for stage in sides], "-o", name).exit_code == 16
    assert repository.path.read_bytes() == conflicted
    for side, model in (("--ours", ours(BASE)), ("--theirs", theirs(BASE))):
        repository.git("checkout", side, name)
        assert onnxjson.load(repository.path) == model
        repository.git("checkout", "-m", name)
        assert repository.path.read_bytes() == conflicted
    repository.commit("with conflicts")
    with open_revision(f"HEAD^2:{name}") as found:
        assert found.loaded.model == theirs(BASE)


def test_conflicts_of_the_repository_are_found_from_a_subfolder(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Merging(tmp_path / "r", name, theirs=RIVAL)
    folder = repository.write("sub/other.txt", b"").parent
    monkeypatch.chdir(folder)
    assert unmerged(Path()).models == []
    repository.run("merge", "topic")
    assert unmerged(Path()).models == [Path("..", name)]
    repository.git("add", name)
    assert unmerged(Path()).models == [Path("..", name)]
    assert run("resolve", Path("..", name), "--ours").exit_code == 0
    assert unmerged(Path()).models == []


def test_model_added_on_both_sides_is_a_conflict_of_all(tmp_path: Path, name: str) -> None:
    repository = Merging(tmp_path / "r", name)
    other = "n" + name[1:]
    repository.commit("mine", **{other: stored(OURS(BASE), tmp_path, other)})
    repository.git("checkout", "-q", "topic")
    repository.commit("its", **{other: stored(RIVAL(BASE), tmp_path, other)})
    assert repository.run("merge", "main") == 1
    (conflict,) = files.load(repository.top / other, conflicted=True).conflicts
    assert (conflict.base, conflict.ours, conflict.theirs) == (None, RIVAL(BASE), OURS(BASE))


def test_deleted_on_one_side_stops_git_with_the_other_at_hand(tmp_path: Path) -> None:
    repository = Merging(tmp_path / "r", "m.onnx")
    repository.git("rm", "-q", "m.onnx")
    repository.git("commit", "-q", "-m", "gone")
    assert repository.run("merge", "topic") == 1
    assert repository.git("ls-files", "-u") != ""
    assert onnxjson.load(repository.path) == THEIRS(BASE)


def test_criss_cross_merges(tmp_path: Path) -> None:
    repository = Merging(tmp_path / "r", "m.onnx")
    first, second = repository.git("rev-parse", "main"), repository.git("rev-parse", "topic")
    repository.git("merge", "-q", "-m", "one", second)
    repository.git("checkout", "-q", "topic")
    repository.git("merge", "-q", "-m", "other", first)
    more = repository.path
    onnxjson.save(metadata("late", "1")(onnxjson.load(more)), more)
    repository.commit("late")
    assert repository.run("merge", "main") == 0
    assert {entry.key for entry in onnxjson.load(more).metadata_props} == {"ours", "theirs", "late"}


def test_file_that_was_renamed_on_one_side_merges(tmp_path: Path) -> None:
    repository = Merging(tmp_path / "r", "m.onnx.json")
    repository.git("mv", "m.onnx.json", "moved.onnx.json")
    repository.git("commit", "-q", "-m", "moved")
    repository.git("merge", "-q", "topic")
    assert has_both(onnxjson.load(repository.top / "moved.onnx.json"))


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\x0a"], ids=["empty", "text", "cut"])
def test_side_that_is_no_model_stops_git(tmp_path: Path, content: bytes) -> None:
    repository = Merging(tmp_path / "r", "m.onnx")
    repository.git("checkout", "-q", "topic")
    repository.commit("broken", **{"m.onnx": content})
    repository.git("checkout", "-q", "main")
    assert repository.run("merge", "topic") not in (0, 1)


@pytest.mark.parametrize("content", [b"{", b"\x08\x0a"], ids=["text", "cut"])
def test_side_that_is_no_model_is_called_as_the_user_calls_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    places = [tmp_path / f".merge_file_{side}" for side in range(3)]
    for place in places:
        place.write_bytes(stored(BASE if place != places[1] else OURS(BASE), tmp_path, "m.onnx"))
    places[2].write_bytes(content)
    assert main([*map(str, places), "7", "m.onnx", str(places[1])]) == DecodeError.exit_code
    said = capsys.readouterr().err
    assert said.startswith("onnxjson: m.onnx is not merged: theirs cannot be merged: m.onnx")
    assert ".merge_file" not in said


@pytest.mark.parametrize(("error", "code"), [(OSError, 74), (KeyError, 70), (AssertionError, 70)])
def test_text_of_any_error_is_made_visible(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: type[Exception],
    code: int,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error("\x1b]0;a name\x07\u202e")

    monkeypatch.setattr("onnxjson.git.merge_driver._merge", fail)
    assert main([*map(str, [tmp_path] * 3), "7", "m\x1b.onnx", str(tmp_path)]) == code
    said = capsys.readouterr().err
    assert said.startswith("onnxjson: m\\u{1b}.onnx is not merged: ")
    assert "]0;a name" in said
    assert said.rstrip("\n").isprintable()
    assert "\u202e" not in said


def test_side_with_conflicts_is_not_merged(tmp_path: Path) -> None:
    repository = Merging(tmp_path / "r", "m.onnx", theirs=RIVAL)
    repository.run("merge", "topic")
    content = repository.path.read_bytes()
    places = [tmp_path / each for each in ("o", "a", "b")]
    contents = (repository.bytes_of(BASE), content, repository.bytes_of(THEIRS(BASE)))
    for place, each in zip(places, contents, strict=True):
        place.write_bytes(each)
    assert drive(places) == 65
    assert places[1].read_bytes() == content


def _pointer(content: bytes) -> bytes:
    sha256 = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(content)}\n".encode()


def _into_store(top: Path, content: bytes) -> bytes:
    sha256 = hashlib.sha256(content).hexdigest()
    place = top / ".git" / "lfs" / "objects" / sha256[:2] / sha256[2:4] / sha256
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return _pointer(content)


def test_pointers_of_lfs_merge_to_a_pointer(repository: Repository, tmp_path: Path) -> None:
    contents = [stored(change(BASE), tmp_path, "m.onnx") for change in (both(), OURS, THEIRS)]
    places = []
    for number, content in enumerate(contents):
        places.append(repository.write(f"side{number}", _into_store(repository.top, content)))
    assert drive(places) == 0
    written = places[1].read_bytes()
    sha256 = written.split(b"sha256:")[1][:64].decode()
    merged = repository.top / ".git" / "lfs" / "objects" / sha256[:2] / sha256[2:4] / sha256
    assert written == _pointer(merged.read_bytes())
    assert has_both(onnxjson.load(merged))


def test_conflict_of_pointers_is_a_pointer_to_both_sides(repository: Repository, tmp_path: Path) -> None:
    contents = [stored(change(BASE), tmp_path, "m.onnx") for change in (both(), OURS, RIVAL)]
    places = [
        repository.write(f"side{number}", _into_store(repository.top, each)) for number, each in enumerate(contents)
    ]
    assert drive(places) == 16
    sha256 = places[1].read_bytes().split(b"sha256:")[1][:64].decode()
    merged = repository.top / ".git" / "lfs" / "objects" / sha256[:2] / sha256[2:4] / sha256
    assert len(files.load(merged, conflicted=True).conflicts) == 1


@pytest.mark.parametrize("pointers", list(product((False, True), repeat=3)))
@pytest.mark.parametrize("base_is", [None, "ours", "theirs"])
def test_change_to_or_from_lfs_is_one_of_the_changes(
    repository: Repository, tmp_path: Path, pointers: tuple[bool, bool, bool], base_is: str | None
) -> None:
    base, ours, theirs = [stored(change(BASE), tmp_path, "m.onnx") for change in (both(), OURS, THEIRS)]
    base = {"ours": ours, "theirs": theirs}.get(base_is or "", base)
    places = [
        repository.write(f"side{number}", _into_store(repository.top, each) if is_pointer else each)
        for number, (each, is_pointer) in enumerate(zip((base, ours, theirs), pointers, strict=True))
    ]
    assert drive(places) == 0
    written = places[1].read_bytes()
    is_pointer = written.startswith(b"version https://git-lfs")
    assert is_pointer == (pointers[2] if pointers[1] == pointers[0] else pointers[1])
    if is_pointer:
        sha256 = written.split(b"sha256:")[1][:64].decode()
        written = (repository.top / ".git" / "lfs" / "objects" / sha256[:2] / sha256[2:4] / sha256).read_bytes()
    if base_is is None:
        merged = repository.write("merged.onnx", written)
        assert has_both(onnxjson.load(merged))
    else:
        assert written == {"ours": theirs, "theirs": ours}[base_is]


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_weights_that_are_not_fetched_stop_git(
    repository: Repository, tmp_path: Path, missing: int, capsys: pytest.CaptureFixture[str]
) -> None:
    contents = [stored(change(BASE), tmp_path, "m.onnx") for change in (both(), OURS, THEIRS)]
    pointers = [
        _pointer(content) if number == missing else _into_store(repository.top, content)
        for number, content in enumerate(contents)
    ]
    places = [repository.write(f"side{number}", pointer) for number, pointer in enumerate(pointers)]
    assert drive(places) == 66
    assert places[1].read_bytes() == pointers[1]
    assert "not fetched" in capsys.readouterr().err


def test_pointer_that_one_side_left_alone_needs_no_weights(repository: Repository, tmp_path: Path) -> None:
    base, theirs = [_pointer(stored(change(BASE), tmp_path, "m.onnx")) for change in (both(), THEIRS)]
    places = [repository.write(f"side{number}", each) for number, each in enumerate((base, base, theirs))]
    assert drive(places) == 0
    assert places[1].read_bytes() == theirs
