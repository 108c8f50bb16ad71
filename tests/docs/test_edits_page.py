"""The table of edits in docs/edits.md is made from their declarations.

Run as a program, it writes the table of today: ``python -m tests.docs.test_edits_page``.
"""

import re
from typing import Final

from onnxjson.editing.catalogue import EDITS
from onnxjson.editing.declaration import Edit, name_of, positional, summary
from onnxjson.editing.parameters import COMMON, parameters
from onnxjson.editing.values import plain_value, write_value
from tests.docs.sessions import ROOT

PAGE: Final = ROOT / "docs" / "edits.md"

_TABLE: Final = re.compile(r"(<!-- edits:[^\n]*-->\n).*?(<!-- end of edits -->)", re.DOTALL)


def table() -> str:
    """A row for each edit."""
    rows = [f"| `{name_of(edit)}` | {_parameters(edit)} | {_escaped(summary(edit))} |" for edit in EDITS]
    return "\n".join(["| edit | parameters | what it does |", "|---|---|---|", *rows])


def _parameters(edit: type[Edit]) -> str:
    first = positional(edit)
    found = [*first, *[each for each in parameters(edit) if each not in first and each.field not in COMMON]]
    shown = []
    for parameter in sorted(found, key=lambda each: not each.required):
        is_said = parameter.default not in ((), {}) and not any(parameter.default is each for each in (None, False))
        default = write_value(plain_value(parameter.default)) if is_said and not parameter.required else ""
        text = f"`{parameter.name}{'=' if default else ''}{default}`"
        shown.append(f"**{text}**" if parameter.required else text)
    return ", ".join(shown)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def written(page: str) -> str:
    """The page with the table of today."""
    return _TABLE.sub(lambda match: f"{match[1]}{table()}\n{match[2]}", page)


def test_table_is_that_of_the_declarations() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert _TABLE.search(page)
    assert page == written(page), "python -m tests.docs.test_edits_page writes it"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
