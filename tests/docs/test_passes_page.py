"""The page of passes lists every pass there is.

Run as a program, it writes today's list into the page: ``python -m tests.docs.test_passes_page``.
"""

import re

from onnxjson.editing.declaration import summary
from onnxjson.editing.parameters import parameters
from onnxjson.optimizing.passes.catalogue import NAMES
from tests.docs.sessions import ROOT

PAGE = ROOT / "docs" / "passes.md"
_LIST = re.compile(r"(?<=<!-- passes -->\n).*?(?=<!-- /passes -->)", re.DOTALL)


def listed() -> str:
    """The list as the page has it: a table of passes, and for each that has parts a list of them."""
    rows = ["| pass | does | options | needs |", "|---|---|---|---|"]
    parts: list[str] = []
    for name, kind in NAMES.items():
        names = ", ".join([f"`{option.name}`" for option in parameters(kind)])
        needs = ", ".join(kind.packages) or "nothing more"
        rows.append(f"| `{name}` | {summary(kind)} | {names} | {needs} |")
        if kind.parts:
            parts += ["", f"Parts of `{name}`, {len(kind.parts)} of them:", "", "| part | does |", "|---|---|"]
            parts += [f"| `{part}` | {said} |" for part, said in kind.parts.items()]
    return "\n".join(["", *rows, *parts, "", ""])


def test_page_lists_every_pass_with_its_options_and_parts() -> None:
    found = _LIST.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == listed(), "python -m tests.docs.test_passes_page"


if __name__ == "__main__":
    PAGE.write_text(_LIST.sub(lambda _: listed(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
