"""Which files a model names: external data, and contexts compiled for a device; and whether a copy would find them."""

import os
from collections.abc import Iterator
from contextlib import suppress
from operator import attrgetter
from pathlib import Path

from onnxjson.model.display import visible
from onnxjson.model.document import Function, Graph, Model, Node
from onnxjson.model.errors import OutputError, UntrustedError
from onnxjson.model.tensors import is_external
from onnxjson.model.walking import tensors_of, walk
from onnxjson.storage.external import location_parts


def contexts(model: Model) -> Iterator[tuple[str, Node]]:
    """Yield the files that nodes EPContext name, compiled for a device, next to the model, and the nodes."""
    bodies: list[Graph | Function] = [*walk(model, Graph), *model.functions]
    if not any(["EPContext" in map(attrgetter("op_type"), body.node) for body in bodies]):
        return
    for node in walk(model, Node):
        given = {each.name: each for each in node.attribute} if node.op_type == "EPContext" else {}
        file = given["ep_cache_context"].s if "ep_cache_context" in given else None
        if file and "embed_mode" in given and not given["embed_mode"].i:
            yield file.decode("utf-8", "surrogateescape"), node


def locations(model: Model) -> tuple[str, ...]:
    """The locations of external data in a model, as they are spelled, without duplicates; see also `contexts`."""
    named = (
        entry.value
        for tensor in tensors_of(model)
        if is_external(tensor)
        for entry in tensor.external_data
        if entry.key == "location" and entry.value
    )
    return tuple(dict.fromkeys([*named, *[location for location, _ in contexts(model)]]))


def left_behind(model: Model, source: Path, place: Path) -> tuple[str, ...]:
    """The locations of files next to `source` that the model, saved at `place` in another folder, would not find."""
    if place.parent.resolve() == source.parent.resolve():
        return ()
    return tuple(location for location in locations(model) if os.path.lexists(source.parent / location))


def refuse_left_behind(model: Model, source: Path, place: Path, advice: str = "") -> None:
    """Raise OutputError if the model, saved at `place`, would not find its weights; `advice` ends with "or "."""
    for location in left_behind(model, source, place):
        raise OutputError(
            f"nothing was written: the result needs the weights in {visible(location, None)!r} next to "
            f"{visible(str(source), None)}, which {visible(str(place), None)} would not find; {advice}"
            "write the result next to it"
        )


def refuse_lost(model: Model, source: Path, place: Path) -> None:
    """Raise OutputError if the model has lost weights that are not next to `place`, in another folder, either."""
    if place.parent.resolve() == source.parent.resolve():
        return
    for location in locations(model):
        if not any([os.path.lexists(each.parent / location) for each in (source, place)]):
            raise OutputError(
                f"nothing was written: the weights in {visible(location, None)!r} are not next to "
                f"{visible(str(source), None)}; put that file there or in {visible(str(place.parent), None)}/"
            )


def is_data_of(path: Path, model: Model, folder: Path) -> bool:
    """Whether a file, under this name or another, has external data of a model in `folder`."""
    try:
        status = path.stat()
    except OSError:
        return False
    for location in locations(model):
        # Other functions report locations that are not valid.
        with suppress(OSError, ValueError):
            if os.path.samestat(status, os.stat(folder / location)):
                return True
    return False


def external_paths(model: Model, folder: Path) -> tuple[Path, ...]:
    """The files that tensors of a model name, each once, whether they exist or not; none outside of `folder`."""
    paths = []
    for location in locations(model):
        with suppress(UntrustedError):
            paths.append(folder.joinpath(*location_parts(location, "")))
    return tuple(paths)
