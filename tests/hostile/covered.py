"""``python -m tests.hostile.covered``: branches that no test reaches, of the modules that keep the promises.

It needs coverage (the extra ``fuzz``), and takes some minutes. Exits with 1 unless every branch is reached.
"""

import sys
import tempfile
from pathlib import Path

MODULES = (
    "onnxjson/model/display.py", "onnxjson/storage/external.py", "onnxjson/storage/external_files.py",
    "onnxjson/storage/identity.py", "onnxjson/storage/pruning.py", "onnxjson/storage/saving.py",
    "onnxjson/storage/backups.py", "onnxjson/running/expansion.py", "onnxjson/running/sandbox.py",
    "onnxjson/running/server_process.py", "onnxjson/running/worker.py", "onnxjson/running/worker_protocol.py",
    "tui/onnxjson_tui/session/journal.py", "tui/onnxjson_tui/session/recording.py",
    "tui/onnxjson_tui/session/recovery.py",
)  # fmt: skip

TESTS = (
    "tests/model/test_display.py", "tests/model/test_suggestions.py", "tests/storage/test_external.py",
    "tests/storage/test_external_files.py", "tests/storage/test_saving.py", "tests/storage/test_weights.py",
    "tests/hostile/bounds/test_bounds.py", "tests/running/test_sandbox.py", "tests/running/test_model_run.py",
    "tests/tui/test_session.py", "tests/storage/test_backups.py", "tests/storage/test_rare_errors.py",
    "tests/running/test_worker.py", "tests/running/test_worker_server.py",
    "tests/running/test_rare_workers.py", "tests/running/test_scratch.py", "tests/running/test_box.py",
    "tests/tui/test_journal.py", "tests/tui/test_rare_journals.py", "tests/tui/test_short_of_memory.py",
)  # fmt: skip


def main() -> int:
    """Run the tests and print what they do not reach; the exit code."""
    import coverage
    import pytest

    root = Path(__file__).parents[2]
    measured = coverage.Coverage(
        branch=True, include=[str(root / each) for each in MODULES], data_file=f"{tempfile.mkdtemp()}/coverage"
    )
    measured.start()
    code = pytest.main(["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not exhaustive", *TESTS])
    measured.stop()
    total = measured.report(show_missing=True, file=sys.stdout)
    return int(bool(code) or total < 100)


if __name__ == "__main__":
    sys.exit(main())
