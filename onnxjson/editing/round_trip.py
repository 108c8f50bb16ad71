"""Edit a model file as a text: write drafts, read them back, and save the result.

Big tensors are in the text as their SHA-256. An edited text gets the bytes of the model that was opened, so an edit
cannot change a weight that the text does not contain, and the file keeps its format.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from onnxjson.codecs import node_blocks, text_file
from onnxjson.codecs.reading.exact_reader import is_proto_json, locate, summary
from onnxjson.codecs.reading.model import FORMAT
from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.diffing import unified
from onnxjson.editing import drafts
from onnxjson.editing.applying import new_findings
from onnxjson.editing.drafts import Recognition, paths_of_nodes
from onnxjson.model.addresses import walk as walk_with_addresses
from onnxjson.model.document import Model, Tensor
from onnxjson.model.errors import DecodeError, Finding
from onnxjson.model.operator_checks import check_model
from onnxjson.model.payloads import SourceFile
from onnxjson.storage import files
from onnxjson.storage.urls import is_url
from onnxjson.storage.weights import bind_known, digest_of

_ENDINGS: Final = {False: ".onnx.json", True: ".nodes.json"}
"""Ending of a draft's name, by whether it has only some nodes."""

_HASHED: Final = 64 << 20
"""Maximum size of a file whose content is hashed when it is opened, so that a later chmod is not taken for a change."""


class Proposal(NamedTuple):
    """A valid text with another model than the one that was opened."""

    model: Model
    text: bytes
    """Its canonical text, with digests instead of weights."""
    findings: tuple[Finding, ...]
    """Parts of the draft that are lost, and mistakes of the model that are new."""


class Handout(NamedTuple):
    """The model in a draft."""

    model: Model
    findings: tuple[Finding, ...]
    """Parts of the draft that are lost, and mistakes of the model that are new."""
    nodes: Mapping[str, Sequence[str]]
    """Current address of each block of the draft in the edited model -> the addresses of its nodes in `model`."""


class ModelEditing:
    """A model that is edited, and drafts of it. Weights are read only if a draft needs them."""

    def __init__(self, model: Model, path: Path, *, drop_orphans: bool = False) -> None:
        """Prepare a model for editing; its path gives drafts their names."""
        self.model = model
        self.path = path
        self.drop_orphans = drop_orphans
        """Whether drafts may have metadata of elements that they do not have, which is dropped."""

    @cached_property
    def text(self) -> bytes:
        """Canonical text of the model, with digests instead of weights."""
        return unified.digest_text(self.model)

    def new_draft(self, addresses: Sequence[str] = (), *, knows_model: bool = True) -> drafts.Draft:
        """Write a draft of the whole text, or of the nodes at some addresses; adjacent nodes become one block.

        With `knows_model`, a later change of the model is detected, which needs the whole text.

        Raises:
            OnnxJsonError: it cannot be written, or there is no element at an address.
        """
        if not addresses:
            text = self.text
        else:
            addresses = node_blocks.block_addresses(addresses)
            text = node_blocks.write_blocks(self.model, addresses, self._remark(addresses))
        whole = self.text if knows_model else None
        ways = paths_of_nodes(self.model, addresses)
        draft = drafts.make(self.path, text, _ENDINGS[bool(addresses)], model=whole, addresses=addresses, ways=ways)
        draft.places = {each: each for each in addresses}
        return draft

    def find_places(self, draft: drafts.Draft) -> Mapping[str, str]:
        """Return the current address of each block of a draft: the address in the text -> the current one.

        Raises:
            AddressError: a node cannot be recognised, or the nodes of a block are no longer adjacent.
        """
        if draft.places is None:
            draft.places = Recognition(self.model).blocks(draft.addresses, draft.ways)
        return draft.places

    def _remark(self, addresses: Sequence[str]) -> str:
        count = sum(len(node_blocks.node_addresses(each)) for each in addresses)
        nodes = "a node" if count == 1 else f"{count:,} nodes"
        ways = []
        if any(node_blocks.is_range(each) for each in addresses):
            ways.append("a list replaces all its nodes, [] deletes them")
        if not all(node_blocks.is_range(each) for each in addresses):
            ways.append("[] deletes a node, [{...}, {...}] replaces it by two")
        return "; ".join([f"{nodes} of {self.path.name}", *ways])

    def is_of_another_model(self, draft: drafts.Draft) -> bool:
        """Whether the draft is known to be of another state of the model."""
        return draft.origin is not None and draft.origin.model not in ("", sha256_of(self.text))

    def read_model(self, draft: drafts.Draft) -> Handout:
        """Read the model in a draft, with the weights that the draft refers to.

        Raises:
            DecodeError: the text is not a model, or refers to weights that the model does not have; `findings` has the
            reasons.
            AddressError: its nodes cannot be recognised.
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
            read = text_file.read(SourceFile(draft.path), drop_orphans=self.drop_orphans)
            model, warnings = read.model, read.findings
        model = self._with_weights(model, draft, replaced)
        new = new_findings(self.model, model, check_model)
        return Handout(model, (*warnings, *self._placed(new, draft, replaced)), nodes)

    def compared(self, read: Handout) -> tuple[bytes, bytes]:
        """Return the canonical texts of the content of a draft, before and after the edit.

        They are equal if the edit changed only line breaks.
        """
        if not read.nodes:
            return self.text, unified.digest_text(read.model)
        return node_blocks.compared_blocks(self.model, read.model, read.nodes)

    def _with_weights(self, model: Model, draft: drafts.Draft, replaced: node_blocks.Replaced | None) -> Model:
        """Return `model` with the weights of the model that was opened."""
        result, unknown = bind_known(model, self.model)
        if unknown:
            found = self._placed(list(_of_unknown(model, unknown)), draft, replaced)
            raise DecodeError(summary(found), found)
        return result

    def _placed(
        self, findings: Sequence[Finding], draft: drafts.Draft, replaced: node_blocks.Replaced | None
    ) -> list[Finding]:
        """Add the line and column in the draft to findings, if the draft shows their element."""
        addresses = [finding.address for finding in findings if finding.address]
        find = locate if replaced is None else replaced.locate
        places = find(draft.content(), addresses) if addresses else {}
        placed = list(findings)
        for position, finding in enumerate(findings):
            if finding.address in places:
                line, column = places[finding.address]
                placed[position] = replace(finding, file=str(draft.path), line=line, column=column)
        return sorted(placed, key=lambda finding: (finding.line, finding.column))


class Editing(ModelEditing):
    """A model file that was opened for editing."""

    def __init__(self, path: Path, *, drop_orphans: bool = False) -> None:
        """Open the model, of any format; blobs of a text need not exist. For `drop_orphans` see `ModelEditing`.

        Raises:
            OnnxJsonError: see `files.load`.
        """
        self._loaded = files.load(path, drop_orphans=drop_orphans, bind=False)
        super().__init__(self._loaded.model, path, drop_orphans=drop_orphans)
        if self._loaded.identity.size <= _HASHED and not is_url(str(path)):
            _ = self._loaded.identity.sha256

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Warnings of the reader, such as that comments in the file are lost."""
        return self._loaded.warnings

    def read(self, draft: drafts.Draft) -> Proposal | None:
        """Read a draft; None if it has the model that was opened.

        Raises:
            DecodeError, OnnxJsonError: see `read_model`.
        """
        read = self.read_model(draft)
        text = unified.digest_text(read.model)
        return None if text == self.text else Proposal(read.model, text, read.findings)

    def save(self, proposal: Proposal) -> None:
        """Save a proposal to the file, in its format, and keep a backup of the file.

        Raises:
            ChangedUnderneathError: another program has changed the file since it was opened.
            OnnxJsonError: see `files.save`; the file is unchanged.
        """
        loaded = self._loaded
        files.save(proposal.model, self.path, loaded.format, weights="keep", expect=loaded.identity, backup=True)


def _without_format(draft: drafts.Draft) -> DecodeError:
    finding = Finding(
        severity="error",
        code="no-format",
        message="the document does not state its format",
        hint=f'add the line "format": "{FORMAT}",',
        file=str(draft.path),
        line=1,
        column=1,
    )
    return DecodeError(str(finding), [finding])


def _of_unknown(model: Model, unknown: Sequence[Tensor]) -> Iterator[Finding]:
    ids = set(map(id, unknown))
    for address, record in walk_with_addresses(model):
        held = digest_of(record) if isinstance(record, Tensor) and id(record) in ids else None
        if held is not None:
            digest = held[1]
            yield Finding(
                severity="error",
                code="unknown-digest",
                address=address,
                message=f"the model has no {len(digest):,} bytes with the sha256 {digest.sha256[:12]}...",
                hint='keep dtype, shape and sha256 of a tensor together, or write its "values" or "base64"',
            )
