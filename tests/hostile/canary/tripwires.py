"""Tripwires that an executed payload sets off: a folder for files, a local port, a secret of the environment.

Payloads are harmless: they create a file in the folder of the test, connect to 127.0.0.1, or copy a variable that the
test has set. Every planted payload has its own mark, so a hit identifies payload and position.
"""

import os
import re
import shutil
import socket
import sys
import threading
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from markdown_it import MarkdownIt

VARIABLE: Final = "CANARY_SECRET"
SECRET: Final = "feathers-of-a-canary-that-must-stay-where-they-are"

MARK: Final = re.compile(r"canary\d{6}")

_ESCAPES: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
"""Characters that a terminal acts on, in UTF-8; newlines and tabs are not among them."""

_FIRE: Final = """#!/bin/sh
# fire EFFECT MARK: what a payload does when it is executed.
case $1 in
file) : >'{marks}'/"$2" ;;
port) exec '{python}' -I -S -c 'import socket, sys
socket.create_connection(("127.0.0.1", {port})).sendall(sys.argv[1].encode())' "$2" ;;
secret) printf %s "$CANARY_SECRET" >'{marks}'/"$2" ;;
esac
"""


class Tripwires:
    """A folder for marks, a listener, a secret, and a program that sets them off; use it in a ``with`` statement."""

    def __init__(self, folder: Path) -> None:
        if re.search(r"[^\w./-]", str(folder)):
            raise ValueError(f"{folder} has characters that a shell splits or expands; payloads do not quote")
        self.marks = folder / "marks"
        self.fire = folder / "fire"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._asked: list[str] = []
        self._old = os.environ.get(VARIABLE)
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Self:
        self.marks.mkdir(parents=True)
        self.fire.write_text(_FIRE.format(marks=self.marks, python=sys.executable, port=self.port))
        self.fire.chmod(0o755)
        (self.marks.parent / "secret").write_text(SECRET)
        os.environ[VARIABLE] = SECRET
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._old is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = self._old
        self._say("end")
        self._thread.join(10)
        self._listener.close()

    def _listen(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                connection.settimeout(0.5)
                try:
                    received = connection.recv(4096).decode("utf-8", "replace")
                except TimeoutError:
                    received = ""
                if received in ("end", "are all served?"):
                    if received == "end":
                        return
                    continue
                found = MARK.search(received)
                self._asked.append(found[0] if found else f"an unknown caller: {received[:60]!r}")

    def _say(self, words: str) -> None:
        """Send words to the listener, and wait until it has served this and all earlier callers."""
        with socket.create_connection(("127.0.0.1", self.port)) as caller:
            caller.sendall(words.encode())
            caller.recv(1)

    def sprung(self) -> list[str]:
        """Return the marks of payloads that created their file or connected to the port since the last call."""
        self._say("are all served?")
        names = sorted(path.name for path in self.marks.iterdir())
        asked, self._asked = self._asked, []
        shutil.rmtree(self.marks)
        self.marks.mkdir()
        return [*names, *asked]


def leaks(outputs: Iterable[bytes]) -> list[str]:
    """Return the mark after each occurrence of the secret in outputs, or a description if there is no mark."""
    found = []
    for output in outputs:
        for place in re.finditer(re.escape(SECRET.encode()), output):
            after = output[place.end() : place.end() + 40].decode("utf-8", "replace")
            mark = MARK.search(after)
            found.append(mark[0] if mark else "the secret without a mark")
    return found


def escapes(outputs: Iterable[bytes]) -> list[str]:
    """The marks next to characters that a terminal acts on."""
    found = []
    for output in outputs:
        for place in _ESCAPES.finditer(output):
            mark = MARK.search(output[place.end() : place.end() + 60].decode("utf-8", "replace"))
            found.append(mark[0] if mark else f"raw {place[0]!r} without a mark")
    return found


class _Page(HTMLParser):
    """Collects marks that are markup: in a tag's name, in attributes that act, inside a script or a style."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._raw = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._raw += tag in ("script", "style")
        acting = [tag]
        for name, value in attrs:
            acting.append(name)
            address = re.sub(r"[\x00-\x20]", "", value or "").lower()
            if name.startswith("on") or name == "style" or address.startswith(("javascript:", "data:", "http:", "//")):
                acting.append(value or "")
        self.found += MARK.findall(" ".join(acting))

    def handle_endtag(self, tag: str) -> None:
        self._raw -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if self._raw > 0:
            self.found += MARK.findall(data)

    def handle_comment(self, data: str) -> None:
        self.found += MARK.findall(data)


def acting_markup(html: str) -> list[str]:
    """The marks that a browser would take as markup or code, and not as text."""
    page = _Page()
    page.feed(html)
    page.close()
    return page.found


def acting_markdown(markdown: str) -> list[str]:
    """The same of Markdown, in which HTML is markup."""
    return acting_markup(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))
