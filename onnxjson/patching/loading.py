"""Read the text ``onnxjson-patch/1`` (docs/patch.md), or report every reason why it is invalid, with line and column.

A patch is untrusted input: it is checked for consistency and against the messages of onnx.proto, so a patch that
passes can be applied, inverted and composed without surprise.
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from onnxjson.codecs.reading.context import ROOT, Context, Place, has_format
from onnxjson.codecs.reading.exact_reader import read_document
from onnxjson.codecs.reading.strings import SHA256, read_payload, read_string
from onnxjson.codecs.reading.tree import Tree
from onnxjson.codecs.text_file import CUT_FROM, cut_base64
from onnxjson.model.display import visible
from onnxjson.model.payloads import Data, Payload, SourceFile
from onnxjson.patching.building import Builder
from onnxjson.patching.changes import ExternalFile, PatchRecord
from onnxjson.patching.storing import FORMAT
from onnxjson.storage.identity import open_source

_KEYS: Final = ("format", "base", "target", "operations", "payloads", "external")
_OPERATION_KEYS: Final = {"set": ("set", "old", "new"), "list": ("list", "sequence", "removed")}
_EXTERNAL_KEYS: Final = ("location", "sha256", "side")

P = TypeVar("P", bound=PatchRecord)


def load_patch(patch_type: type[P], path: str | Path, elsewhere: dict[str, Data] | None = None) -> P:
    """Load the patch in a file; big payloads stay there until they are needed.

    Args:
        patch_type: the class of the result, usually `onnxjson.Patch`.
        path: the file.
        elsewhere: payloads by their sha256 that the file may leave out; those in the file are added.

    Raises:
        MissingInputError, AccessDeniedError, FileError: the file cannot be read.
        DecodeError: it is not a patch; `findings` have the reasons and places.
    """
    return read_patch(patch_type, open_source(Path(path)), elsewhere)


def read_patch(patch_type: type[P], source: SourceFile, elsewhere: dict[str, Data] | None = None) -> P:
    """Read the patch in an open file; see `load_patch`."""
    name = str(source.path)
    if source.size < CUT_FROM:
        return parse_patch(patch_type, source.read_at(0, source.size), file=name, elsewhere=elsewhere)
    text, cuts = cut_base64(source)
    return parse_patch(patch_type, text, file=name, cuts=cuts, elsewhere=elsewhere)


def parse_patch(
    patch_type: type[P],
    text: bytes,
    *,
    file: str = "",
    cuts: Mapping[str, Payload] | None = None,
    elsewhere: dict[str, Data] | None = None,
) -> P:
    """Parse the patch in a text.

    Args:
        patch_type: the class of the result, usually `onnxjson.Patch`.
        text: UTF-8.
        file: the name of the text in findings.
        cuts: payloads whose base64 was cut out of the text, by the string that replaces it.
        elsewhere: payloads by their sha256 that the text may leave out; those in the text are added.

    Raises:
        DecodeError: it is not a patch; `findings` has all reasons, in the order of the text.
    """
    known = {} if elsewhere is None else elsewhere
    context = Context(cuts=cuts)
    read = partial(_read_patch, patch_type, known=known)
    return read_document(text, read, context, file=file)[0]


def _read_patch(patch_type: type[P], tree: Tree, context: Context, *, known: dict[str, Data]) -> P | None:
    if not has_format(tree, FORMAT, "a patch", context):
        return None
    for key in tree:
        if key not in _KEYS:
            context.unknown_key(key, ROOT.at(key), _KEYS, "a patch")
    context.has_digests = True
    known.update(_read_payloads(tree.get("payloads", {}), ROOT.at("payloads"), context))
    context.payloads = known
    builder = Builder(context)
    if "operations" not in tree:
        context.error(ROOT, "missing-key", "the patch has no operations", 'add "operations": [...]')
    for operation, place in _items(tree, "operations", "a list of operations", context):
        _read_operation(operation, place, context, builder)
    external = [_read_external(*item, context) for item in _items(tree, "external", "a list of files", context)]
    hashes = [_read_hash(tree, key, ROOT, context) for key in ("base", "target")]
    root = builder.build()
    files = tuple([file for file in external if file is not None])
    return None if context.remarks else patch_type(root, base=hashes[0], target=hashes[1], external=files)


def _items(tree: dict[str, Tree], key: str, fits: str, context: Context) -> Iterator[tuple[Tree, Place]]:
    """Yield the items of an optional list with their places."""
    items = tree.get(key, [])
    place = ROOT.at(key)
    if not isinstance(items, list):
        context.wrong_type(items, place, fits)
        return
    for index, item in enumerate(items):
        yield item, place.at(index)


def _read_operation(tree: Tree, place: Place, context: Context, builder: Builder) -> None:
    kinds = [key for key in _OPERATION_KEYS if key in tree] if isinstance(tree, dict) else []
    if not isinstance(tree, dict) or not kinds:
        context.wrong_type(tree, place, 'an operation, {"set": ...} or {"list": ...}')
        return
    if len(kinds) > 1:
        context.error(place, "conflicting-keys", 'the operation has both "set" and "list"', "keep one of them")
        return
    kind = kinds[0]
    for key in tree:
        if key not in _OPERATION_KEYS[kind]:
            context.unknown_key(key, place.at(key), _OPERATION_KEYS[kind], f'an operation "{kind}"')
    address = tree[kind]
    if type(address) is not str:
        address = read_string(address, place.at(kind), context)
    if not isinstance(address, str):
        return
    if kind == "set":
        builder.set_field(address, tree, place)
    else:
        builder.change_list(address, tree, place)


def _read_hash(tree: dict[str, Tree], key: str, place: Place, context: Context) -> str | None:
    if key not in tree:
        return None
    found = tree[key]
    if isinstance(found, str) and SHA256.fullmatch(found):
        return found
    context.wrong_type(found, place.at(key), "a sha256, 64 digits and letters a to f")
    return None


def _read_payloads(tree: Tree, place: Place, context: Context) -> Mapping[str, Data]:
    """Return the table of payloads, each checked against its sha256."""
    found: dict[str, Data] = {}
    if not isinstance(tree, dict):
        context.wrong_type(tree, place, "an object of payloads by their sha256")
        return found
    for key, value in tree.items():
        at = place.at(key)
        if not SHA256.fullmatch(key):
            message = f'"{visible(key, 80)}" is not a sha256'
            context.error(at, "bad-payload", message, "64 digits and letters a to f", on_key=True)
            continue
        if not (isinstance(value, dict) and set(value) == {"base64"}):
            context.wrong_type(value, at, '{"base64": "..."}')
            continue
        data = read_payload(value["base64"], at.at("base64"), context)
        if data is None:
            continue
        sha256 = hashlib.sha256(data).hexdigest() if isinstance(data, bytes) else data.sha256
        if sha256 != key:
            context.error(at, "bad-payload", f"the sha256 of the payload is {sha256}", "the bytes were changed")
        found[key] = data
    return found


def _read_external(tree: Tree, place: Place, context: Context) -> ExternalFile | None:
    if not isinstance(tree, dict) or "location" not in tree:
        context.wrong_type(tree, place, 'a file such as {"location": "model.data", "side": "target"}')
        return None
    for key in tree:
        if key not in _EXTERNAL_KEYS:
            context.unknown_key(key, place.at(key), _EXTERNAL_KEYS, "an external file")
    location = read_string(tree["location"], place.at("location"), context)
    side = tree.get("side", "target")
    if side not in ("base", "target"):
        context.wrong_type(side, place.at("side"), '"base" or "target"')
        return None
    sha256 = _read_hash(tree, "sha256", place, context)
    return None if location is None else ExternalFile(location, sha256, str(side))
