"""Where a text in an editor differs from its model in HEAD, by structure."""

from typing import Final

from onnxjson.diffing.difference import diff
from onnxjson.diffing.events import Event, Member
from onnxjson.git.repository import open_revision
from onnxjson.model.display import visible
from onnxjson.model.errors import Finding, MissingInputError
from onnxjson.running.checking import placed
from onnxjson.serving.edited_text import EditedText

_MOST: Final = 1_000
_GRAPH: Final = "/graph"


def changes_since_head(text: EditedText) -> list[dict[str, object]]:
    """Return line (from 0), "added", "removed" or "changed", and a description of each change; none without git.

    Raises:
        OnnxJsonError: git or the model in HEAD cannot be read.
    """
    if not text.is_valid or text.model is None:
        return []
    try:
        with open_revision(f"HEAD:./{text.file.name}", text.file.parent) as head:
            events = diff(head.loaded.model, text.model).events
    except MissingInputError:  # no repository, or HEAD does not have the file
        return []
    found = [each for event in events for member in event.members for each in _of_member(text, event, member)]
    places = placed(text.text.encode("utf-8", "surrogatepass"), found[:_MOST])
    return [{"line": max(each.line - 1, 0), "kind": each.code, "text": visible(each.message, 300)} for each in places]


def _of_member(text: EditedText, event: Event, member: Member) -> list[Finding]:
    """Return the changes of one place; a renaming of many values is reported at each name."""
    kind = "changed" if member.base and member.target else "added" if member.target else "removed"
    if event.kind == "renamed" and member.target == (_GRAPH,):
        found = [(f"was {each.base}", "".join(f"/{part}" for part in places[0].path))
                 for each in member.details if (places := text.places.get(each.target or ""))]  # fmt: skip
    else:
        were = [f"{each.what} was {each.base}" for each in member.details if each.base is not None]
        message = "; ".join(were) or f"{event.kind}: {event.pattern}"
        found = [(message, each) for each in member.target[:_MOST] or (_GRAPH,)]
    return [Finding(severity="warning", code=kind, message=message, address=address) for message, address in found]
