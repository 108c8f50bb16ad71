"""Tools of the Model Context Protocol whose mistakes are answers, marked as errors: reason, remedy and exit code."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, Final

from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent
from pydantic import ValidationError

from onnxjson.model import errors
from onnxjson.model.display import listed, suggest, visible
from onnxjson.serving.answers import answer
from onnxjson.serving.permissions import Permissions

_PATHS: Final = ("model", "before", "after")
"""Parameters that name a model to read."""

_REMEDIES: Final[dict[type[Exception], str]] = {
    errors.UntrustedError: "Use a file that the permissions allow, or ask the user to allow more.",
    errors.WeightsMissingError: "Put the file with the weights next to the model.",
    errors.MissingInputError: "Give the path of a file that exists; a relative one begins in the server's folder.",
    errors.ParameterError: "Call list_edits with the name of the edit, or read the schema of the tool.",
    errors.SelectorError: "Call show or read_nodes for the names and operators that the model has.",
    errors.DecodeError: "Give the path of a model, .onnx or .onnx.json; of a broken one, check lists the mistakes.",
    errors.EditError: "Change the edits as the reason says and call plan_edit again; nothing was changed.",
    errors.LimitError: "Ask for less: one part of the model, or a more exact pattern.",
    errors.ChangedUnderneathError: "Call the tool again; it reads the file as it is now.",
    errors.WorkerError: "Call the tool again without the pass or the model that failed.",
}
"""What helps against an error, by its class; the first that fits."""


class StrictTool(Tool):
    """A tool that refuses arguments it does not have, which the base class drops, in words of its own."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        """Run the tool; see the base class."""
        known: dict[str, Any] = self.parameters.get("properties", {})
        missing = [name for name in self.parameters.get("required", ()) if name not in arguments]
        unknown = [name for name in arguments if name not in known]
        if not missing and not unknown:
            try:
                return await super().run(arguments, context, convert_result)
            except ToolError as error:
                if not isinstance(error.__cause__, ValidationError):
                    raise
                mistake = error.__cause__.errors(include_url=False)[0]
                place = visible(".".join(map(str, mistake["loc"])))
                return _refusal(errors.ParameterError(f"{self.name}: {place}: {visible(mistake['msg'])}"))
        hint = suggest(unknown[0], list(known)) if unknown else ""
        problem = f"no argument {visible(unknown[0])}" if unknown else f"the argument {missing[0]} is missing"
        words = f"{self.name}: {problem}; {hint or f'its arguments are {listed(list(known), len(known))}'}"
        return _refusal(errors.ParameterError(words))


def refusing(tool: Callable[..., str], may: Permissions, *, as_text: bool = False) -> Callable[..., Any]:
    """Return a tool that checks what it may read, and whose errors are answers.

    Args:
        as_text: whether an error is a text: resources have no mark for errors.
    """

    @wraps(tool)
    def call(*arguments: object, **named: object) -> Any:
        try:
            given = signature(tool).bind(*arguments, **named).arguments
            for name in _PATHS:
                if name in given:
                    may.require_model(str(given[name]))
            return tool(*arguments, **named)
        except (errors.OnnxJsonError, OSError, ValueError) as error:
            return _words(error) if as_text else _refusal(error)

    return call


def _refusal(error: Exception) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=_words(error))], is_error=True)


def _words(error: Exception) -> str:
    remedy = next((words for kind, words in _REMEDIES.items() if isinstance(error, kind)), "Correct the arguments.")
    return answer("Refused.", {"error": str(error), "remedy": remedy, "code": getattr(error, "exit_code", 65)})
