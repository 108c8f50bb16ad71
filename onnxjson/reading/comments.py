"""Comments of a text: they are read, and not kept when it is written again, which is worth saying."""

import re
from typing import Final

from onnxjson.checking import Finding
from onnxjson.reading.positions import Lines

CODE: Final = "comments-not-kept"

_STRING_OR_COMMENT: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(?P<comment>//[^\n]*)', re.DOTALL)


def of_comments(text: bytes, file: str) -> tuple[Finding, ...]:
    """A warning at the first comment of a text that was read without errors; nothing where there is none."""
    if b"//" not in text:
        return ()
    decoded = text.decode("utf-8")
    starts = [match.start() for match in _STRING_OR_COMMENT.finditer(decoded) if match["comment"]]
    if not starts:
        return ()
    line, column = Lines(decoded).place(starts[0])
    count = f"{len(starts):,} comments" if len(starts) > 1 else "a comment"
    message = f"the text has {count}, which a text or model made from it does not keep"
    return (Finding(severity="warning", code=CODE, message=message, file=file, line=line, column=column),)
