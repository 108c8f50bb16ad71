"""Open pages in a headless Chromium, and read what their scripts made of them."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

CHROMIUM: Final = shutil.which("chromium")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def opened(page: Path, width: int = 1280, script: str = "", *, dark: bool = False) -> str:
    """Return the document of a page after its scripts ran, and after `script`; the page itself is not changed."""
    assert CHROMIUM is not None
    text = page.read_text(encoding="utf-8")
    copy = page.with_name(f"opened-{page.name}")
    # The policy forbids other scripts, as it should.
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    copy.write_text(text.replace("</body>", f"<script>{script}</script>\n</body>"), encoding="utf-8")
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--hide-scrollbars"]
    words += [f"--user-data-dir={page.parent / 'profile'}", "--virtual-time-budget=20000", "--dump-dom"]
    if dark:
        words.append("--blink-settings=preferredColorScheme=0")
    done = subprocess.run([CHROMIUM, *words, copy.as_uri()], check=True, timeout=120, capture_output=True, text=True)
    return done.stdout


SHEET: Final = 688  # width of A4 in CSS pixels, without margins of 1.4 cm


def printed(page: Path, script: str, before: str = "") -> str:
    """Return the document of a page laid out on A4, for a reader of dark pages; `before` runs on the screen."""
    style = """
      dispatchEvent(new Event("beforeprint"));
      for (const style of document.querySelectorAll("style"))
        style.textContent = style.textContent.replaceAll("@media print", "@media all")
          .replaceAll("@media screen", "@media not all");
    """
    return opened(page, SHEET, before + style + script, dark=True)


def sheets(page: Path) -> int:
    """Return the number of pages that Chromium prints."""
    assert CHROMIUM is not None
    file = page.with_suffix(".pdf")
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={page.parent / 'profile'}"]
    words += ["--virtual-time-budget=20000", f"--print-to-pdf={file}", page.as_uri()]
    subprocess.run([CHROMIUM, *words], check=True, timeout=120, capture_output=True)
    return len(re.findall(rb"/Type /Page\b", file.read_bytes()))


def picture_bytes(page: str, folder: Path, width: int = 1280) -> int:
    """Return the size of a picture of a page in PNG: a few kB if it is blank."""
    assert CHROMIUM is not None
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--hide-scrollbars"]
    words += [f"--user-data-dir={folder / 'profile'}", f"--screenshot={folder / 'page.png'}", page]
    subprocess.run([CHROMIUM, *words], check=True, timeout=120, capture_output=True)
    return (folder / "page.png").stat().st_size


OVERFLOW: Final = """{
const wide = [...document.querySelectorAll("body *")].filter(each => {
  const place = each.getBoundingClientRect();
  if (!place.width || place.right <= innerWidth + 1) return false;
  for (let around = each.parentElement; around; around = around.parentElement)
    if (getComputedStyle(around).overflowX !== "visible") return false;
  return true;
});
const cut = [...document.querySelectorAll("body *")].filter(each => {
  const { overflowX, overflowY } = getComputedStyle(each);
  return overflowX !== "visible" && each.scrollWidth > each.clientWidth + 1
    || overflowY !== "visible" && each.scrollHeight > each.clientHeight + 1;
});
document.documentElement.dataset.cut = cut.map(each => each.tagName + "." + each.className).join(" ");
const controls = document.querySelectorAll("input, select, #bar button, figure button");
const shown = [...controls].filter(each => each.checkVisibility());
document.documentElement.dataset.controls = shown.map(each => each.tagName).join(" ");
document.documentElement.dataset.wide = wide.map(each => each.tagName + "." + each.className).join(" ");
document.documentElement.dataset.paper = getComputedStyle(document.body).backgroundColor;
}"""
"""Writes down which elements are wider than the window, where nothing around them scrolls, or cut off; which controls
are shown, and the page's colour."""


def written(document: str, name: str) -> str:
    """Return what a script wrote down as a data attribute of the document."""
    found = re.search(rf'<html[^>]* data-{name}="([^"]*)"', document)
    assert found is not None, document[:500]
    return found[1]
