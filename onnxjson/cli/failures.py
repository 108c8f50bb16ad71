"""Failures: from an exception to one line on standard error and an exit code.

::

    2    usage                       16   unresolved conflicts of a merge
                                     74   input or output failed
    65   malformed input             75   a file was changed underneath
    66   missing input               76   native analysis crashed
    70   internal error              77   permission denied
    71   limit exceeded              78   untrusted location
    73   cannot create               130  interrupted
"""

from collections.abc import Sequence
from typing import Final

import click

from onnxjson.cli import output
from onnxjson.model.errors import DecodeError, EncodeError, Finding, OnnxJsonError

USAGE: Final = 2
MISSING: Final = 66
INTERNAL: Final = 70
LIMIT: Final = 71
INPUT_OUTPUT: Final = 74
PERMISSION: Final = 77
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141
"""The exit code that a shell reports for a program that SIGPIPE ended."""

SHOWN: Final = 20
"""Maximum number of findings printed before the line of the failure; `onnxjson check` prints all."""


def is_internal(error: Exception) -> bool:
    """Whether the failure is a bug of this program."""
    return not isinstance(error, (OnnxJsonError, click.ClickException, click.Abort, OSError, MemoryError))


def report(error: Exception) -> int:
    """Print what failed on standard error; return the exit code."""
    if isinstance(error, click.Abort):
        output.talk("onnxjson: interrupted", always=True)
        return INTERRUPTED
    if isinstance(error.__cause__, BrokenPipeError):
        output.abandon_stdout()
        return PIPE_CLOSED
    code, text = _code(error), _text(error)
    if isinstance(error, (DecodeError, EncodeError)) and error.findings:
        output.findings(error.findings, limit=SHOWN)
        if isinstance(error, DecodeError):
            text = _many(error.findings)
    output.failure(code, text)
    return code


def _many(found: Sequence[Finding]) -> str:
    """The last line, below the findings."""
    errors = output.counted(sum(finding.severity == "error" for finding in found), "error")
    return f"{found[0].file or 'the text'} has {errors}; correct the places listed above"


def _code(error: Exception) -> int:
    match error:
        case OnnxJsonError():
            return error.exit_code
        case click.ClickException():
            return USAGE
        case MemoryError():
            return LIMIT
        case FileNotFoundError():
            return MISSING
        case PermissionError():
            return PERMISSION
        case OSError():
            return INPUT_OUTPUT
        case _:
            return INTERNAL


def _text(error: Exception) -> str:
    match error:
        case OnnxJsonError():
            return str(error)
        case click.ClickException():
            context = getattr(error, "ctx", None)
            command = context.command_path if context is not None else "onnxjson"
            return f"{error.format_message().rstrip('.')}{_where_it_goes(error, context)}; see `{command} --help`"
        case MemoryError():
            return "not enough memory; close other programs, or use a machine with more memory"
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            return f"{place}{error.strerror or error}; the command stopped here"
        case _:
            return (
                f"internal error ({type(error).__name__}: {error}); "
                "please report it with the command and its output under ONNXJSON_DEBUG=1"
            )


def _where_it_goes(error: click.ClickException, context: click.Context | None) -> str:
    """Advice for a user who names the file to write after the one to read, as for `cp` and most converters."""
    is_extra = isinstance(error, click.UsageError) and "unexpected extra argument" in error.message
    if not is_extra or context is None or not any("-o" in each.opts for each in context.command.params):
        return ""
    return "; name the file to write with -o"
