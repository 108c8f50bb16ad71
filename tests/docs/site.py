"""What the site has beside docs/: pages for the files of the repository to which the pages link."""

import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).resolve().parents[2]
_OUTSIDE: Final = re.compile(r"\]\(\.\./([\w./-]+\.(?:md|py))(#[\w-]+)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each file outside docs/ to which a page links, and for the changelog."""
    texts = [file.content_string for file in files.documentation_pages()]
    for name in sorted({"CHANGELOG.md", *(match[1] for text in texts for match in _OUTSIDE.finditer(text))}):
        text = (ROOT / name).read_text(encoding="utf-8")
        content = re.sub(r"\]\(docs/", "](", text) if name.endswith(".md") else f"# {name}\n\n```python\n{text}```\n"
        files.append(File.generated(config, _page_of(name), content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links to files outside docs/ lead to their pages."""
    return _OUTSIDE.sub(lambda match: f"]({_page_of(match[1])}{match[2] or ''})", markdown)


def _page_of(name: str) -> str:
    # A page called README would be the start page, which is that of docs/.
    return "install.md" if name == "README.md" else f"{Path(name).stem}.md"
