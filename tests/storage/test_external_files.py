"""Tensors taken out of a model into a file beside it, back in, and along to another folder."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy
import onnx
import pytest

import onnxjson
from onnxjson import example
from onnxjson.model.document import (
    Attribute,
    Function,
    Graph,
    Model,
    Node,
    Segment,
    SparseTensor,
    StringStringEntry,
    Tensor,
    TrainingInfo,
)
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.errors import (
    ChangedUnderneathError,
    DecodeError,
    FileError,
    MissingInputError,
    OutputError,
    UntrustedError,
)
from onnxjson.model.messages import FIELDS
from onnxjson.model.payloads import SourceFile
from onnxjson.model.tensors import from_numpy, numpy_dtype, to_numpy
from onnxjson.model.walking import replace_records, tensors_of, walk
from onnxjson.storage import external_files, files, named_files, saving
from onnxjson.storage.external_files import Externalized, copy_files, externalize, internalize, removed_on_failure
from onnxjson.storage.named_files import locations
from onnxjson.storage.safetensors import CODES
from tests.generation.messages import generate, size_of

FLOAT, INT64, STRING, INT4 = 1, 7, 8, 22


def raw(name: str, count: int = 500, **fields: Any) -> Tensor:
    """A float tensor whose bytes depend on its name."""
    data = (name.encode() * (count * 4))[: count * 4]
    return Tensor(dims=(count,), data_type=FLOAT, name=name, raw_data=data, **fields)


def model_of(*tensors: Tensor) -> Model:
    return Model(ir_version=8, graph=Graph(initializer=tensors))


def in_every_position() -> Model:
    names = iter(range(100))

    def tensor() -> Tensor:
        return raw(f"t{next(names)}.")

    def sparse() -> SparseTensor:
        return SparseTensor(values=tensor(), indices=tensor())

    def graph(*nodes: Node) -> Graph:
        return Graph(node=nodes, initializer=(tensor(),), sparse_initializer=(sparse(),))

    def attributes() -> tuple[Attribute, ...]:
        return (
            Attribute(t=tensor()),
            Attribute(tensors=(tensor(), tensor())),
            Attribute(sparse_tensor=sparse()),
            Attribute(sparse_tensors=(sparse(),)),
        )

    inner = Attribute(g=graph(Node(attribute=attributes())))
    several = Attribute(graphs=(graph(), graph()))
    return Model(
        graph=graph(Node(attribute=(inner, several))),
        functions=(Function(node=(Node(attribute=attributes()),), attribute_proto=attributes()),),
        training_info=(TrainingInfo(initialization=graph(), algorithm=graph()),),
    )


def entries(**pairs: str) -> tuple[StringStringEntry, ...]:
    return tuple(StringStringEntry(key=key, value=value) for key, value in pairs.items())


def elsewhere(name: str, location: str, count: int = 10, **pairs: str) -> Tensor:
    pairs = {"location": location, **pairs}
    return Tensor(dims=(count,), data_type=FLOAT, name=name, external_data=entries(**pairs), data_location=1)


def ranges(model: Model) -> dict[str, tuple[str, int, int]]:
    found = {}
    for tensor in tensors_of(model):
        if tensor.external_data:
            pairs = {entry.key: entry.value or "" for entry in tensor.external_data}
            found[tensor.name or ""] = (pairs["location"], int(pairs["offset"]), int(pairs["length"]))
    return found


def test_tensors_of_all_positions_go_to_one_aligned_file_and_come_back_identical(tmp_path: Path) -> None:
    model = in_every_position()
    holders = {(type(each), field.name) for each, field in _holding_fields(model)}
    assert holders == {
        (kind, field.name) for kind, fields in FIELDS.items() for field in fields if field.message is Tensor
    }
    result = externalize(model, tmp_path / "w.data")
    tensors = list(tensors_of(model))
    assert (result.moved, result.left) == (len(tensors), 0)
    assert [path.name for path in tmp_path.iterdir()] == ["w.data"]
    assert all(tensor.raw_data is None and tensor.data_location == 1 for tensor in tensors_of(result.model))
    content = (tmp_path / "w.data").read_bytes()
    stored = ranges(result.model)
    for tensor in tensors:
        location, offset, length = stored[tensor.name or ""]
        assert location == "w.data"
        assert offset % 4096 == 0
        assert content[offset : offset + length] == tensor.raw_data
    assert len({offset for _, offset, _ in stored.values()}) == len(tensors)
    assert internalize(result.model, tmp_path) == model


def _holding_fields(model: Model) -> list[tuple[Any, Any]]:
    return [
        (record, field)
        for kind, fields in FIELDS.items()
        for field in fields
        if field.message is Tensor
        for record in walk(model, kind)
        if getattr(record, field.name)
    ]


def test_the_model_and_its_data_file_are_what_onnx_reads(tmp_path: Path) -> None:
    weights = numpy.arange(1000, dtype=numpy.float32)
    initializer = onnx.numpy_helper.from_array(weights, "w")
    output = onnx.helper.make_tensor_value_info("y", FLOAT, [1000])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["w"], ["y"])], "g", [], [output], [initializer])
    proto = onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)])
    onnxjson.save(externalize(onnxjson.from_proto(proto), tmp_path / "m.data").model, tmp_path / "m.onnx")
    assert onnx.numpy_helper.to_array(onnx.load(tmp_path / "m.onnx").graph.initializer[0]).tolist() == weights.tolist()
    onnx.checker.check_model(tmp_path / "m.onnx", full_check=True)
    before = onnxjson.from_proto(proto)
    onnx.save(proto, tmp_path / "theirs.onnx", save_as_external_data=True, location="theirs.bin")
    theirs = onnxjson.load(tmp_path / "theirs.onnx")
    assert internalize(theirs, tmp_path) == before


@pytest.mark.parametrize("chunk", range(4))
def test_generated_messages_come_back_message_identical(tmp_path: Path, chunk: int) -> None:
    moved = 0
    for seed in range(chunk * 50, chunk * 50 + 50):
        model = _inside(onnxjson.from_proto(onnx.ModelProto.FromString(generate(seed, size_of(seed)))))
        result = externalize(model, tmp_path / f"{seed}.data", threshold=1)
        moved += result.moved
        assert internalize(result.model, tmp_path) == model, seed
        assert (tmp_path / f"{seed}.data").exists() == bool(result.moved)
    assert moved


def _inside(model: Model) -> Model:
    """The message without tensors in files that do not exist, and no mention of the default place."""
    return replace_records(
        model,
        Tensor,
        lambda tensor: (
            msgspec.structs.replace(tensor, data_location=None) if tensor.data_location is not None else tensor
        ),
    )


def test_threshold_is_the_smallest_tensor_that_moves(tmp_path: Path) -> None:
    model = model_of(raw("small", 255), raw("exact", 256), raw("big", 257))
    assert set(ranges(externalize(model, tmp_path / "a").model)) == {"exact", "big"}
    assert set(ranges(externalize(model, tmp_path / "b", threshold=1028).model)) == {"big"}
    assert set(ranges(externalize(model, tmp_path / "c", threshold=0).model)) == {"small", "exact", "big"}


def test_where_no_tensor_moves_there_is_no_file_and_the_model_is_the_same_one(tmp_path: Path) -> None:
    model = model_of(raw("small", 10), Tensor(dims=(0,), data_type=FLOAT, name="empty", raw_data=b""))
    result = externalize(model, tmp_path / "w.data", threshold=100)
    assert result == Externalized(model, 0, 0, ())
    assert result.model is model
    assert set(ranges(externalize(model, tmp_path / "w.data", threshold=0).model)) == {"small"}


KEPT = {
    "float_data": Tensor(dims=(500,), data_type=FLOAT, float_data=bytes(2000)),
    "int64_data": Tensor(dims=(2000,), data_type=INT64, int64_data=bytes(2000)),
    "wrong length": Tensor(dims=(9,), data_type=FLOAT, raw_data=bytes(2000)),
    "negative dim": Tensor(dims=(-1,), data_type=FLOAT, raw_data=bytes(2000)),
    "too many elements": Tensor(dims=(1 << 62,) * 400, data_type=FLOAT, raw_data=bytes(2000)),
    "no dtype": Tensor(dims=(500,), raw_data=bytes(2000)),
    "unknown dtype": Tensor(dims=(500,), data_type=99, raw_data=bytes(2000)),
    "raw strings": Tensor(dims=(500,), data_type=STRING, raw_data=bytes(2000)),
    "segment": Tensor(dims=(500,), data_type=FLOAT, raw_data=bytes(2000), segment=Segment(begin=0)),
    "two payloads": Tensor(dims=(500,), data_type=FLOAT, raw_data=bytes(2000), float_data=bytes(4)),
    "stray pairs": Tensor(dims=(500,), data_type=FLOAT, raw_data=bytes(2000), external_data=entries(checksum="0")),
    "unknown place": Tensor(dims=(500,), data_type=FLOAT, raw_data=bytes(2000), data_location=7),
}


@pytest.mark.parametrize("tensor", KEPT.values(), ids=KEPT)
def test_a_tensor_that_would_not_come_back_as_it_is_stays_and_is_counted(tmp_path: Path, tensor: Tensor) -> None:
    model = model_of(tensor)
    assert externalize(model, tmp_path / "w.data") == Externalized(model, 0, 1, ())
    assert not list(tmp_path.iterdir())


def test_strings_small_tensors_and_tensors_elsewhere_stay_and_are_not_counted(tmp_path: Path) -> None:
    strings = Tensor(dims=(2,), data_type=STRING, string_data=(bytes(5000), b""))
    small = Tensor(dims=(2,), data_type=FLOAT, float_data=bytes(8))
    model = model_of(strings, small, elsewhere("w", "w.bin"))
    assert externalize(model, tmp_path / "w.data") == Externalized(model, 0, 0, ())


def test_an_explicit_default_place_is_the_only_thing_that_does_not_come_back(tmp_path: Path) -> None:
    model = model_of(raw("w", data_location=0))
    result = externalize(model, tmp_path / "w.data")
    assert internalize(result.model, tmp_path) == model_of(raw("w"))


def test_packed_types_move_by_their_bytes(tmp_path: Path) -> None:
    model = model_of(Tensor(dims=(3001,), data_type=INT4, name="w", raw_data=b"\x21" * 1500 + b"\x01"))
    result = externalize(model, tmp_path / "w.data")
    assert ranges(result.model) == {"w": ("w.data", 0, 1501)}
    assert internalize(result.model, tmp_path) == model


def test_unknown_fields_metadata_and_doc_strings_of_a_tensor_stay(tmp_path: Path) -> None:
    model = model_of(raw("w", doc_string="d", metadata_props=entries(a="b"), unknown_fields=b"\xf8\x07\x01"))
    assert internalize(externalize(model, tmp_path / "w.data").model, tmp_path) == model


def test_an_existing_data_file_is_never_replaced_or_appended_to(tmp_path: Path) -> None:
    (tmp_path / "w.data").write_bytes(b"mine")
    (tmp_path / "link.data").symlink_to("nowhere")
    for name in ("w.data", "link.data"):
        with pytest.raises(OutputError, match=r"already exists; choose another data file with --data-file"):
            externalize(model_of(raw("w")), tmp_path / name)
    assert (tmp_path / "w.data").read_bytes() == b"mine"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["a:b.data", "a\\b.data"])
def test_a_data_file_that_no_location_can_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError, match="a backslash or a colon; choose another with --data-file"):
        externalize(model_of(raw("w")), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("location", ["w.data", "./w.data"])
def test_a_data_file_that_other_tensors_are_in_is_refused(tmp_path: Path, location: str) -> None:
    with pytest.raises(OutputError, match=r"already has tensors in a file w\.data"):
        externalize(model_of(raw("w"), elsewhere("old", location)), tmp_path / "w.data")


def test_the_data_file_is_on_the_disk_before_externalize_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_mode)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    externalize(model_of(raw("w")), tmp_path / "w.data")
    assert [stat.S_ISREG(mode) for mode in synced] == [True, False]


def test_a_source_that_changes_meanwhile_leaves_no_data_file(tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    onnxjson.save(model_of(raw("w", 5000)), source)
    model = onnxjson.load(source)
    with source.open("r+b") as file:
        file.truncate(4000)
    with pytest.raises((ChangedUnderneathError, FileError)):
        externalize(model, tmp_path / "w.data")
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_a_data_file_goes_again_when_its_model_is_not_saved(tmp_path: Path) -> None:
    data, place = tmp_path / "m.data", tmp_path / "m.onnx"
    for before in (False, True):
        if before:
            place.write_bytes(b"old")
        data.write_bytes(b"new weights")
        with pytest.raises(KeyboardInterrupt), removed_on_failure(data, place):
            raise KeyboardInterrupt
        assert not data.exists()
    assert place.read_bytes() == b"old"


def test_a_data_file_stays_when_its_model_was_saved_before_the_failure(tmp_path: Path) -> None:
    data, place = tmp_path / "m.data", tmp_path / "m.onnx"
    data.write_bytes(b"new weights")

    def save_and_fail() -> None:
        saving.save_file(place, lambda sink: sink.write(b"names m.data"))
        raise FileError("the system did not confirm it")

    with pytest.raises(FileError), removed_on_failure(data, place):
        save_and_fail()
    assert data.read_bytes() == b"new weights"


def test_locations_are_those_of_tensors_in_other_files_each_once() -> None:
    stray = Tensor(external_data=entries(location="stray.bin"))
    model = model_of(elsewhere("a", "x"), elsewhere("b", "y"), elsewhere("c", "x"), stray, Tensor(data_location=1))
    assert locations(model) == ("x", "y")


def test_internalize_gives_back_a_model_that_has_all_of_its_tensors(tmp_path: Path) -> None:
    model = in_every_position()
    assert internalize(model, tmp_path) is model
    stray = model_of(raw("w", external_data=entries(location="stray.bin")))
    assert internalize(stray, tmp_path) is stray


def test_small_tensors_are_read_at_once_and_big_ones_stay_in_their_file(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(40_000))
    small, big = elsewhere("small", "w.bin", 1023, length="4092"), elsewhere("big", "w.bin", 1024, length="4096")
    model = internalize(model_of(small, big), tmp_path)
    assert model.graph is not None
    assert [isinstance(tensor.raw_data, bytes) for tensor in model.graph.initializer] == [True, False]


@pytest.mark.parametrize(
    ("location", "error"),
    [
        ("../w.bin", UntrustedError),
        ("/etc/passwd", UntrustedError),
        ("link", UntrustedError),
        ("no", MissingInputError),
    ],
)
def test_a_file_that_is_missing_or_not_the_models_is_named_with_its_tensor(
    tmp_path: Path, location: str, error: type[Exception]
) -> None:
    folder, other = tmp_path / "model", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(40))
    (folder / "link").symlink_to(tmp_path / "w.bin")
    model = model_of(elsewhere("layer.weight", location))
    with pytest.raises(error, match=rf"tensor 'layer\.weight' in '{location}'"):
        internalize(model, folder)
    with pytest.raises(error, match=rf"tensor 'layer\.weight' in '{location}'"):
        copy_files(model, folder, other)
    assert not list(other.iterdir())


def test_a_range_that_is_not_what_the_shape_needs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(41))
    huge = Tensor(dims=(1 << 62,) * 300, data_type=FLOAT, external_data=entries(location="w.bin"), data_location=1)
    for tensor in (elsewhere("w", "w.bin"), huge):
        with pytest.raises(UntrustedError, match="type and shape need"):
            internalize(model_of(tensor), tmp_path)


@pytest.mark.parametrize("more", [{"raw_data": b"x"}, {"float_data": bytes(4)}, {"string_data": (b"s",)}])
def test_a_tensor_in_a_file_and_in_the_model_is_refused_rather_than_half_dropped(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(40))
    tensor = msgspec.structs.replace(elsewhere("w", "w.bin"), **more)
    with pytest.raises(DecodeError, match="tensor 'w' has elements in another file and in the model"):
        internalize(model_of(tensor), tmp_path)


def test_empty_raw_data_beside_external_data_gives_way(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(40))
    tensor = msgspec.structs.replace(elsewhere("w", "w.bin"), raw_data=b"")
    (found,) = walk(internalize(model_of(tensor), tmp_path), Tensor)
    assert (found.raw_data, found.external_data, found.data_location) == (bytes(40), (), None)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A model's folder with two files, and another folder."""
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "sub" / "deep").mkdir(parents=True)
    there.mkdir()
    (here / "w.bin").write_bytes(bytes(range(80)))
    (here / "sub" / "deep" / "w.bin").write_bytes(bytes(range(100, 140)))
    return here, there


NAMING_BOTH = model_of(
    elsewhere("a", "w.bin", offset="40"), elsewhere("b", "sub/deep/w.bin"), elsewhere("c", "./w.bin", length="40")
)


def test_files_that_a_model_names_are_copied_whole_to_the_same_places(folders: tuple[Path, Path]) -> None:
    here, there = folders
    assert copy_files(NAMING_BOTH, here, there) == (there / "w.bin", there / "sub" / "deep" / "w.bin")
    assert (there / "w.bin").read_bytes() == bytes(range(80))
    assert internalize(NAMING_BOTH, there) == internalize(NAMING_BOTH, here)
    assert sorted(path.name for path in there.rglob("*") if path.is_file()) == ["w.bin", "w.bin"]


def test_files_that_are_there_with_the_same_bytes_are_left_alone(folders: tuple[Path, Path]) -> None:
    here, there = folders
    (there / "w.bin").write_bytes(bytes(range(80)))
    before = (there / "w.bin").stat().st_mtime_ns
    assert copy_files(NAMING_BOTH, here, there) == (there / "sub" / "deep" / "w.bin",)
    assert copy_files(NAMING_BOTH, here, there) == ()
    assert (there / "w.bin").stat().st_mtime_ns == before


@pytest.mark.parametrize("content", [bytes(80), bytes(range(79)), b""], ids=["other", "shorter", "empty"])
def test_a_file_that_is_there_with_other_bytes_is_refused_and_nothing_is_copied(
    folders: tuple[Path, Path], content: bytes
) -> None:
    here, there = folders
    (there / "sub" / "deep").mkdir(parents=True)
    (there / "sub" / "deep" / "w.bin").write_bytes(content)
    with pytest.raises(OutputError, match=r"there/sub/deep/w\.bin already exists with other bytes"):
        copy_files(NAMING_BOTH, here, there)
    assert not (there / "w.bin").exists()
    assert (there / "sub" / "deep" / "w.bin").read_bytes() == content


@pytest.mark.parametrize("link", ["sub", "sub/deep", "sub/deep/w.bin", "w.bin"])
@pytest.mark.parametrize("dangling", [False, True])
def test_nothing_is_copied_through_a_link(folders: tuple[Path, Path], link: str, dangling: bool) -> None:
    here, there = folders
    outside = there.with_name("outside")
    if not dangling:
        outside.mkdir()
    (there / link).parent.mkdir(parents=True, exist_ok=True)
    (there / link).symlink_to(outside)
    with pytest.raises(OutputError, match="is in the way: it is a link"):
        copy_files(NAMING_BOTH, here, there)
    assert not outside.exists() or not list(outside.iterdir())


def test_a_folder_in_place_of_the_file_is_in_the_way(folders: tuple[Path, Path]) -> None:
    here, there = folders
    (there / "w.bin").mkdir()
    with pytest.raises(OutputError, match="is in the way"):
        copy_files(NAMING_BOTH, here, there)


def test_a_file_in_place_of_a_folder_is_in_the_way(folders: tuple[Path, Path]) -> None:
    here, there = folders
    (there / "sub").write_bytes(b"mine")
    with pytest.raises(OutputError):
        copy_files(NAMING_BOTH, here, there)
    assert (there / "sub").read_bytes() == b"mine"


def test_the_models_own_path_is_not_copied_to(folders: tuple[Path, Path]) -> None:
    here, there = folders
    with pytest.raises(OutputError, match="both the model and its external data"):
        copy_files(NAMING_BOTH, here, there, taken=there / "w.bin")
    assert not list(there.iterdir())


def test_links_within_the_folder_are_followed_if_trusted(folders: tuple[Path, Path]) -> None:
    here, there = folders
    (here / "w.bin").rename(here / "blob")
    (here / "w.bin").symlink_to("blob")
    with pytest.raises(UntrustedError):
        copy_files(NAMING_BOTH, here, there)
    assert len(copy_files(NAMING_BOTH, here, there, trust_links=True)) == 2
    assert not (there / "w.bin").is_symlink()
    assert internalize(NAMING_BOTH, here, trust_links=True) == internalize(NAMING_BOTH, there)


MEBIBYTE = 1 << 20

_MEASURED = """
import resource, sys
from pathlib import Path
from onnxjson.storage import files
from onnxjson.storage.external_files import copy_files, externalize, internalize
folder = Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = files.load(folder / "m.onnx").model
result = externalize(model, folder / "w.data")
files.save(result.model, folder / "out.onnx")
copy_files(result.model, folder, folder / "there")
files.save(internalize(files.load(folder / "out.onnx").model, folder), folder / "back.onnx")
files.save(internalize(files.load(folder / "out.onnx").model, folder), folder / "back.onnx.json")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("size", [64, pytest.param(500, marks=pytest.mark.exhaustive)])
def test_memory_stays_flat_however_big_the_weights_are(tmp_path: Path, size: int) -> None:
    numbers = numpy.random.default_rng(3)
    tensors = [
        Tensor(dims=(MEBIBYTE * 4,), data_type=FLOAT, name=f"w{index}", raw_data=numbers.bytes(16 * MEBIBYTE))
        for index in range(size // 16)
    ]
    tensors.append(raw("small", 10))
    onnxjson.save(model_of(*tensors), tmp_path / "m.onnx")
    del tensors
    (tmp_path / "there").mkdir()
    done = subprocess.run([sys.executable, "-c", _MEASURED, tmp_path], capture_output=True, check=True, text=True)
    unit = 1 if sys.platform == "darwin" else 1024
    # A memory map counts what of the file was looked at; the weights themselves never stand in memory.
    assert int(done.stdout) * unit < 40 * MEBIBYTE
    assert (tmp_path / "back.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()
    assert files.load(tmp_path / "back.onnx.json").model == files.load(tmp_path / "m.onnx").model


def test_the_module_names_the_threshold_of_onnx() -> None:
    import inspect

    assert inspect.signature(onnx.save_model).parameters["size_threshold"].default == external_files.THRESHOLD


def test_a_data_file_that_a_killed_command_left_is_used_if_it_has_the_same_bytes(tmp_path: Path) -> None:
    model = model_of(raw("w"), raw("v"))
    first = externalize(model, tmp_path / "w.data")
    again = externalize(model, tmp_path / "w.data")
    assert (first.new_files, again.new_files) == ((tmp_path / "w.data",), ())
    assert again.model == first.model
    data = (tmp_path / "w.data").read_bytes()
    for other in (data[:-1], data + b"x", b"x" + data[1:]):
        (tmp_path / "w.data").write_bytes(other)
        with pytest.raises(OutputError, match="already exists"):
            externalize(model, tmp_path / "w.data")
    (tmp_path / "w.data").unlink()
    os.mkfifo(tmp_path / "w.data")
    with pytest.raises(OutputError, match="already exists"):
        externalize(model, tmp_path / "w.data")


def test_shards_have_at_most_the_size_and_what_is_there_already_stays(tmp_path: Path) -> None:
    model = model_of(*[raw(f"w{number}") for number in range(5)])
    size = len(model.graph.initializer[0].raw_data or b"")  # type: ignore[union-attr]
    result = externalize(model, tmp_path / "w.data", shard_size=4096 + size)
    names = [f"w-0000{number}-of-00003.data" for number in (1, 2, 3)]
    assert [each.name for each in result.new_files] == names
    assert locations(result.model) == tuple(names)
    assert internalize(result.model, tmp_path) == model
    (tmp_path / names[1]).unlink()
    again = externalize(model, tmp_path / "w.data", shard_size=4096 + size)
    assert again.model == result.model
    assert [each.name for each in again.new_files] == [names[1]]


def test_shards_that_cannot_all_be_written_are_removed(tmp_path: Path) -> None:
    model = model_of(raw("w"), raw("v"))
    (tmp_path / "w-00002-of-00002.data").write_bytes(b"other")
    with pytest.raises(OutputError, match="already exists"):
        externalize(model, tmp_path / "w.data", shard_size=1)
    assert [each.name for each in tmp_path.iterdir()] == ["w-00002-of-00002.data"]


def test_a_safetensors_file_is_read_by_its_header_alone(tmp_path: Path) -> None:
    import json

    arrays = {
        "a.b": numpy.arange(999, dtype=numpy.uint8),
        "wide": numpy.arange(700.0),
        "half": numpy.ones((2, 600), numpy.float16),
    }
    tensors = [from_numpy(array, name) for name, array in arrays.items()]
    twice = [from_numpy(numpy.zeros(2000, numpy.float32), "same") for _ in range(2)]
    model = model_of(*tensors, *twice)
    result = externalize(model, tmp_path / "w.safetensors", threshold=100)
    assert (result.moved, result.left) == (3, 2)
    assert internalize(result.model, tmp_path) == model
    data = (tmp_path / "w.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    assert start % 4096 == 0
    assert [each["dtype"] for each in header.values()] == ["F64", "F16", "U8"]
    end = 0
    for name, each in header.items():
        first, last = each["data_offsets"]
        assert (first, tuple(each["shape"])) == (end, arrays[name].shape)
        assert data[start + first : start + last] == arrays[name].tobytes()
        end = last
    assert len(data) == start + end


def test_every_dtype_that_the_format_shares_with_onnx_is_written_and_read(tmp_path: Path) -> None:
    # As safetensors 0.8 writes what PyTorch has as the bytes 21 43 65 87 of float4_e2m1fn_x2, two elements in each.
    head = b'{"w":{"dtype":"F4","shape":[2,4],"data_offsets":[0,4]}}'
    (tmp_path / "w.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + b"\x21\x43\x65\x87")
    (tensor,) = tensors_of(onnxjson.load(tmp_path / "w.safetensors"))
    assert to_numpy(tensor).tolist() == [[0.5, 1.0, 1.5, 2.0], [3.0, 4.0, 6.0, -0.0]]
    odd = head.replace(b"[2,4]", b"[1,7]")
    (tmp_path / "w.safetensors").write_bytes(len(odd).to_bytes(8, "little") + odd + bytes(4))
    with pytest.raises(DecodeError, match="do not fit"):
        onnxjson.load(tmp_path / "w.safetensors")
    tensors = [from_numpy(numpy.ones((2, 4), numpy_dtype(number)), code) for number, code in CODES.items()]
    ragged = from_numpy(numpy.ones((2, 3), numpy_dtype(DATA_TYPES["float4_e2m1fn"])), "ragged")
    model = model_of(*tensors, ragged)
    result = externalize(model, tmp_path / "all.safetensors", threshold=1)
    assert (result.moved, result.left) == (20, 1)
    loaded = onnxjson.load(tmp_path / "all.safetensors")
    assert {each.name: each.data_type for each in tensors_of(loaded)} == {
        code: number for number, code in CODES.items()
    }
    assert internalize(result.model, tmp_path) == model


def test_a_safetensors_file_is_a_source_of_weights_and_is_read_by_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = onnxjson.from_proto(example.make_example())
    externalize(model, tmp_path / "w.safetensors", threshold=100)
    digests = onnxjson.dumps(model, weights="digest")
    assert onnxjson.loads(digests, weights_from=tmp_path / "w.safetensors") == model
    read: list[int] = []
    ours = SourceFile.read_at

    def counted(self: SourceFile, offset: int, length: int) -> bytes:
        read.append(offset)
        return ours(self, offset, length)

    monkeypatch.setattr(SourceFile, "read_at", counted)
    tensors = {each.name: each for each in tensors_of(onnxjson.load(tmp_path / "w.safetensors"))}
    assert max(read) < 4096  # the tensors begin there
    held = {each.name: each for each in tensors_of(model)}
    assert all(
        [tensors[name].raw_data == held[name].raw_data and tensors[name].dims == held[name].dims for name in tensors]
    )
    assert tensors.keys() == {"conv.weight", "fc.weight"}
    with pytest.raises(OutputError, match="would not be a model"):
        onnxjson.save(model, tmp_path / "w.safetensors")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff", "cut off"),
        (b"\xff\0\0\0\0\0\0\0{}", "cut off"),
        (b"\2\0\0\0\0\0\0\0[]", "not valid"),
        (b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', "there are 0"),
        (b'{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}}', "do not fit"),
        (b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,0]}}', "do not fit"),
        (b'{"a":{"dtype":"F6_E3M2","shape":[4],"data_offsets":[0,3]}}', "does not define how 6-bit"),
        (b'{"a":{"dtype":"Q9","shape":[0],"data_offsets":[0,0]}}', "ONNX does not have"),
        (
            b'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}',
            "'a' and 'b' .* overlap",
        ),
    ],
)
def test_a_safetensors_file_that_lies_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    head = len(content).to_bytes(8, "little") if content.startswith(b"{") else b""
    (tmp_path / "w.safetensors").write_bytes(head + content)
    with pytest.raises(DecodeError, match=said):
        onnxjson.load(tmp_path / "w.safetensors")


def test_an_index_of_safetensors_files_has_the_tensors_of_all(tmp_path: Path) -> None:
    import json

    model = onnxjson.from_proto(example.make_example())
    files = [
        each.name for each in externalize(model, tmp_path / "w.safetensors", threshold=100, shard_size=10).new_files
    ]
    assert len(files) == 2
    index = tmp_path / "model.safetensors.index.json"

    def written(names: dict[str, str]) -> Path:
        index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": names}))
        return index

    names = {each.name or "": file for file in files for each in tensors_of(onnxjson.load(tmp_path / file))}
    assert onnxjson.loads(onnxjson.dumps(model, weights="digest"), weights_from=written(names)) == model
    for wrong, error, said in (
        ({"other": files[0]}, DecodeError, "'other', which .* does not contain"),
        ({"a": "../w.safetensors"}, UntrustedError, "lead out of"),
        ({"a": "none.safetensors"}, MissingInputError, "missing"),
        ({"a": 3}, DecodeError, "not an index"),
    ):
        with pytest.raises(error, match=said):
            onnxjson.load(written(wrong))  # type: ignore[arg-type]
    (tmp_path / "link.safetensors").symlink_to(files[0])
    with pytest.raises(UntrustedError, match="link"):
        onnxjson.load(written({"conv.weight": "link.safetensors"}))


def _compiled(file: str, *, embedded: int = 0) -> Model:
    attributes = (
        Attribute(name="embed_mode", type=2, i=embedded),
        Attribute(name="ep_cache_context", type=3, s=file.encode()),
    )
    node = Node(op_type="EPContext", domain="com.microsoft", name="npu", attribute=attributes)
    return Model(graph=Graph(node=(node,)))


def test_the_file_of_a_compiled_node_goes_along_with_the_model(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    (tmp_path / "a" / "m_qnn.bin").write_bytes(b"compiled")
    assert locations(_compiled("m_qnn.bin")) == ("m_qnn.bin",)
    assert not locations(_compiled("bytes", embedded=1))
    assert copy_files(_compiled("m_qnn.bin"), tmp_path / "a", tmp_path / "b") == (tmp_path / "b" / "m_qnn.bin",)
    assert (tmp_path / "b" / "m_qnn.bin").read_bytes() == b"compiled"
    with pytest.raises(MissingInputError, match=r"context of node 'npu' in 'gone.bin': the file is missing"):
        copy_files(_compiled("gone.bin"), tmp_path / "a", tmp_path / "b")
    for hostile in ("../a/m_qnn.bin", "/etc/passwd", "a\\b"):
        with pytest.raises(UntrustedError, match="context of node 'npu'"):
            copy_files(_compiled(hostile), tmp_path / "a", tmp_path / "b")
    with pytest.raises(OutputError, match="has tensors of the model"):
        onnxjson.save(_compiled("m_qnn.bin"), tmp_path / "a" / "m_qnn.bin")


def test_files_next_to_a_model_that_moves_are_left_behind(folders: tuple[Path, Path]) -> None:
    here, there = folders
    assert named_files.left_behind(NAMING_BOTH, here / "m.onnx", here / "n.onnx") == ()
    assert named_files.left_behind(NAMING_BOTH, here / "m.onnx", there / "m.onnx") == locations(NAMING_BOTH)


def test_a_file_is_data_of_a_model_under_any_name(folders: tuple[Path, Path]) -> None:
    here, _ = folders
    (here / "other.bin").hardlink_to(here / "w.bin")
    assert named_files.is_data_of(here / "other.bin", NAMING_BOTH, here)
    (here / "other.bin").unlink()
    assert not named_files.is_data_of(here / "other.bin", NAMING_BOTH, here)
    (here / "other.bin").write_bytes(b"")
    assert not named_files.is_data_of(here / "other.bin", NAMING_BOTH, here)


def test_an_existing_data_file_is_refused_even_if_no_tensor_moves(tmp_path: Path) -> None:
    (tmp_path / "w.data").write_bytes(b"mine")
    with pytest.raises(OutputError, match="already exists"):
        externalize(model_of(raw("w", 1)), tmp_path / "w.data")


@pytest.mark.parametrize("same", [True, False, None])
def test_a_copy_that_another_process_makes_first_counts_if_it_is_the_same(
    folders: tuple[Path, Path], same: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = folders
    data = (here / "w.bin").read_bytes()

    def save(path: Path, *_: Any, **__: Any) -> None:
        if same is not None:
            path.write_bytes(data if same else data[::-1])
        raise OutputError(f"{path} already exists")

    monkeypatch.setattr(external_files, "save_file", save)
    model = model_of(raw("inside"), elsewhere("a", "w.bin", count=20))
    if same:
        assert copy_files(model, here, there) == (there / "w.bin",)
    else:
        with pytest.raises(OutputError):
            copy_files(model, here, there)
