"""A model in its file, changed through a text that a person edits: what is handed out, read back, and saved.

The text has big tensors as their SHA-256. What comes back is given the bytes of the very model that was opened, so an
edit cannot change a weight that it does not write out, and the file keeps its form.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from onnxjson import drafts, files, node_blocks, text_file
from onnxjson.addresses import walk as walk_with_addresses
from onnxjson.canonical.payload_forms import Weights, payloads, sha256_of
from onnxjson.checking import Finding
from onnxjson.document import Model, Tensor
from onnxjson.errors import AddressError, DecodeError
from onnxjson.node_recognition import Recognition, ways_to
from onnxjson.payloads import Data, Digest, SourceFile
from onnxjson.reading.exact_reader import is_proto_json, summary
from onnxjson.reading.location import locate
from onnxjson.reading.model import FORMAT
from onnxjson.rendering import unified
from onnxjson.structure import check_structure
from onnxjson.tensor_replacement import replace_tensors

_FIELDS: Final = ("raw_data", "float_data", "double_data")
"""Where a tensor can have a digest instead of bytes."""

_ENDINGS: Final = {False: ".onnx.json", True: ".nodes.json"}
"""How the name of a draft ends, by whether it holds some nodes only."""


class Proposal(NamedTuple):
    """A valid text that says another model than the one that was opened."""

    model: Model
    text: bytes
    """Its canonical text, digests instead of weights."""
    findings: tuple[Finding, ...]
    """What is not kept of the draft, and what is wrong with the model that was not wrong before."""


class Handout(NamedTuple):
    """What a draft says."""

    model: Model
    findings: tuple[Finding, ...]
    """What is not kept of the draft, and what is wrong with the model that was not wrong before."""
    nodes: Mapping[str, Sequence[str]]
    """Where each block of the draft stands in the model that is edited -> the addresses of its nodes in `model`."""


class ModelEditing:
    """One model that is edited, and drafts of what it is to become. Weights are looked at only where a draft needs."""

    def __init__(self, model: Model, path: Path, *, drop_orphans: bool = False) -> None:
        """Takes a model.

        Args:
            model: what is handed out.
            path: the file that drafts are named after and are kept for.
            drop_orphans: leave out metadata whose element is not there any more, instead of refusing the text.
        """
        self.model = model
        self.path = path
        self._drop_orphans = drop_orphans

    @cached_property
    def text(self) -> bytes:
        """The canonical text of the model, digests instead of weights."""
        return unified.digest_text(self.model)

    def new_draft(self, addresses: Sequence[str] = (), *, knows_model: bool = True) -> drafts.Draft:
        """A draft of the whole text, or of the blocks of the nodes at some addresses.

        Args:
            addresses: of nodes; none for the whole text. Those that follow each other become one block.
            knows_model: whether the draft can tell later that it is of another model, which takes the whole text.

        Raises:
            OnnxJsonError: it cannot be written, or nothing stands at an address.
        """
        if not addresses:
            text = self.text
        else:
            addresses = node_blocks.block_addresses(addresses)
            text = node_blocks.write_blocks(self.model, addresses, self._remark(addresses))
        whole = self.text if knows_model else None
        ways = ways_to(self.model, addresses)
        draft = drafts.make(self.path, text, _ENDINGS[bool(addresses)], model=whole, addresses=addresses, ways=ways)
        draft.places = {each: each for each in addresses}
        return draft

    def find_places(self, draft: drafts.Draft) -> Mapping[str, str]:
        """Where the nodes of each block of a draft stand in the model: the address in the text -> the one here.

        Raises:
            AddressError: they cannot be told any more, or those of one block do not follow each other any more.
        """
        if draft.places is None:
            draft.places = self._found_again(draft)
        return draft.places

    def _found_again(self, draft: drafts.Draft) -> Mapping[str, str]:
        same = {each: each for each in draft.addresses}
        if draft.origin is None or not draft.origin.addresses:
            return same
        if draft.ways:
            return Recognition(self.model).blocks(draft.addresses, draft.ways)
        # An older version did not write what the nodes are known by: they have to be what they were.
        text = node_blocks.write_blocks(self.model, draft.addresses, self._remark(draft.addresses))
        if drafts.sha256(text) != draft.origin.handed_out:
            raise AddressError("the nodes this text was written for are not what they were, or stand elsewhere now")
        return same

    def _remark(self, addresses: Sequence[str]) -> str:
        """What the first line of a draft of some blocks says of them."""
        count = sum(len(node_blocks.node_addresses(each)) for each in addresses)
        nodes = "a node" if count == 1 else f"{count:,} nodes"
        ways = []
        if any(node_blocks.is_range(each) for each in addresses):
            ways.append("a list takes the place of all its nodes, [] deletes them")
        if not all(node_blocks.is_range(each) for each in addresses):
            ways.append("[] deletes a node, [{...}, {...}] puts two in its place")
        return "; ".join([f"{nodes} of {self.path.name}", *ways])

    def is_of_another_model(self, draft: drafts.Draft) -> bool:
        """Whether the draft is known to have been made from something else than what the file holds now."""
        return draft.origin is not None and draft.origin.model not in ("", drafts.sha256(self.text))

    def read_model(self, draft: drafts.Draft) -> Handout:
        """What a draft says, with the weights that it names.

        Raises:
            DecodeError: the text says no model, or names bytes that the model does not have; `findings` say where.
            AddressError: the nodes that it was written for cannot be told any more.
            OnnxJsonError: it cannot be read.
        """
        replaced: node_blocks.Replaced | None = None
        nodes: Mapping[str, Sequence[str]] = {}
        warnings: tuple[Finding, ...] = ()
        if draft.addresses:
            places = self.find_places(draft)
            blocks = node_blocks.read_blocks(draft.content(), draft.addresses, file=str(draft.path))
            replaced = node_blocks.put_back(self.model, {places[key]: block for key, block in blocks.items()})
            model = replaced.model
            put_in = replaced.by_block()
            nodes = {places[key]: put_in.get(key, ()) for key in blocks}
        else:
            if is_proto_json(draft.content()):
                raise _without_format(draft)
            read = text_file.read(SourceFile(draft.path), drop_orphans=self._drop_orphans)
            model, warnings = read.model, read.findings
        model = self._with_weights(model, draft, replaced)
        new = self._new_mistakes(model)
        return Handout(model, (*warnings, *self._placed(new, draft, replaced)), nodes)

    def compared(self, read: Handout) -> tuple[bytes, bytes]:
        """The canonical texts of what a draft is about, as it is and as the draft would have it.

        Where a text only breaks its lines otherwise, both are the same.
        """
        if not read.nodes:
            return self.text, unified.digest_text(read.model)
        return node_blocks.compared_blocks(self.model, read.model, read.nodes)

    def _with_weights(self, model: Model, draft: drafts.Draft, replaced: node_blocks.Replaced | None) -> Model:
        """`model` with the bytes of the opened one."""
        wanted: set[int] = set()

        def seen(tensor: Tensor) -> Tensor:
            wanted.update([len(each) for field in _FIELDS if isinstance(each := getattr(tensor, field), Digest)])
            return tensor

        replace_tensors(model, seen)
        if not wanted:
            return model
        known = self._bytes_of(wanted)
        unknown: dict[int, Digest] = {}

        def bound(tensor: Tensor) -> Tensor:
            for field in _FIELDS:
                digest = getattr(tensor, field)
                if isinstance(digest, Digest):
                    data = known.get((len(digest), digest.sha256))
                    if data is not None:
                        return msgspec.structs.replace(tensor, **{field: data})
                    unknown[id(tensor)] = digest
            return tensor

        result = replace_tensors(model, bound)
        if unknown:
            found = self._placed(list(_of_unknown(model, unknown)), draft, replaced)
            raise DecodeError(summary(found), found)
        return result

    def _bytes_of(self, lengths: Collection[int]) -> dict[tuple[int, str], Data]:
        """The weights of the model that have one of some lengths, by length and SHA-256."""
        weights = Weights("digest")
        return {
            (len(data), sha256_of(data)): data
            for data, storage in payloads(self.model)
            if len(data) in lengths and weights.kind(data, storage) == "sha256"
        }

    def _new_mistakes(self, model: Model) -> list[Finding]:
        """What is wrong with the structure of `model` and is not with what was opened."""
        found = check_structure(model)
        if not found:
            return []
        known = Counter((finding.code, finding.message) for finding in check_structure(self.model))
        new = []
        for finding in found:
            known[finding.code, finding.message] -= 1
            if known[finding.code, finding.message] < 0:
                new.append(finding)
        return new

    def _placed(
        self, found: Sequence[Finding], draft: drafts.Draft, replaced: node_blocks.Replaced | None
    ) -> list[Finding]:
        """`found` with line and column in the draft, as far as it shows what each is about."""
        addresses = [finding.address for finding in found if finding.address]
        places = _places(draft.content(), addresses, replaced) if addresses else {}
        name = str(draft.path)
        placed = []
        for finding in found:
            if finding.address in places:
                line, column = places[finding.address]
                placed.append(msgspec.structs.replace(finding, file=name, line=line, column=column))
            else:
                placed.append(finding)
        return sorted(placed, key=lambda finding: (finding.line, finding.column))


class Editing(ModelEditing):
    """A model in its file that was opened to be edited."""

    def __init__(self, path: Path, *, drop_orphans: bool = False) -> None:
        """Opens the model; blobs of a text need not be there.

        Args:
            path: its file, of any form.
            drop_orphans: leave out metadata whose element is not there any more, instead of refusing the text.

        Raises:
            OnnxJsonError: see `files.load`.
        """
        self._loaded = files.load(path, drop_orphans=drop_orphans, bind=False)
        super().__init__(self._loaded.model, path, drop_orphans=drop_orphans)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What the reader said of the file, such as that it has comments, which are not kept."""
        return self._loaded.warnings

    def read(self, draft: drafts.Draft) -> Proposal | None:
        """What a draft proposes; None where it says the very model that was opened.

        Raises:
            DecodeError, OnnxJsonError: see `read_model`.
        """
        read = self.read_model(draft)
        text = unified.digest_text(read.model)
        return None if text == self.text else Proposal(read.model, text, read.findings)

    def save(self, proposal: Proposal) -> None:
        """Saves what was proposed to the file, in the form it has, and keeps a backup of what it was.

        Raises:
            ChangedUnderneathError: another program has changed the file since it was opened.
            OnnxJsonError: see `files.save`; the file is as it was.
        """
        loaded = self._loaded
        files.save(proposal.model, self.path, loaded.format, weights="keep", expect=loaded.identity, backup=True)


def _without_format(draft: drafts.Draft) -> DecodeError:
    message = "the document does not say its format"
    hint = f'add the line "format": "{FORMAT}",'
    found = Finding(
        severity="error", code="no-format", message=message, hint=hint, file=str(draft.path), line=1, column=1
    )
    return DecodeError(str(found), [found])


def _places(
    text: bytes, addresses: Iterable[str], replaced: node_blocks.Replaced | None
) -> Mapping[str, tuple[int, int]]:
    return locate(text, addresses) if replaced is None else replaced.locate(text, addresses)


def _of_unknown(model: Model, unknown: Mapping[int, Digest]) -> Iterator[Finding]:
    for address, record in walk_with_addresses(model):
        digest = unknown.get(id(record))
        if digest is not None:
            yield Finding(
                severity="error",
                code="unknown-digest",
                address=address,
                message=f"the model has no {len(digest):,} bytes with the sha256 {digest.sha256[:12]}...",
                hint='keep dtype, shape and sha256 of a tensor together, or write its "values" or "base64"',
            )
