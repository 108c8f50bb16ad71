"""`Pass`: one optimizer, declared once for Python, the command line and recipes, and what passes report and produce.

A subclass is the declaration: its docstring describes it, its fields are the options, ``tag`` is its name::

    class Example(Pass, frozen=True, kw_only=True, tag="example"):
        \"""What it does, in one line.\"""

        packages = ("example-package",)

        strength: Annotated[int, about("How much.", ge=1)] = 1

        def run(self, model: bytes, folder: Path) -> bytes:
            import example_package  # only here, in the sandboxed process
            ...
"""

import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, Self

import msgspec

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.editing.declaration import Declared, name_of
from onnxjson.editing.parameters import parameters
from onnxjson.model.constants import RANDOM
from onnxjson.model.dataflow import sort_nodes
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import Graph
from onnxjson.model.errors import EditError, ParameterError
from onnxjson.model.walking import replace_records
from onnxjson.storage.external_files import NewFile

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

    from onnxjson.model.document import Model

READING: Final = "reading and writing"
"""Name of the part in which an optimizer only reads the model and writes it again."""

DRAWING: Final = frozenset({*RANDOM, "Dropout"})
"""Operators that optimizers must not compute beforehand."""

WRITTEN: Final = "onnxjson-written.onnx.data"
"""Name of the file in the folder of a pass to which it may write constants that are too big for a message."""

_REMARKS: Final[list[str]] = []


class PartStage(msgspec.Struct, frozen=True):
    """A model between two parts of one pass."""

    name: str
    """Part that produced it, such as ``ConvBNFusion``."""
    model: bytes


def remark(text: str) -> None:
    """Add a remark of the running pass, which is reported to the user: a sentence, or part of one."""
    _REMARKS.append(text)


def drain_remarks() -> tuple[str, ...]:
    """Return the remarks since the last call and clear them."""
    found = tuple(_REMARKS)
    _REMARKS.clear()
    return found


class Changed(NamedTuple):
    """Result of a pass that runs in this process."""

    model: "Model"
    notes: tuple[str, ...] = ()
    files: tuple[NewFile, ...] = ()


class Pass(Declared, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="pass", eq=False):
    """Base of all passes. Options are checked on construction; `ParameterError` states what is invalid."""

    packages: ClassVar[tuple[str, ...]] = ()
    """Distributions that the pass needs in addition to those of this package."""
    extra: ClassVar[str | None] = None
    """The extra of this package that installs them; None if none is needed."""
    part: ClassVar[str | None] = None
    """The option, a list of texts, that a word after a colon sets: ``onnxoptimizer:eliminate_identity``."""
    parts: ClassVar[dict[str, str]] = {}
    """The words that this option accepts, each with a description of one line."""
    is_sandboxed: ClassVar[bool] = True
    """Whether `run` must run in the sandboxed process; code of this package need not."""
    is_own_code: ClassVar[bool] = False
    """Whether the pass is code of the user, which may run without the box of `onnxjson.running.box`."""
    is_exact: ClassVar[bool] = True
    """Whether the model must compute the same afterwards; otherwise the pass trades accuracy for size or speed."""
    evaluates_texts: ClassVar[bool] = False
    """Whether its libraries evaluate texts of the model as code: then it is refused where there is no box."""

    constants: ClassVar[Literal["files", "inputs", "tokens", "none"]] = "none"
    """What the pass gets instead of the big constants of a model of more than 2 GiB; see
    `onnxjson.optimizing.passes.big_constants`."""
    needs_constants: ClassVar[str] = ""
    """Why it needs all of them, as a clause; for "none"."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for word in getattr(self, self.part) if self.part else ():
            if word not in self.parts:
                hint = near(word, self.parts) or f"`onnxjson passes {self.name}` shows all"
                raise ParameterError(f'{self.name} has no "{visible(word)}"; {hint}')

    @property
    def name(self) -> str:
        """Name of the pass, such as ``onnxsim``."""
        return name_of(self)

    def within(self, folder: Path) -> Self:
        """Return the pass with the files that it names resolved in a folder."""
        files = {each.field: getattr(self, each.field) for each in parameters(type(self)) if each.role == "file"}
        resolved = {
            field: tuple([str(folder / each) for each in value]) if isinstance(value, tuple) else str(folder / value)
            for field, value in files.items()
            if value
        }
        return msgspec.structs.replace(self, **resolved)

    def reads(self) -> tuple[str, ...]:
        """Return absolute paths of the files and folders that `run` may read, in addition to those of its packages."""
        return ()

    def with_dimensions(self, names: Mapping[str, str]) -> Self:
        """Return the pass for a model with renamed dimensions."""
        return self

    def run(self, model: bytes, folder: Path) -> bytes:
        """Run the optimizer on a model, in the sandboxed process, where it may crash, hang or exit.

        Args:
            model: serialised, with every tensor in it.
            folder: an empty folder for optimizers that work on files; it is deleted afterwards.

        Returns:
            The serialised result.
        """
        raise NotImplementedError

    def stages(self, model: bytes, folder: Path) -> Iterable[PartStage]:
        """Yield the model after each part of the optimizer, if its parts can be separated; the last is the result of
        `run`.

        Runs in the sandboxed process after `run`, so if it fails or takes too long, the result of the pass is not
        affected. See `run` for the arguments.
        """
        return ()

    def measure(self, before: bytes, after: bytes) -> None:
        """Report what the pass cost, as remarks; both models are serialized.

        Runs in the sandboxed process, after `run`.
        """

    def converted(self, elements: bytes) -> bytes:
        """Return float32 elements as the pass converts them to float16; for "tokens"."""
        raise NotImplementedError

    def change(self, model: "Model", model_folder: Path | None) -> Changed:
        """Return the result of a pass that is not sandboxed. Runs in this process and writes nothing."""
        raise NotImplementedError

    @classmethod
    def available(cls) -> str | None:
        """Return why the pass cannot be used here and what to do, or None if it can. Nothing is imported."""
        missing = [package for package in cls.packages if not is_installed(package)]
        if not missing:
            return None
        several = len(missing) > 1
        needed = f"it needs {' and '.join(missing)}, which {'are' if several else 'is'} not installed"
        return f"{needed}; {sys.executable} -m pip install {' '.join(missing)}"


def near(word: str, names: Collection[str]) -> str:
    """Return ``did you mean "a"?`` with names that contain a word or are similar to it; "" if there are none."""
    containing = [name for name in names if len(word) >= 3 and word in name]
    # A part with exactly this name comes before names that only contain the word.
    containing = sorted(containing, key=lambda name: name.rpartition(":")[2] != word)[:3]
    if containing:
        return "did you mean " + " or ".join([f'"{name}"' for name in containing]) + "?"
    return suggest(word, names)


def parts_of(name: str) -> dict[str, str]:
    """Return the parts of a pass that has many, each with a description of one line: from ``parts.json``."""
    parts: dict[str, dict[str, str]] = msgspec.json.decode(Path(__file__).with_name("parts.json").read_bytes())
    return parts[name]


@cache
def is_installed(package: str) -> bool:
    """Whether a distribution is installed for this Python."""
    return any(True for _ in metadata.distributions(name=package))


def proto_of(model: bytes) -> "ModelProto":
    """Parse a serialized model with onnx."""
    from onnx import ModelProto

    return ModelProto.FromString(model)


def sorted_model(model: bytes) -> bytes:
    """Return a serialized model with the nodes of each graph after those whose values they, or their subgraphs, use."""
    parsed = serde.parse(model).model

    def in_order(graph: Graph) -> Graph:
        nodes = sort_nodes(graph.node) or graph.node
        return graph if nodes is graph.node else msgspec.structs.replace(graph, node=nodes)

    made = replace_records(parsed, Graph, in_order)
    return model if made is parsed else message_bytes(made)


def refill(values: Any, others: Iterable[Any]) -> None:
    """Replace the elements of a repeated field by copies of others."""
    copies = [type(each).FromString(each.SerializeToString()) for each in others]
    del values[:]
    values.extend(copies)


def subgraphs(node: "NodeProto") -> "Iterator[GraphProto]":
    """Yield the graphs in the attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def graphs(graph: "GraphProto") -> "Iterator[GraphProto]":
    """Yield a graph and the graphs inside of it."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from graphs(inner)


def consumed_names(graph: "GraphProto") -> Iterator[str]:
    """Yield the names that nodes and graph outputs consume, once per use, including those in subgraphs."""
    for each in graphs(graph):
        yield from [value.name for value in each.output]
        yield from [name for node in each.node for name in node.input]


def dtypes_and_operators(model: "ModelProto") -> Counter[str | int]:
    """Count the operators of the nodes, and the dtypes of constants, inputs and outputs, which conversions change."""
    counts: Counter[str | int] = Counter()
    for graph in graphs(model.graph):
        counts.update([node.op_type for node in graph.node])
        counts.update([tensor.data_type for tensor in graph.initializer])
        counts.update([value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)])
    return counts


def require_converted(before: Counter[str | int], after: "ModelProto", what: str) -> None:
    """Raise RuntimeError if a conversion changed no operator and no dtype; `what` is what it looks for."""
    if dtypes_and_operators(after) == before:
        raise RuntimeError(f"nothing to convert: the model has no {what}")


def require(wanted: Iterable[str], known: Sequence[str], what: str) -> None:
    """Raise unless all names are known.

    Args:
        what: kind of the named things, such as "dimension".

    Raises:
        ValueError: a name does not exist; the message suggests a similar one, or lists those that exist.
    """
    for name in wanted:
        if name not in known:
            hint = suggest(name, known) or (f"there are {listed(known, 10)}" if known else "there is none")
            raise ValueError(f'there is no {what} "{name}"; {hint}')


def require_new(path: Path) -> None:
    """Raise unless a path does not exist."""
    if os.path.lexists(path):
        raise EditError(f"{visible(str(path), None)} exists; name another file")
