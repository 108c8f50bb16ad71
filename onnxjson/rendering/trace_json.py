"""A trace for programs: onnxjson-trace/1 as trace.json has it, with where every node came from and went."""

import json
from collections.abc import Iterator
from typing import Any

from onnxjson.rendering.trace_text import Subject
from onnxjson.tracing.provenance import Provenance, Story
from onnxjson.tracing.records import Trace
from onnxjson.tracing.storing import tree


def trace_json(trace: Trace, found: Provenance, subjects: "list[Subject] | None" = None) -> Iterator[str]:
    """The text, ASCII; with `subjects` only these nodes have their stories."""
    origins, fates = found.origins, found.fates
    if subjects is not None:
        origins = {each.ref.address: each.story for each in subjects if each.is_of_result}
        fates = {each.ref.address: each.story for each in subjects if not each.is_of_result}
    whole = tree(trace)
    whole["origins"] = {address: _story(story) for address, story in origins.items()}
    whole["fates"] = {address: _story(story) for address, story in fates.items()}
    yield json.dumps(whole, indent=1, ensure_ascii=True, allow_nan=False)
    yield "\n"


def _story(story: Story) -> dict[str, Any]:
    touches = [{"step": each.step, "part": each.part, "kind": each.kind} for each in story.touches]
    return {"nodes": list(story.nodes), "parts": touches}
