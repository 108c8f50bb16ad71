"""The documentation builds into a site without a warning, and nothing on it loads from another host."""

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.sessions import ROOT


def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=110)
    assert made.returncode == 0, made.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    sources = sorted((ROOT / "docs").glob("*.md"))
    assert len(pages) > len(sources)
    assert (tmp_path / "search" / "search_index.json").stat().st_size > 100_000
    foreign = re.compile(r'<(?:script|img|link|iframe)\b[^>]*(?:src|href)="(?:https?:)?//')
    for page in pages:
        assert not foreign.search(page.read_text("utf-8"))
