"""The report of any result as a text, for the methods of `onnxjson.model.methods` and for notebooks."""

import html
from typing import Literal

import msgspec

from onnxjson.codecs.wire_writing import message_size
from onnxjson.diffing.difference import Diff
from onnxjson.merging.merge import Merged
from onnxjson.model.document import Model
from onnxjson.model.index import index_of
from onnxjson.optimizing.provenance import provenance
from onnxjson.optimizing.trace_records import Trace
from onnxjson.rendering.conflict_text import side_values
from onnxjson.rendering.diff_html import diff_html
from onnxjson.rendering.diff_report import report
from onnxjson.rendering.exact import as_json
from onnxjson.rendering.json_reports import diff_json, trace_json
from onnxjson.rendering.markdown_reports import diff_markdown, trace_markdown
from onnxjson.rendering.run_report import run_data
from onnxjson.rendering.summary import Place, summarise
from onnxjson.rendering.summary_text import summary_lines
from onnxjson.rendering.trace_html import trace_html
from onnxjson.rendering.verification_report import verification_data
from onnxjson.running.checking import Findings
from onnxjson.running.model_run import RunResult
from onnxjson.running.verification import Verification

_WIDTH = 100


def report_text(result: object, form: Literal["json", "markdown", "html"]) -> str:
    """Return the report of a result in a form that its kind of result has."""
    match result:
        case Diff():
            shown = report(result, *result.names)
            if form == "markdown":
                return diff_markdown(shown)
            return "".join(diff_json(shown) if form == "json" else diff_html(shown))
        case Trace():
            if form == "markdown":
                return trace_markdown(result)
            found = provenance(result)
            return "".join(trace_json(result, found) if form == "json" else trace_html(result, found))
        case Model():
            summary = summarise(result, index_of(result), Place("", "onnx", message_size(result)))
            # The first line is about the file, which a model in memory does not have.
            lines = summary_lines(summary, _WIDTH)[1:]
            return f"<pre>{html.escape(chr(10).join(lines))}</pre>"
        case Verification():
            return as_json(verification_data(result, "base", "target"))
        case RunResult():
            return as_json(run_data(result, "model"))
        case Findings():
            return as_json([msgspec.structs.asdict(each) for each in result])
        case Merged():
            return as_json([{"id": each.id, "at": each.at, **side_values(each)} for each in result.conflicts])
    raise TypeError(f"{type(result).__name__} has no report")
