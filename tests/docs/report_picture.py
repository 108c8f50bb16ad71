"""``python -m tests.docs.report_picture``: the picture of the HTML report in the tutorial, taken by chromium."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.docs.sessions import ROOT, run

PICTURE = ROOT / "docs" / "images" / "diff-report.png"
_REPORT = """
cp {root}/tests/models/mobile_ts.onnx mobile.onnx
onnxjson optimize mobile.onnx -p onnxsim -o small.onnx
onnxjson diff mobile.onnx small.onnx --nodes-only --test-rewrites --exit-zero -o report.html
"""


def main() -> int:
    """Write the picture; the report is that of the tutorial."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is not installed", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "session")
        folder.mkdir()
        run(_REPORT.format(root=ROOT), folder)
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars"]
        words += [f"--user-data-dir={temporary}/chromium", "--window-size=1000,1180", f"--screenshot={PICTURE}"]
        subprocess.run([chromium, *words, f"file://{folder}/report.html"], check=True, timeout=120, capture_output=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
