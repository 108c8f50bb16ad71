import hashlib
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxjson
from onnxjson import Graph, Model, Node, OnnxJsonError, ValueInfo
from onnxjson.git.repository import is_revision_spec, open_revision
from onnxjson.model.errors import DecodeError, FileError, MissingInputError, UntrustedError
from onnxjson.model.payloads import Digest
from onnxjson.model.tensors import from_numpy, to_numpy
from onnxjson.storage.external_files import externalize, internalize

BIG = np.arange(3000, dtype=np.float32)


def model(producer: str = "one", *, weight: bool = True) -> Model:
    node = Node(op_type="Add", input=("x", "w"), output=("y",))
    initializers = (from_numpy(BIG, "w"),) if weight else ()
    graph = Graph(
        name="g", node=(node,), initializer=initializers, input=(ValueInfo(name="x"),), output=(ValueInfo(name="y"),)
    )
    return Model(ir_version=8, producer_name=producer, graph=graph)


def binary(producer: str = "one") -> bytes:
    data: bytes = onnxjson.to_proto(model(producer)).SerializeToString()
    return data


def producer(spec: str) -> str | None:
    with open_revision(spec) as checkout:
        assert checkout.problems == ()
        return checkout.loaded.model.producer_name


def refusal(spec: str, kind: type[OnnxJsonError] = MissingInputError) -> str:
    with pytest.raises(kind) as caught, open_revision(spec):
        pass
    assert "onnxjson-" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HEAD:m.onnx", True), ("HEAD~1:a/b c.onnx", True), (":m.onnx", True), (":0:m.onnx", True),
        (":3:m.onnx", True), ("HEAD^{/fix: it}:m.onnx", True), ("m.onnx", False), ("HEAD:", False), (":/fix", False),
        ("https://example.org/m.onnx", False), ("HEAD:/etc/passwd", False), ("", False), (":", False),
    ],
)  # fmt: skip
def test_spec_is_told_by_its_form(text: str, expected: bool) -> None:
    assert is_revision_spec(text) is expected


def test_file_of_that_very_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "HEAD:m.onnx").write_bytes(b"")
    (tmp_path / "HEAD:link.onnx").symlink_to("nowhere")
    assert not is_revision_spec("HEAD:m.onnx")
    assert not is_revision_spec("HEAD:link.onnx")
    assert is_revision_spec("HEAD:other.onnx")


def test_every_revision_has_its_model(repository: Any) -> None:
    first = repository.commit("one", **{"m.onnx": binary("one")})
    repository.git("tag", "-a", "v1", "-m", "tagged")
    repository.commit("fix: two", **{"m.onnx": binary("two")})
    repository.git("branch", "feature/x")
    repository.write("m.onnx", binary("staged"))
    repository.git("add", "m.onnx")
    repository.write("m.onnx", binary("on disk"))
    one = [first, first[:8], "HEAD~1", "HEAD^", "v1", "v1^{commit}", "v1^{tree}", "main@{1}"]
    assert [producer(f"{revision}:m.onnx") for revision in one] == ["one"] * len(one)
    two = ["HEAD", "@", "main", "feature/x", "HEAD^{/fix: two}", "main^{}"]
    assert [producer(f"{revision}:m.onnx") for revision in two] == ["two"] * len(two)
    assert producer(":m.onnx") == producer(":0:m.onnx") == "staged"


@pytest.mark.parametrize(
    "name",
    [
        "with space.onnx", "a:b.onnx", "HEAD:m.onnx", "modèle-模型.onnx", "two\nlines.onnx", "-dash.onnx", "--output=x",
        "*.onnx", "[a].onnx", "back\\slash.onnx", 'quo"te.onnx', "deep/er/folder/m.onnx", "-d/-m.onnx",
        "tab\there.onnx", "not-utf8-\udcff.onnx", "{a}:m.onnx",
    ],
)  # fmt: skip
def test_every_file_name_is_found(repository: Any, name: str) -> None:
    repository.commit("one", **{name: binary(), "x.onnx": binary("other"), "a.onnx": binary("other")})
    assert producer(f"HEAD:{name}") == "one"
    assert producer(f":{name}") == "one"
    assert producer(f"HEAD:./{name}") == "one"


def test_relative_paths_begin_in_the_current_folder(repository: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit("one", **{"a b/m.onnx": binary("inner"), "m.onnx": binary("outer")})
    monkeypatch.chdir(repository.top / "a b")
    assert producer("HEAD:./m.onnx") == "inner"
    assert producer("HEAD:m.onnx") == "outer"
    assert producer("HEAD:../m.onnx") == "outer"
    assert producer(":./m.onnx") == "inner"
    assert producer(":m.onnx") == "outer"
    assert "outside the repository" in refusal("HEAD:../../m.onnx")


def test_worktrees_bare_repositories_and_hooks_are_repositories(
    repository: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("one", **{"d/m.onnx": binary()})
    repository.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side tree"))
    monkeypatch.chdir(tmp_path / "side tree" / "d")
    assert producer("side:d/m.onnx") == producer(":./m.onnx") == "one"
    repository.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    monkeypatch.chdir(tmp_path / "bare.git")
    assert producer("HEAD:d/m.onnx") == "one"
    assert "is not staged" in refusal(":d/m.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_DIR", str(repository.top / ".git"))
    assert producer("HEAD:d/m.onnx") == "one"


def test_sides_of_a_merge_are_the_stages_of_the_index(repository: Any) -> None:
    repository.commit("base", **{"m.onnx": binary("base"), "other.onnx": binary()})
    repository.git("checkout", "-q", "-b", "theirs")
    repository.commit("theirs", **{"m.onnx": binary("theirs")})
    repository.git("checkout", "-q", "main")
    repository.commit("ours", **{"m.onnx": binary("ours")})
    with pytest.raises(Exception, match="non-zero"):
        repository.git("merge", "-q", "theirs")
    assert [producer(f":{stage}:m.onnx") for stage in (1, 2, 3)] == ["base", "ours", "theirs"]
    assert "write :1:m.onnx or :2:m.onnx or :3:m.onnx" in refusal(":m.onnx")
    assert "write :0:other.onnx" in refusal(":1:other.onnx")


def test_big_payloads_stay_in_a_file_and_outlive_it(repository: Any) -> None:
    repository.commit("one", **{"m.onnx": binary()})
    with open_revision("HEAD:m.onnx") as checkout:
        folder = checkout.path.parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert checkout.loaded.model.graph
        tensor = checkout.loaded.model.graph.initializer[0]
        assert not isinstance(tensor.raw_data, bytes)
    assert not folder.exists()
    assert (to_numpy(tensor) == BIG).all()


def test_text_with_blobs_has_those_of_its_revision(repository: Any) -> None:
    place = repository.top / "sub" / "m.onnx.json"
    place.parent.mkdir()
    onnxjson.save(model(), place, weights="blobs")
    repository.commit("one")
    for blob in place.with_name("m.blobs").iterdir():
        blob.unlink()
    repository.commit("blobs lost")
    with open_revision("HEAD~1:sub/m.onnx.json") as checkout:
        assert checkout.problems == ()
        assert checkout.loaded.model.graph
        assert (to_numpy(checkout.loaded.model.graph.initializer[0]) == BIG).all()
    with open_revision("HEAD:sub/m.onnx.json") as checkout:
        (problem,) = checkout.problems
        assert "which HEAD:sub/m.onnx.json names, is not in that revision" in problem
        assert checkout.loaded.model.graph
        assert isinstance(checkout.loaded.model.graph.initializer[0].raw_data, Digest)


def test_external_data_is_that_of_the_revision(repository: Any) -> None:
    folder = repository.top / "sub"
    folder.mkdir()
    changed = externalize(model(), folder / "w é.bin").model
    onnxjson.save(changed, folder / "m.onnx")
    repository.commit("one")
    (folder / "w é.bin").write_bytes(b"\0" * 12000)
    with open_revision("HEAD:sub/m.onnx") as checkout:
        assert checkout.problems == ()
        whole = internalize(checkout.loaded.model, checkout.path.parent, model_file=checkout.path)
        assert whole.graph
        assert (to_numpy(whole.graph.initializer[0]) == BIG).all()
    assert (to_numpy(whole.graph.initializer[0]) == BIG).all()


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "link.bin", "folder", "m.onnx"])
def test_location_that_a_model_may_not_name_is_not_followed(repository: Any, location: str, tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(BIG.tobytes())
    graph = model().graph
    assert graph
    entry = onnxjson.StringStringEntry(key="location", value=location)
    tensor = onnxjson.Tensor(dims=(3000,), data_type=1, name="w", data_location=1, external_data=(entry,))
    hostile = Model(ir_version=8, graph=Graph(name="g", initializer=(tensor,)))
    repository.write("m.onnx", onnxjson.to_proto(hostile).SerializeToString())
    repository.write("secret.bin", BIG.tobytes())
    repository.write("folder/x", b"")
    (repository.top / "link.bin").symlink_to(tmp_path / "secret.bin")
    repository.commit("one")
    with open_revision("HEAD:m.onnx") as checkout:
        with pytest.raises((UntrustedError, MissingInputError)):
            internalize(checkout.loaded.model, checkout.path.parent, model_file=checkout.path)
        assert [path.name for path in checkout.path.parent.iterdir()] == ["m.onnx"]


def pointer(content: bytes) -> bytes:
    digest = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n".encode()


def store(git_folder: Path, content: bytes, *, stored: bytes | None = None) -> None:
    digest = hashlib.sha256(content).hexdigest()
    place = git_folder / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
    place.parent.mkdir(parents=True)
    place.write_bytes(content if stored is None else stored)


def test_lfs_pointer_is_read_from_the_local_store(
    repository: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("one", **{"m.onnx": pointer(binary())})
    assert "weights not fetched: git lfs pull" in refusal("HEAD:m.onnx")
    store(repository.top / ".git", binary())
    assert producer("HEAD:m.onnx") == "one"
    repository.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    monkeypatch.chdir(tmp_path / "side")
    assert producer("HEAD:m.onnx") == "one"


def test_lfs_store_may_be_elsewhere(repository: Any, tmp_path: Path) -> None:
    repository.commit("one", **{"m.onnx": pointer(binary())})
    store(tmp_path / "elsewhere", binary())
    repository.git("config", "lfs.storage", str(tmp_path / "elsewhere" / "lfs"))
    assert producer("HEAD:m.onnx") == "one"


def test_damaged_lfs_object_is_not_believed(repository: Any) -> None:
    repository.commit("one", **{"m.onnx": pointer(binary())})
    store(repository.top / ".git", binary(), stored=binary()[:-1] + b"\0")
    assert "git lfs fsck" in refusal("HEAD:m.onnx")


def test_lfs_pointer_of_external_data_is_a_problem_and_no_failure(repository: Any) -> None:
    changed = externalize(model(), repository.top / "w.bin").model
    onnxjson.save(changed, repository.top / "m.onnx")
    content = (repository.top / "w.bin").read_bytes()
    repository.commit("one", **{"w.bin": pointer(content)})
    with open_revision("HEAD:m.onnx") as checkout:
        assert len(checkout.problems) == 1
        assert checkout.problems[0].startswith("w.bin, which HEAD:m.onnx names, is a Git LFS pointer")
        assert not (checkout.path.parent / "w.bin").exists()
    store(repository.top / ".git", content)
    with open_revision("HEAD:m.onnx") as checkout:
        assert checkout.problems == ()
        assert (checkout.path.parent / "w.bin").read_bytes() == content


def test_link_within_the_repository_is_followed(repository: Any, tmp_path: Path) -> None:
    repository.write("models/m.onnx", binary())
    (repository.top / "latest.onnx").symlink_to("models/m.onnx")
    (repository.top / "out.onnx").symlink_to("../m.onnx")
    (repository.top / "absolute.onnx").symlink_to(tmp_path / "m.onnx")
    (repository.top / "loop.onnx").symlink_to("loop.onnx")
    (tmp_path / "m.onnx").write_bytes(binary("secret"))
    repository.commit("one")
    assert producer("HEAD:latest.onnx") == "one"
    assert "leads out of the repository" in refusal("HEAD:out.onnx", UntrustedError)
    assert "leads out of the repository" in refusal("HEAD:absolute.onnx", UntrustedError)
    assert "loop of symbolic links" in refusal("HEAD:loop.onnx", UntrustedError)


def test_missing_things_are_named_with_what_is_near(repository: Any) -> None:
    repository.commit("one", **{"old.onnx": binary(), "sub/inner.onnx": binary("inner")})
    repository.git("mv", "old.onnx", "new.onnx")
    repository.commit("renamed")
    repository.write("fresh-file.onnx", binary())
    assert '"mian" is not a revision' in refusal("mian:new.onnx")
    assert 'did you mean "main"?' in refusal("mian:new.onnx")
    assert 'did you mean "new.onnx"?' in refusal("HEAD:nwe.onnx")
    assert 'did you mean "sub/inner.onnx"?' in refusal("HEAD:inner.onnx")
    assert "is a folder" in refusal("HEAD:sub")
    assert "range of revisions" in refusal("HEAD~1..HEAD:new.onnx")
    assert "it is on the disk" in refusal("HEAD:fresh-file.onnx")
    assert "is not staged" in refusal(":fresh-file.onnx")
    assert "not a revision" in refusal("--help:new.onnx")
    assert '"HEAD\\u{1b}[31m" is not a revision' in refusal("HEAD\x1b[31m:new.onnx")


def test_paths_from_a_subfolder_are_put_right(repository: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit("one", **{"sub/inner.onnx": binary()})
    monkeypatch.chdir(repository.top / "sub")
    assert 'write "./inner.onnx"' in refusal("HEAD:inner.onnx")


def test_folder_outside_of_any_repository_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = refusal("HEAD:m.onnx")
    assert "HEAD:m.onnx does not exist" in text
    assert "is not in a git repository" in text


def test_repository_without_a_commit_has_an_index(repository: Any) -> None:
    repository.write("m.onnx", binary())
    repository.git("add", "m.onnx")
    assert producer(":m.onnx") == "one"
    for revision in ("HEAD", "HEAD~1"):
        assert refusal(f"{revision}:m.onnx") == f"{revision}:m.onnx does not exist: the branch has no commit yet"


def test_missing_git_is_said(repository: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git is not installed" in refusal("HEAD:m.onnx")


def test_git_of_the_current_folder_is_not_started(repository: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit("one", **{"m.onnx": binary()})
    trap = repository.write("git", b"#!/bin/sh\ntouch ran\n")
    trap.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", os.environ["PATH"]]))
    assert producer("HEAD:m.onnx") == "one"
    assert not (repository.top / "ran").exists()


def test_folder_of_somebody_else_is_explained(repository: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit("one", **{"m.onnx": binary()})
    # Only git's own tests set this; it is kept from git by us, so set where git is started.
    from onnxjson.git import commands

    monkeypatch.setitem(commands._SET, "GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    text = refusal("HEAD:m.onnx", UntrustedError)
    assert f"git config --global --add safe.directory {repository.top}" in text


def test_damaged_object_is_an_error_of_the_file(repository: Any) -> None:
    repository.commit("one", **{"m.onnx": binary()})
    name = repository.git("rev-parse", "HEAD:m.onnx")
    place = repository.top / ".git" / "objects" / name[:2] / name[2:]
    place.chmod(0o644)
    place.write_bytes(place.read_bytes()[:20])
    assert "git fsck" in refusal("HEAD:m.onnx", FileError)


def test_what_is_no_model_is_called_by_its_name_in_the_revision(repository: Any) -> None:
    repository.commit(
        "one", **{"m.onnx": b"\x08\x08\x3a\xff", "d/m.onnx.json": b'{"format": "onnxjson/1", "grph": {}}'}
    )
    assert refusal("HEAD:m.onnx", DecodeError).startswith("HEAD:m.onnx is not an ONNX model")
    with pytest.raises(DecodeError) as caught, open_revision("HEAD:d/m.onnx.json"):
        pass
    assert [finding.file for finding in caught.value.findings] == ["HEAD:d/m.onnx.json"]
    assert "onnxjson-" not in str(caught.value)


def test_repository_with_sha256_names_is_read(tmp_path: Path, repository: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.git("init", "-q", "-b", "main", "--object-format=sha256", str(tmp_path / "long"))
    monkeypatch.chdir(tmp_path / "long")
    repository.top = tmp_path / "long"
    repository.commit("one", **{"m.onnx": binary()})
    assert producer("HEAD:m.onnx") == "one"


def _broken_files(folder: Path) -> None:
    """Write models with which reading, checking or running fails, each in another way."""
    (folder / "wire.onnx").write_bytes(binary()[:-7])
    (folder / "text.onnx.json").write_text('{"onnxjson": 1, "graph": {"name": "g", "node": [')
    for name in ("short", "away"):
        onnxjson.save(externalize(model(), folder / f"{name}.bin").model, folder / f"{name}.onnx")
    (folder / "short.bin").write_bytes(b"1234")
    (folder / "away.bin").unlink()
    onnxjson.save(model(weight=False), folder / "good.onnx")


@pytest.mark.parametrize("name", ["wire.onnx", "text.onnx.json", "short.onnx", "away.onnx"])
@pytest.mark.parametrize("words", [["show"], ["check"], ["diff", "HEAD:good.onnx"], ["verify", "HEAD:good.onnx"]])
def test_no_message_names_the_temporary_file(
    repository: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: list[str]
) -> None:
    _broken_files(repository.top)
    repository.commit("one")
    temporary = tmp_path / "of-the-system"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    spec = f"HEAD:{name}"
    words = [words[0], spec, *words[1:]]
    result = subprocess.run(
        [sys.executable, "-m", "onnxjson", *words], cwd=repository.top, capture_output=True, text=True, check=False
    )
    assert "of-the-system" not in result.stdout + result.stderr


def test_where_only_files_are_read_a_revision_leads_to_one(repository: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository.top / "good.onnx").write_bytes(binary())
    repository.commit("one")
    monkeypatch.chdir(repository.top)
    program = [sys.executable, "-m", "onnxjson", "convert"]
    refused = subprocess.run([*program, "HEAD:good.onnx", "-o", "a.json"], capture_output=True, text=True, check=False)
    (remedy,) = re.findall("(git show .*)", refused.stderr)
    subprocess.run(remedy, shell=True, check=True)
    subprocess.run([*program, "old.onnx", "-o", "a.onnx.json"], check=True, capture_output=True)
