"""What a comparison of a variant with its original means for a row of a benchmark."""

import math
from typing import Any

from onnxjson.benchmarking.rows import Verdict
from onnxjson.display import visible
from onnxjson.running.value_comparison import badness, error_share
from onnxjson.running.verification import Verification


def judged(found: Verification) -> dict[str, Any]:
    """What a row says of a variant: verdict, differences, and why something is missing."""
    verdicts = {run.verdict for run in found.runs}
    verdict: Verdict = "differs"
    problem = ""
    missing = [each.name for each in found.outputs if each.target_name is None]
    if missing:
        verdict, problem = "fails", f'it has no output "{visible(missing[0])}"'
    elif "failed" in verdicts:
        verdict, problem = "fails", next(run.problem for run in found.runs if run.problem)
    elif verdicts == {"equal"}:
        verdict = "same"
    elif "different" not in verdicts:
        verdict = "close"
    compared = [each.worst for each in found.outputs if each.worst is not None]
    worst = max(compared, key=badness, default=None)
    largest = [each.largest_absolute for each in compared if each.largest_absolute is not None]
    shares = [share for share in map(error_share, compared) if math.isfinite(share)]
    if worst is not None and worst.problem is not None and not problem:
        problem = f"an output has {worst.problem}"
    return {
        "verdict": verdict,
        "largest_difference": max(largest, default=None),
        "largest_share": max(shares, default=None),
        "compared": len(found.runs),
        "problem": problem,
    }
