"""Methods of records and of results with reports, which call what is built on records.

They call it through the root package, whose names are imported on first use; no other module of the rooms does.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

import msgspec

import onnxjson
from onnxjson.model.by_name import Named, NamedValues
from onnxjson.model.display import suggest
from onnxjson.model.foreign_words import meant

if TYPE_CHECKING:
    from numpy.typing import NDArray

_REFUSAL: Final = "models do not change; write {}, which returns a changed model"


class Guessed:
    """Something whose names are guessed: one that it does not have is answered with what is meant."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Raise the AttributeError of a name that this does not have; it says what is meant."""
            hint = "" if name.startswith("_") else _instead(self, name)
            raise AttributeError(f"a {type(self).__name__} has no attribute {name!r}{hint}", name=name, obj=self)

        def __call__(self, *_: object, **__: object) -> NoReturn:
            """Raise the TypeError of a call of what is no function; it says what is meant."""
            hint = "".join([f"; write {each}" for each in meant(type(self).__name__, "()")])
            raise TypeError(f"a {type(self).__name__} is not a function{hint}")


def refuse_assignment(record: Any, name: str, value: object) -> NoReturn:
    """Raise the AttributeError of an assignment to a record or place; it says how to change a model."""
    kind = type(record).__name__
    variable, field = kind.lower(), name.removesuffix("s")
    if kind in ("Node", "Place"):
        fields = {*onnxjson.Node.__struct_fields__} - {"attribute"}
        field = name if name in fields else field
        change = f"update({field}=...)" if field in fields else f"set_attribute({_attribute(name)}, ...)"
        way = f"model.node(...).{change}, which returns a changed model"
    elif kind == "ValueInfo" and name == "name":
        way = f"model.rename({record.name!r}, ...), which returns a changed model"
    elif kind == "ValueInfo" and name == "shape":
        way = f"model.rewrite(onnxjson.edits.SetShape({record.name!r}, ...)), which returns a changed model"
    elif name in record.__struct_fields__:
        way = f"msgspec.structs.replace({variable}, {name}=...), which returns a changed record"
    elif kind == "Model" and name == "opsets":
        way = "model.rewrite(onnxjson.edits.ConvertOpset(...)), which returns a changed model"
    elif kind == "Model" and field in onnxjson.Graph.__struct_fields__:
        way = f"msgspec.structs.replace(model, graph=msgspec.structs.replace(model.graph, {field}=...))"
    else:
        way = f"msgspec.structs.replace({variable}, FIELD=...); its fields are {', '.join(record.__struct_fields__)}"
    raise AttributeError(f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind} does not change; write {way}")


def _attribute(name: str) -> str:
    return '"NAME"' if name in ("attribute", "attributes") else repr(name)


class Tabular:
    """A result that a notebook shows as a table (`onnxjson.rendering.reports`)."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return onnxjson.report_text(self, "html")


class TypeMethods:
    """Methods of `onnxjson.Type`."""

    __slots__ = ()

    def __str__(self: Any) -> str:
        return onnxjson.format_type(self) or repr(self)

    @property
    def dtype(self: Any) -> str | None:
        """The data type of a tensor, such as "float32"; None for other types."""
        tensor = self.tensor_type or self.sparse_tensor_type
        return None if tensor is None or tensor.elem_type is None else onnxjson.format_data_type(tensor.elem_type)

    @property
    def shape(self: Any) -> tuple[int | str | None, ...] | None:
        """The dimensions of a tensor: sizes, names, or None; None if their number is unknown, and for other types."""
        tensor = self.tensor_type or self.sparse_tensor_type
        if tensor is None or tensor.shape is None:
            return None
        return tuple([dim.dim_value if dim.dim_param is None else dim.dim_param for dim in tensor.shape.dim])


class TensorMethods:
    """Methods of `onnxjson.Tensor`."""

    __slots__ = ()

    @property
    def dtype(self: Any) -> str | None:
        """The data type, such as "float32"."""
        return None if self.data_type is None else onnxjson.format_data_type(self.data_type)

    @property
    def shape(self: Any) -> tuple[int, ...]:
        """`dims`."""
        return self.dims  # type: ignore[no-any-return]

    def numpy(self: Any, folder: str | Path | None = None) -> "NDArray[Any]":
        """Return the elements as an array of shape ``dims``, read-only where no copy is needed.

        Its dtype is numpy's of the same name or ml_dtypes' (bfloat16, float8, 6-, 4- and 2-bit types, one byte an
        element); strings are an object array of ``str``, or of ``bytes`` where these are not UTF-8.

        Args:
            folder: the folder of external data; by default that of the file from which `onnxjson.load` read the model.

        Raises:
            DecodeError: the elements do not fit dtype and dims, or are in another file and no folder is known.
            WeightsMissingError: only the sha256 of the elements is available.
            MissingInputError, UntrustedError, ChangedUnderneathError, FileError: they cannot be read.
        """
        return onnxjson.array_of(self, folder)


class AttributeMethods:
    """Methods of `onnxjson.Attribute`."""

    __slots__ = ()

    @property
    def value(self: Any) -> Any:
        """The value by its type: a number, str (bytes if it is not UTF-8), a record, or a tuple of these.

        None if there is none, as for an attribute that refers to one of its function.
        """
        value = onnxjson.value_of(self)
        return tuple(map(_text_or_bytes, value)) if isinstance(value, tuple) else _text_or_bytes(value)


def _text_or_bytes(value: Any) -> Any:
    """Return a text with lone surrogates as the bytes that they represent, and anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogateescape")
    return value


class NodeMethods:
    """Methods of `onnxjson.Node`."""

    __slots__ = ()

    @property
    def attributes(self: Any) -> Mapping[str, Any]:
        """The values of the attributes (`Attribute.value`) by name, read-only."""
        values = [(each.name or "", each.value) for each in self.attribute]
        return Named(values, _REFUSAL.format('model.node(...).set_attribute("NAME", value)'))


_FUNCTIONS: Final = ("run", "check", "verify", "diff", "merge", "optimize", "convert", "apply", "dumps")
"""Functions of the package about a model, which are guessed to be its methods."""


class ModelMethods(Guessed, Tabular):
    """Methods of `onnxjson.Model`."""

    __slots__ = ()

    def __post_init__(self: Any) -> None:
        if isinstance(self.ir_version, str | Path):
            raise TypeError(f"onnxjson.Model is a record; write onnxjson.load({str(self.ir_version)!r}) to read a file")

    @property
    def index(self: Any) -> "onnxjson.Index":
        """The graphs of the model, and the producer and consumers of every value."""
        return onnxjson.index_of(self)

    def select(self: Any, selector: str) -> "onnxjson.Places":
        """Return the nodes that a selector finds, in the order of the file, at least one.

        Raises:
            SelectorError: it is misspelled, finds nothing, or finds different things by name and by output.
            LimitError: its pattern takes too long.
        """
        return onnxjson.Editor(self, is_fixed=True).select(selector)

    def node(self: Any, selector: str) -> "onnxjson.Place":
        """Return the only node that a selector finds; see `select`.

        Raises:
            SelectorError, LimitError: see `select`; or it finds several nodes.
        """
        return onnxjson.Editor(self, is_fixed=True).node(selector)

    def tensor(self: Any, selector: str) -> "onnxjson.TensorPlace":
        """Return the only tensor that a selector finds: an initializer, input, node output, or other constant.

        Raises:
            SelectorError, LimitError: see `select`; or it finds several tensors.
        """
        return onnxjson.Editor(self, is_fixed=True).tensor(selector)

    @property
    def nodes(self: Any) -> "onnxjson.Places":
        """The nodes of the main graph, in the order of the file; `select` also finds those of subgraphs."""
        return onnxjson.Editor(self, is_fixed=True).nodes()

    @property
    def inputs(self: Any) -> NamedValues["onnxjson.ValueInfo"]:
        """The inputs that a run needs, by position or name: those of the main graph that have no initializer."""
        constants = self.initializers
        values = () if self.graph is None else self.graph.input
        return NamedValues([each for each in values if each.name not in constants])

    @property
    def outputs(self: Any) -> NamedValues["onnxjson.ValueInfo"]:
        """The outputs of the main graph, by position or name."""
        return NamedValues(() if self.graph is None else self.graph.output)

    @property
    def initializers(self: Any) -> dict[str, "onnxjson.Tensor"]:
        """The initializers of the main graph by name, in the order of the file."""
        tensors = () if self.graph is None else self.graph.initializer
        named = [(each.name or "", each) for each in tensors]
        return Named(named, _REFUSAL.format('model.tensor("NAME").set_values(array)'))

    @property
    def opsets(self: Any) -> dict[str, int]:
        """The imported version of each domain; ONNX's own is ``""``."""
        return {each.domain or "": each.version or 0 for each in self.opset_import}

    def producer(self: Any, name: str) -> "onnxjson.Place | None":
        """Return the node that computes a value of the main graph; None for inputs and constants.

        Raises:
            SelectorError: no value has that name.
        """
        return onnxjson.Editor(self, is_fixed=True).value(name).producer

    def consumers(self: Any, name: str) -> tuple["onnxjson.Place", ...]:
        """Return the nodes that consume a value of the main graph, each once, those in subgraphs last.

        Raises:
            SelectorError: no value has that name.
        """
        return onnxjson.Editor(self, is_fixed=True).value(name).consumers

    def find(self: Any, pattern: str) -> list["onnxjson.Match"]:
        """Return the places that match a pattern of operators; see `onnxjson.find`."""
        return onnxjson.find(self, pattern)

    def rename(self: Any, name: str | Mapping[str, str], to: str | None = None) -> "onnxjson.Model":
        """Rename a value, node, dimension or metadata key, with all references to it; return the changed model.

        Several are renamed by a mapping of old names to new ones, without `to`.

        Raises:
            SelectorError: nothing has that name, or things of several kinds have it.
            EditError: something else has the new name.
        """
        if isinstance(name, str):
            return onnxjson.apply(self, onnxjson.edits.Rename(from_=name, to=to))
        return onnxjson.apply(self, onnxjson.edits.Rename(names=dict(name)))

    def save(self: Any, path: str | Path) -> None:
        """Write the model to a file; see `onnxjson.save` for its format and options."""
        onnxjson.save(self, path)

    def outline(self: Any, *, infer: bool = False) -> "onnxjson.Outline":
        """Return the model on one page: lines of blocks, expressions and repeats, which own its nodes.

        Types that the model states make it more precise. With `infer`, those that it does not state are inferred first,
        as ``show --outline`` does, if they can be; the nodes are then those of the model with these types, at the same
        addresses.
        """
        if not infer or onnxjson.index_of(self).states_types():
            return onnxjson.outline_of(self)
        try:
            return onnxjson.outline_of(onnxjson.apply(self, onnxjson.edits.InferShapes()))
        except onnxjson.OnnxJsonError:  # the lines of a model with mistakes are less precise
            return onnxjson.outline_of(self)

    def rewrite(
        self: Any, *changes: "onnxjson.Change | Iterable[onnxjson.Change]", folder: str | Path | None = None
    ) -> "onnxjson.Model":
        """Return the model after edits, scripts or patches; see `onnxjson.apply`."""
        return onnxjson.apply(self, changes, folder=folder)

    def edit(self: Any) -> "onnxjson.Editor":
        """Return an editor for many changes: ``with model.edit() as editor: ...``, then ``editor.model``.

        The end of the ``with`` statement raises `EditError` if the changed model has mistakes that this one has not.
        """
        return onnxjson.Editor(self)


def _class_of(edit: str) -> str:
    """The name of the class of an edit, such as ``set-attribute``."""
    return "".join([part.capitalize() for part in edit.split("-")])


def _instead(value: object, name: str) -> str:
    """What to write instead of a name that a model, a result or a place does not have."""
    kind = type(value)
    if known := meant(kind.__name__, name):
        return f"; write {known[0]}"
    if isinstance(value, ModelMethods):
        if name in _FUNCTIONS:
            return f"; write onnxjson.{name}(model, ...)"
        word = name.replace("_", "-")
        if hasattr(onnxjson.edits, edit := _class_of("".join(meant("edit", word)[:1]) or word)):
            kind = getattr(onnxjson.edits, edit)
            fields = msgspec.structs.fields(kind)
            needed = [each.encode_name for each in fields if each.required] or kind.words
            values = ", ".join([f"{each.name}=..." for each in fields if each.encode_name in needed])
            return f"; write model.rewrite(onnxjson.edits.{edit}({values}))"
    if isinstance(attributes := getattr(kind, "attributes", None), property) and name in attributes.__get__(value):
        return f"; write .attributes[{name!r}]"
    if isinstance(value, tuple) and value and hasattr(type(value[0]), name):
        return f"; write [node.{name} for node in places]"
    if hasattr(kind, f"to_{name}"):
        return f"; write .to_{name}()"
    if name in ("print", "show", "text"):
        return "; write print(" + ("result.to_markdown())" if hasattr(kind, "to_markdown") else "result)")
    near = suggest(name, [each for each in dir(value) if not each.startswith("_")])
    return f"; {near}" if near else ""


class Reported(Guessed, Tabular):
    """A result with a report for other programs, with the text of the command (`onnxjson.rendering.reports`)."""

    __slots__ = ()

    verdict_name: ClassVar = ""
    """The property that states whether the result is good; ``bool(result)`` raises an error that names it."""

    def __bool__(self) -> bool:
        """Refuse an answer: is a result true if it is there, or if it is good?

        Raises:
            TypeError: always; it names the property to ask.
        """
        raise TypeError(f"a {type(self).__name__} is neither true nor false; use {self.verdict_name}")

    def to_json(self) -> str:
        """Return the JSON text that the command prints."""
        return onnxjson.report_text(self, "json")


class ReportedPage(Reported):
    """A result that also has a Markdown text and an HTML page, which notebooks show."""

    __slots__ = ()

    def to_markdown(self) -> str:
        """Return the text for a pull request."""
        return onnxjson.report_text(self, "markdown")

    def to_html(self) -> str:
        """Return the page with drawings."""
        return onnxjson.report_text(self, "html")

    def _repr_html_(self) -> str:
        import html

        # In a frame, the styles of the page do not reach the notebook, nor those of the notebook the page.
        style = "width: 100%; height: 40em; border: 0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(self.to_html())}"></iframe>'
