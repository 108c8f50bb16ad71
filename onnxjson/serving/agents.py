"""The server of the Model Context Protocol, on the official SDK (extra ``mcp``)."""

from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from onnxjson.model.errors import MissingInputError, OnnxJsonError
from onnxjson.serving.answers import INSTRUCTIONS, answer
from onnxjson.serving.tools import Tools

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer


def server(writable: Path | None = None) -> "MCPServer":
    """Return the server with its tools.

    Args:
        writable: the folder in which files may be written; None: nowhere.

    Raises:
        MissingInputError: the extra is not installed.
    """
    try:
        from mcp.server.mcpserver import MCPServer, ResourceSecurity
    except ImportError as error:
        raise MissingInputError("the package mcp is not installed: pip install 'mcp>=2.3'") from error
    made = MCPServer("onnxjson", instructions=INSTRUCTIONS, version=version("onnxjson"), log_level="ERROR")
    for tool in Tools(writable).all():
        made.tool(structured_output=False)(_explained(tool))
    # Tools read any file, too; the paths and addresses in a URI begin with a slash.
    anything = ResourceSecurity(exempt_params={"model", "address", "name"})
    for template, read in Tools(writable).resources().items():
        made.resource(template, description=read.__doc__, security=anything)(_explained(read))
    return made


def _explained(tool: Callable[..., str]) -> Callable[..., str]:
    """A tool whose errors are answers, with the exit code of the command line."""

    @wraps(tool)
    def call(*arguments: object, **named: object) -> str:
        try:
            return tool(*arguments, **named)
        except (OnnxJsonError, OSError, ValueError) as error:
            return answer("Refused.", {"error": str(error), "code": getattr(error, "exit_code", 65)})

    return call
