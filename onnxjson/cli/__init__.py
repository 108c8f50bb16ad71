"""The command line: parsing and printing, one module per command.

Here: a module per command, or for a few of one subject, and the parts that several share: `overview` lists the
commands, `group` calls them, `output` and `reports` print, `options` and `paths` read arguments. What a command writes
for other programs goes to standard output, messages for the user to standard error.

Not here: anything that Python users need too. A command only parses, calls another room and prints.

Read first: `overview` (the table of commands), `convert` (a command from start to end), `output` (messages, errors and
exit codes).
"""

import signal
import sys


def main() -> None:
    """Run the command line of this process and exit with its code."""
    try:
        from onnxjson.cli.group import onnxjson

        onnxjson.main(prog_name="onnxjson")
    except KeyboardInterrupt:  # before or after the part that answers it with a line
        sys.exit(130)
    finally:
        # Nothing is left to interrupt, and Python would print a traceback of its own end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
