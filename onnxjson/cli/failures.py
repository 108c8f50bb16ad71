"""Failures of commands: a failure becomes one line on standard error and an exit code.

::

    2    usage                       16   unresolved conflicts of a merge
                                     74   input or output failed
    65   malformed input             75   a file was changed underneath
    66   missing input               76   native analysis crashed
    70   internal error              77   permission denied
    71   limit exceeded              78   untrusted location
    73   cannot create               130  interrupted
"""

import difflib
import os
import re
import shlex
import sys
import traceback
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from onnxjson.cli import output
from onnxjson.model.display import counted, unprintable, visible

if TYPE_CHECKING:  # loaded where it is needed: --help is printed without msgspec
    from onnxjson.model.errors import OnnxJsonError


USAGE: Final = 2
MISSING: Final = 66
INTERNAL: Final = 70
LIMIT: Final = 71
INPUT_OUTPUT: Final = 74
PERMISSION: Final = 77
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141
"""The exit code that a shell reports for a program that SIGPIPE ended."""

_OS_CODES: Final = {FileNotFoundError: MISSING, PermissionError: PERMISSION}


def is_internal(error: Exception) -> bool:
    """Whether the failure is a bug of this program."""
    from onnxjson.model.errors import OnnxJsonError, is_out_of_memory

    expected = (OnnxJsonError, click.ClickException, click.Abort, OSError)
    return not isinstance(error, expected) and not is_out_of_memory(error)


def report_failure(error: Exception) -> int:
    """Print what failed on standard error; return the exit code."""
    from onnxjson.model.errors import DecodeError, EncodeError

    if isinstance(error, click.Abort):
        output.talk("onnxjson: interrupted", always=True)
        return INTERRUPTED
    if isinstance(error.__cause__, BrokenPipeError):
        output.abandon_stdout()
        return PIPE_CLOSED
    if is_internal(error) and os.environ.get("ONNXJSON_DEBUG") == "1":
        for text in "".join(traceback.format_exception(error)).splitlines():
            output.talk(text, always=True)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return USAGE
    code, text = _code_and_text(error)
    try:
        unprintable()
    except OSError as unreadable:  # nothing can be opened any more, not even a file of this program
        sys.stderr.write(f"onnxjson: error[{INPUT_OUTPUT}]: {unreadable.strerror}; the system opens no more files\n")
        return INPUT_OUTPUT
    with suppress(OSError):  # if standard error cannot be written, only the exit code reports the failure
        if isinstance(error, (DecodeError, EncodeError)) and error.findings:
            output.findings(error.findings, limit=output.SHOWN)
            if isinstance(error, DecodeError):
                errors = counted(sum(finding.severity == "error" for finding in error.findings), "error")
                text = f"{error.findings[0].file or 'the text'} has {errors}; correct the places listed above"
        output.failure(code, text)
    return code


def leave_or_report(path: Path, error: "OnnxJsonError") -> int:
    """Report a failure, or that a file is left alone: other programs use the ending .onnx.json too."""
    from onnxjson.model.errors import OtherJsonError

    if not isinstance(error, OtherJsonError) or not path.name.endswith(".onnx.json"):
        return report_failure(error)
    output.talk(f"{error}; skipped")
    return 0


def _code_and_text(error: Exception) -> tuple[int, str]:
    """The exit code of a failure, and its line."""
    from onnxjson.model.errors import OnnxJsonError, is_out_of_memory

    match error:
        case OnnxJsonError():
            return error.exit_code, _with_model(str(error))
        case click.ClickException():
            context = getattr(error, "ctx", None)
            command = context.command_path if context is not None else "onnxjson"
            advice = _meant_option(error, context) or _missing(error, context) or error.format_message().rstrip(".")
            advice += "" if "write " in advice else _meant_value(error, context)
            text = f"{advice}{_where_it_goes(error, context)}; see `{command} --help`"
            return USAGE, _with_name(text)
        case _ if is_out_of_memory(error):
            return LIMIT, "not enough memory; close other programs, or use a machine with more memory"
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            code = _OS_CODES.get(type(error), INPUT_OUTPUT)
            return code, f"{place}{error.strerror or error}; the command stopped here"
        case _:
            return INTERNAL, (
                f"internal error ({type(error).__name__}: {error}); "
                "please report it with the command and its output under ONNXJSON_DEBUG=1"
            )


def _with_model(text: str) -> str:
    """The message with the model that was typed, if it is one, for MODEL in the commands that it names."""
    models = _typed_models()
    if len(models) != 1 or re.search(r"\bFILE\b", text):
        return text
    shown = visible(shlex.quote(models[0]), None)
    return re.sub(r"(`onnxjson \w+) MODEL\b", lambda match: f"{match[1]} {shown}", text)


def _typed_models() -> list[str]:
    """The models that were typed, each once."""
    from onnxjson.cli.overview import MODELS

    return list(dict.fromkeys([word for word in output.typed if word.endswith(MODELS) and os.path.isfile(word)]))


def _with_name(text: str) -> str:
    """The message about a value without a name, with one for NAME: of a dimension or an input of the typed model."""
    wanted = re.search("--(dim|shape|tolerance)'?[: ].*NAME=", text)
    if wanted and wanted[1] == "tolerance":
        return text.replace("NAME=", "all=")
    if wanted is None or not (models := _typed_models()):
        return text
    from onnxjson.model.errors import OnnxJsonError
    from onnxjson.storage.api import load

    with suppress(OnnxJsonError):
        inputs = load(models[0]).inputs
        dims = [dim for value in inputs for dim in value.shape or () if isinstance(dim, str)]
        names = dims if wanted[1] == "dim" else [value.name or "" for value in inputs]
        return text.replace("NAME=", f"{visible(names[0], None)}=") if names else text
    return text


def _meant_option(error: click.ClickException, context: click.Context | None) -> str:
    """The message about an option that has another name here, or whose value is missing; or ""."""
    from onnxjson.cli.overview import meant_by_option

    if context is None or not isinstance(error, click.NoSuchOption | click.BadOptionUsage):
        return ""
    name = error.option_name
    options = {word: each for each in context.command.get_params(context) for word in each.opts if word[0] == "-"}
    if name in options:
        metavar = options[name].make_metavar(context)
        return f"{name} has no value; write {name} {metavar}" if "requires an argument" in error.message else ""
    words = output.typed[context.command_path.count(" ") :]
    advice = meant_by_option(name, options, context.command.name or "", words)
    if advice:
        return f"there is no option {name}; {advice}"
    near = " or ".join([repr(each) for each in difflib.get_close_matches(name, options, cutoff=0.75)])
    return f"No such option {name!r}" + (f". Did you mean {near}?" if near else "")


def _meant_value(error: click.ClickException, context: click.Context | None) -> str:
    """Advice where the value of an option is a pass, or fits an option that has this name in other programs; or ""."""
    from onnxjson.cli.overview import meant_by_option

    if context is None or not isinstance(error, click.BadParameter) or not isinstance(error.param, click.Option):
        return ""
    words = output.typed[context.command_path.count(" ") :]
    for option, value in pairwise(words):
        if option in error.param.opts:
            known = {name for each in context.command.get_params(context) for name in each.opts}
            command = context.command.name or ""
            both = [meant_by_option(word, known, command, words) for word in (option, value)]
            fitting = [advice for advice in both if advice.startswith(("write -", "write `onnxjson optimize"))]
            return "".join([f"; {advice}" for advice in fitting[:1]])
    return ""


def _missing(error: click.ClickException, context: click.Context | None) -> str:
    """The message about what was not given: arguments, with all that the command takes, or an option; or ""."""
    if not isinstance(error, click.MissingParameter) or context is None or error.param is None:
        return ""
    pieces = [piece for piece in context.command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    is_argument = isinstance(error.param, click.Argument)
    for parameter in context.command.params if is_argument else [error.param]:
        if parameter.required and isinstance(parameter, click.Option):
            pieces += [min(parameter.opts, key=len), parameter.make_metavar(context)]
    what = error.param.make_metavar(context) if is_argument else pieces[-2]
    typed = output.typed[context.command_path.count(" ") :]
    if error.param.opts == ["--base"] and typed and typed[0][:1] not in ("", "-") and not os.path.lexists(typed[0]):
        typed, pieces = typed[1:], ["--base", typed[0]]  # `gate main`: no path is called so
    given = visible(shlex.join(typed), None)
    words = pieces if is_argument else [given, *pieces[-2:]]
    return f"{what} is missing; write {context.command_path} {' '.join(filter(None, words))}"


def _where_it_goes(error: click.ClickException, context: click.Context | None) -> str:
    """Advice for a user who names the file to write after the one to read, as for `cp`; or arrays without --input."""
    extra = re.search(r"unexpected extra arguments? \((\S+?)[ )]", getattr(error, "message", ""))
    names = [] if extra is None or context is None else [name for each in context.command.params for name in each.opts]
    if extra is None or "-o" not in names:
        return ""
    word = visible(extra[1], None)
    if "--input" in names and word.endswith((".npy", ".npz", ".pb")):
        return f"; to give an array as input write --input {word}"
    return "; name the file to write with -o" + (f", which replaces {word}" if os.path.lexists(extra[1]) else "")
