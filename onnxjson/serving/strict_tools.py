"""Tools of the Model Context Protocol whose mistakes are answers, marked as errors, with a reason and an exit code."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, Final

from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent

from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.errors import OnnxJsonError, ParameterError
from onnxjson.serving.answers import answer
from onnxjson.serving.permissions import Permissions

_PATHS: Final = ("model", "before", "after")
"""Parameters that name a file to read."""


class StrictTool(Tool):
    """A tool that refuses arguments it does not have; the base class drops them."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        """Run the tool; see the base class."""
        known: dict[str, Any] = self.parameters.get("properties", {})
        missing = [name for name in self.parameters.get("required", ()) if name not in arguments]
        unknown = [name for name in arguments if name not in known]
        if not missing and not unknown:
            return await super().run(arguments, context, convert_result)
        hint = suggest(unknown[0], list(known)) if unknown else ""
        problem = f"no argument {visible(unknown[0])}" if unknown else f"the argument {missing[0]} is missing"
        words = f"{self.name} has {problem}; {hint or f'its arguments are {listed(list(known), len(known))}'}"
        return _refusal(ParameterError(words))


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
                    may.require_readable(str(given[name]))
            return tool(*arguments, **named)
        except (OnnxJsonError, OSError, ValueError) as error:
            return _words(error) if as_text else _refusal(error)

    return call


def _refusal(error: Exception) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=_words(error))], is_error=True)


def _words(error: Exception) -> str:
    return answer("Refused.", {"error": str(error), "code": getattr(error, "exit_code", 65)})
