"""The text ``onnxjson-patch/1`` (docs/patch.md) -> a patch, or every reason why it is none, with line and column.

A patch comes from anywhere: what it says of itself is checked, and what it says of a model is checked against the
messages of onnx.proto, so that whatever passes can be applied, inverted and composed without surprise.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from onnxjson.display import visible
from onnxjson.errors import DecodeError
from onnxjson.identity import open_source
from onnxjson.patching.building import Builder
from onnxjson.patching.patch import ExternalFile, Patch
from onnxjson.patching.storing import FORMAT
from onnxjson.payloads import Data, Payload, SourceFile
from onnxjson.reading import tree as json_tree
from onnxjson.reading.context import ROOT, Context, Place
from onnxjson.reading.cutting import CUT_FROM, cut_base64
from onnxjson.reading.exact_reader import locate, summary
from onnxjson.reading.scan import Scan, scan
from onnxjson.reading.skimming import skim
from onnxjson.reading.strings import SHA256, read_payload, read_string
from onnxjson.reading.tree import UNREADABLE, Tree

_KEYS: Final = ("format", "base", "target", "operations", "payloads", "external")
_OPERATION_KEYS: Final = {"set": ("set", "old", "new"), "list": ("list", "sequence", "removed")}
_EXTERNAL_KEYS: Final = ("location", "sha256", "side")


def load_patch(path: str | Path, elsewhere: dict[str, Data] | None = None) -> Patch:
    """The patch in a file; big payloads stay there until they are asked for.

    Args:
        path: the file.
        elsewhere: payloads by their sha256 that need not stand in the file; those that do are added.

    Raises:
        MissingInputError, AccessDeniedError, FileError: the file cannot be read.
        DecodeError: it holds no patch; `findings` say why and where.
    """
    source = open_source(Path(path))
    return read_patch(source, elsewhere)


def read_patch(source: SourceFile, elsewhere: dict[str, Data] | None = None) -> Patch:
    """The patch in an opened file; see `load_patch`."""
    name = str(source.path)
    if source.size < CUT_FROM:
        return parse_patch(source.read_at(0, source.size), file=name, elsewhere=elsewhere)
    text, cuts = cut_base64(source)
    return parse_patch(text, file=name, cuts=cuts, elsewhere=elsewhere)


def parse_patch(
    text: bytes,
    *,
    file: str = "",
    cuts: Mapping[str, Payload] | None = None,
    elsewhere: dict[str, Data] | None = None,
) -> Patch:
    """The patch in a text.

    Args:
        text: UTF-8.
        file: the name that findings give the text.
        cuts: payloads whose base64 was taken out of the text, by the string that stands in its place.
        elsewhere: payloads by their sha256 that need not stand in the text; those that do are added.

    Raises:
        DecodeError: it is none; `findings` has all reasons, in the order of the text.
    """
    context = Context(cuts=cuts)
    known = {} if elsewhere is None else elsewhere
    is_clean, tree = json_tree.parse(text)
    scanned: Scan | None = None
    if not is_clean:
        scanned = scan(text)
        tree = scanned.tree
    patch = None
    if scanned is None or (scanned.is_sound and tree is not UNREADABLE):
        patch = _read(tree, context, known)
    if patch is not None and not context.remarks and (scanned is None or not scanned.mistakes):
        return patch
    if scanned is None:
        decoded = text.decode("utf-8")
        scanned = Scan(decoded, root=skim(decoded, [remark.place.path for remark in context.remarks]))
    findings = locate(scanned, context.remarks, file)
    raise DecodeError(summary(findings), findings)


def _read(tree: Tree, context: Context, known: dict[str, Data]) -> Patch | None:
    try:
        return _read_patch(tree, context, known)
    except RecursionError:
        message = "objects and lists nest too deep for the calling program's stack"
        context.error(ROOT, "nesting-too-deep", message, "raise sys.setrecursionlimit")
        return None


def _read_patch(tree: Tree, context: Context, known: dict[str, Data]) -> Patch | None:
    if not isinstance(tree, dict):
        context.wrong_type(tree, ROOT, f'a patch, {{"format": "{FORMAT}", ...}},')
        return None
    if not _has_format(tree, context):
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
    root = builder.finished()
    files = tuple([file for file in external if file is not None])
    return None if context.remarks else Patch(root, base=hashes[0], target=hashes[1], external=files)


def _has_format(tree: dict[str, Tree], context: Context) -> bool:
    found = tree.get("format")
    if "format" not in tree:
        context.error(ROOT, "no-format", "the text does not say its format", f'add the line "format": "{FORMAT}",')
    elif not isinstance(found, str):
        context.wrong_type(found, ROOT.at("format"), f'"{FORMAT}"')
    elif found != FORMAT:
        hint = "a newer onnxjson may read it" if found.startswith("onnxjson-patch/") else "a patch is wanted here"
        message = f'the format is "{visible(found)}"; this version of onnxjson reads "{FORMAT}"'
        context.error(ROOT.at("format"), "other-format", message, hint)
    return found == FORMAT


def _items(tree: dict[str, Tree], key: str, fits: str, context: Context) -> Iterator[tuple[Tree, Place]]:
    """The items of a list that may be missing, with their places."""
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
        context.wrong_type(tree, place, 'an operation, {"set": ...} or {"list": ...},')
        return
    if len(kinds) > 1:
        context.error(place, "conflicting-keys", 'the operation has "set" and "list"', "only one of them can stand")
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
    context.wrong_type(found, place.at(key), "a sha256, 64 digits and letters a to f,")
    return None


def _read_payloads(tree: Tree, place: Place, context: Context) -> Mapping[str, Data]:
    """The table of payloads, each checked against its name."""
    found: dict[str, Data] = {}
    if not isinstance(tree, dict):
        context.wrong_type(tree, place, "an object of payloads by their sha256")
        return found
    for key, value in tree.items():
        at = place.at(key)
        if not SHA256.fullmatch(key):
            message = f'"{visible(key, 80)}" is no sha256'
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
            context.error(at, "bad-payload", f"the payload has another sha256, {sha256}", "the bytes were changed")
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
