"""Failures: from an exception to one line on standard error and an exit code.

::

    2    usage                       16   conflicts of a merge stand
                                     74   input or output failed
    65   malformed input             75   a file was changed underneath
    66   missing input               76   native analysis crashed
    70   a mistake of this program   77   permission denied
    71   a limit                     78   a location that is not trusted
    73   cannot create               130  interrupted
"""

from collections.abc import Sequence
from typing import Final

import click

from onnxjson.checking import Finding
from onnxjson.cli import output
from onnxjson.errors import DecodeError, EncodeError, OnnxJsonError

USAGE: Final = 2
MISSING: Final = 66
INTERNAL: Final = 70
LIMIT: Final = 71
INPUT_OUTPUT: Final = 74
PERMISSION: Final = 77
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141
"""What a shell reports of a program that SIGPIPE ended."""

SHOWN: Final = 20
"""Findings printed before the line of the failure; `onnxjson check` prints all."""


def is_internal(error: Exception) -> bool:
    """Whether the failure is a mistake of this program."""
    return not isinstance(error, (OnnxJsonError, click.ClickException, click.Abort, OSError, MemoryError))


def report(error: Exception) -> int:
    """Say what failed, on standard error; returns the exit code."""
    if isinstance(error, click.Abort):
        output.talk("onnxjson: interrupted")
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
    """The last line after findings that stand above it."""
    errors = output.counted(sum(finding.severity == "error" for finding in found), "error")
    return f"{found[0].file or 'the text'} has {errors}; correct the text where it says so above"


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
            return "not enough memory; close other programs, or use a machine with more"
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            return f"{place}{error.strerror or error}; nothing more was done"
        case _:
            return (
                f"a mistake in onnxjson itself ({type(error).__name__}: {error}); "
                "please report it with the command and what ONNXJSON_DEBUG=1 prints"
            )


def _where_it_goes(error: click.ClickException, context: click.Context | None) -> str:
    """What to do for who names a file to write after the one to read, as `cp` and most converters have it."""
    is_extra = isinstance(error, click.UsageError) and "unexpected extra argument" in error.message
    if not is_extra or context is None or not any("-o" in each.opts for each in context.command.params):
        return ""
    return "; a file to write is named with -o"
