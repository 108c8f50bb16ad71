"""What the pages show is what the commands print.

Run as a program, it writes today's output into the pages: ``python -m tests.docs.test_sessions``.
"""

import tempfile
from pathlib import Path

import pytest

from tests.docs.sessions import PAGES, fits, rewritten, run, steps_of

WITH_SESSIONS = [page for page in PAGES if list(steps_of(page))]


@pytest.mark.timeout(400)  # a page may have thirty commands
@pytest.mark.parametrize("page", WITH_SESSIONS, ids=lambda page: page.name)
def test_sessions_of_the_page_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "session"
    folder.mkdir()
    for step in steps_of(page):
        printed = run(step.command, folder)
        assert fits(step.expected, printed), f"{page.name}:{step.line}: $ {step.command}\n{printed}"


def test_readme_and_the_task_pages_have_sessions() -> None:
    tasks = ("convert", "diff", "editing-by-hand", "external-data", "git", "show", "tutorial", "weights-apart")
    assert {"README.md", *(f"{task}.md" for task in tasks)} <= {page.name for page in WITH_SESSIONS}


def _rewrite_pages() -> None:
    for page in WITH_SESSIONS:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary, "session")
            folder.mkdir()
            page.write_text(rewritten(page, folder), encoding="utf-8")


if __name__ == "__main__":
    _rewrite_pages()
