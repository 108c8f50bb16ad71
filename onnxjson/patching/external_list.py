"""The files with weights that the two models of a patch need: a patch lists them by SHA-256, and carries none."""

from pathlib import Path

from onnxjson.document import Model, StringStringEntry
from onnxjson.errors import OnnxJsonError
from onnxjson.external import Resolver
from onnxjson.external_files import locations
from onnxjson.patching.patch import ExternalFile


def external_files(model: Model, path: Path, side: str) -> tuple[ExternalFile, ...]:
    """The files that tensors of a model stand in, each with the SHA-256 of all of it.

    Args:
        model: the model.
        path: the file that it came from; locations begin in its folder.
        side: "base" or "target".
    """
    resolver = Resolver(path.parent, model_file=path)
    return tuple([ExternalFile(location, _sha256(resolver, location), side) for location in locations(model)])


def _sha256(resolver: Resolver, location: str) -> str | None:
    """None for a file that is missing or that a model may not name: the patch is right without it."""
    try:
        return resolver.resolve((StringStringEntry("location", location),), None).sha256
    except OnnxJsonError:
        return None


def missing_files(files: tuple[ExternalFile, ...], folder: Path, side: str = "target") -> list[ExternalFile]:
    """Those of one side that are not in a folder, or have another content there than they should."""
    resolver = Resolver(folder)
    missing = []
    for file in files:
        if file.side != side:
            continue
        found = _sha256(resolver, file.location)
        if found is None or file.sha256 not in (None, found):
            missing.append(file)
    return missing
