"""The command line: parsing and printing, one module per command.

Here: a module per command, or for a few of one subject, and the parts that several share: `overview` lists the
commands, `group` calls them, `output` and `reports` print, `options` and `paths` read arguments. What a command writes
for other programs goes to standard output, messages for the user to standard error.

Not here: anything that Python users need too. A command only parses, calls another room and prints.

Read first: `overview` (the table of commands), `convert` (a command from start to end), `output` (messages, errors and
exit codes).
"""

import atexit
import os
import sys
from contextlib import suppress


def main() -> None:
    """Run the command line of this process and exit with its code."""
    codes: list[int] = []
    atexit.register(_leave, codes)  # as the first, so that it is called as the last
    try:
        _help_alone()
        from onnxjson.cli.group import onnxjson

        onnxjson.main(prog_name="onnxjson")
    except KeyboardInterrupt:  # before or after the part that answers it with a line
        codes.append(130)
        sys.exit(130)
    except SystemExit as end:
        if isinstance(end.code, int):  # a text is printed by Python itself
            codes.append(end.code)
        raise


def _help_alone() -> None:
    """Print the help and exit if that is all that is asked for, and standard output takes it."""
    if sys.argv[1:] in (["--help"], ["-h"]) and sys.stdout is not None:
        from onnxjson.cli.overview import help_text

        with suppress(OSError):
            sys.stdout.write(help_text() + "\n")
            sys.stdout.flush()
            sys.exit(0)


def _leave(codes: list[int]) -> None:
    """End the process without taking everything in it apart, which takes as long as a tenth of a short command."""
    with suppress(OSError, ValueError, AttributeError, IndexError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(codes[0])
