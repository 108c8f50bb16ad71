"""The command line: parsing and printing, one file a command.

What a command writes for other programs goes to standard output, what it says to a person to standard error.
"""

import sys


def main() -> None:
    """Run the command line of this process and exit with its code."""
    try:
        from onnxjson.cli.group import onnxjson

        onnxjson.main(prog_name="onnxjson")
    except KeyboardInterrupt:  # before or after the part that answers it with a line
        sys.exit(130)
