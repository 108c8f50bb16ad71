"""Every way to save, on files small enough to be saved thousands of times; what may stand there afterwards."""

import functools
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy

import onnxjson
from onnxjson import edits
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.git import merge_driver
from onnxjson.model import tensors
from onnxjson.storage.external_files import internalize
from onnxjson_tui.session.session import Session
from tests.hostile.campaign.children import Ended, command, in_child

PRISTINE = "pristine"


def version(number: int) -> onnxjson.Model:
    """A model of a few constants, all others than those of another version."""
    dice = numpy.random.default_rng(number)
    constants = [tensors.from_numpy(dice.random((20, 300)).astype("f"), f"w{index}") for index in range(3)]
    nodes = (onnxjson.Node(("x",), ("y",), "n", "Relu" if number < 2 else "Abs"),)
    graph = onnxjson.Graph(nodes, "g", tuple(constants), None, (onnxjson.ValueInfo("x"),), (onnxjson.ValueInfo("y"),))
    return onnxjson.Model(ir_version=10, opset_import=(onnxjson.OperatorSetId("", 20),), graph=graph)


def in_the_workbench() -> int:
    """Edit and save in a session, whose errors the program shows."""
    try:
        session = Session.open(Path("m.onnx"))
        if not isinstance(session, Session):
            return 65
        session.edit(edits.SetMetadata(key="k", value="v"))
        kind = session.save().kind
        session.close()
        if kind != "saved":
            return 75
    except onnxjson.OnnxJsonError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except MemoryError:
        return 71
    return 0


def in_the_driver() -> int:
    """Merge as git asks for it."""
    return merge_driver.main(["one.onnx", "m.onnx", "theirs.onnx", "7", "m.onnx", "m.onnx"])


class Saving(NamedTuple):
    """A way to save."""

    name: str
    target: str
    """The file that has the old or the new content."""
    run: Callable[[], int]


_OTHER = ("--weights", "blobs")

SAVINGS = (
    Saving("text", "m.onnx.json", command("convert", "two.onnx", "-o", "m.onnx.json", "-q")),
    Saving("binary", "m.onnx", command("convert", "two.onnx", "-o", "m.onnx", "-q")),
    Saving("external", "e.onnx", command("convert", "two.onnx", "-o", "e.onnx", "-q", "--externalize")),
    Saving("blobs", "b.onnx.json", command("convert", "two.onnx", "-o", "b.onnx.json", "-q", *_OTHER)),
    Saving(
        "in place", "m.onnx", command("rewrite", "set-metadata", "m.onnx", "--key", "k", "--value", "v", "-i", "-q")
    ),
    Saving("merge", "m.onnx", command("merge", "one.onnx", "ours.onnx", "theirs.onnx", "-o", "m.onnx", "-q")),
    Saving("driver", "m.onnx", in_the_driver),
    Saving("workbench", "m.onnx", in_the_workbench),
)


def content(path: Path) -> str:
    """What a file is as a model, with all its weights."""
    if not path.exists():
        return "missing"
    try:
        return message_bytes(internalize(onnxjson.load(path), path.parent)).hex()
    except onnxjson.OnnxJsonError as error:
        return f"{type(error).__name__}: {error}"


class Bench:
    """A folder in which one way to save is tried again and again."""

    def __init__(self, saving: Saving, place: Path) -> None:
        self.saving, self.place = saving, place
        self.pristine = place / PRISTINE
        shutil.rmtree(self.pristine, ignore_errors=True)
        self.pristine.mkdir()
        files = {"one": version(1), "two": version(2)}
        files["m"] = files["ours"] = onnxjson.apply(files["one"], edits.SetMetadata(key="o", value="o"))
        files["theirs"] = onnxjson.apply(files["one"], edits.SetMetadata(key="t", value="t"))
        for name, model in files.items():
            onnxjson.save(model, self.pristine / f"{name}.onnx")
        onnxjson.save(files["one"], self.pristine / "m.onnx.json")
        onnxjson.save(files["one"], self.pristine / "b.onnx.json", weights="blobs")
        onnxjson.save(files["one"], self.pristine / "e.onnx")
        self.reset()
        self.old = content(Path(saving.target))
        end = in_child(saving.run, place)
        self.new, self.seconds = content(Path(saving.target)), end.seconds
        assert end.code == 0, end.output
        assert self.old != self.new
        self.names = sorted(path.name for path in Path().iterdir())
        self.reset()

    def reset(self) -> None:
        """Put everything as it was."""
        for folder in (Path(), self.place / "tmp", self.place / "state"):
            for path in folder.iterdir() if folder.exists() else ():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in self.pristine.iterdir():
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, path.name)

    def torn(self) -> str:
        """What is wrong with the file; "" if it is old or new."""
        if self.saving.name == "driver":
            return ""  # the line that git runs removes its file
        found = content(Path(self.saving.target))
        return "" if found in (self.old, self.new) else f"torn: {found[:200]}"

    def left(self) -> list[str]:
        """Hidden and temporary files that should not be there."""
        return [path.name for path in (*Path().glob(".*"), *(self.place / "tmp").iterdir())]

    def wrong(self, end: Ended, *, may_leave: bool = False) -> str:
        """What is wrong after a save that ended by itself; "" for nothing."""
        found = content(Path(self.saving.target))
        if self.saving.name == "driver" and end.code not in (0, 16):
            return f"{end.output[-400:]}" if "Traceback" in end.output else ""
        if found not in (self.old, self.new):
            return f"torn: {found[:200]}; exit code {end.code}: {end.output[-200:]}"
        if end.code in (0, 16) and found == self.old:
            return f"exit code {end.code} and the old content: {end.output[-200:]}"
        if end.code == 70 or "Traceback" in end.error or "Exception ignored" in end.error:
            return f"exit code {end.code}: {end.error[-400:]}"
        if end.code < 0:
            return f"ended by signal {-end.code}"
        left = [] if may_leave else self.left()
        return f"{left} is left; exit code {end.code}: {end.output[-200:]}" if left else ""


@functools.cache
def dice(seed: int) -> Random:
    """Random numbers of a part."""
    return Random(seed)
