"""The rules that an optimizer says it applied to a model, as JSON: the name of each and how often, null if it says not.

``python optimizer_rules.py NAME SRC`` for the names in `OPTIMIZERS`; it runs in an environment that has the packages,
and needs nothing of this project.
"""

import contextlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import onnx

Rules = dict[str, int | None]


def onnxslim(source: str) -> Rules:
    import onnxslim
    from onnxslim.core.pattern import registry

    found: Counter[str] = Counter()

    def count(name: str, matcher: Any) -> None:
        # The log has "matched pattern NAME" also where the rule then leaves the nodes as they are.
        original = matcher.rewrite

        def wiring() -> list[Any]:
            nodes: list[Any] = [getattr(matcher, each.name, None) for each in matcher.pattern.nodes]
            return [([*map(id, node.inputs)], len(node.users)) for node in nodes if hasattr(node, "users")]

        def counted(*arguments: Any, **options: Any) -> Any:
            before = wiring()
            result = original(*arguments, **options)
            if result or wiring() != before:
                found[name] += 1
            return result

        matcher.rewrite = counted

    for name, matchers in registry.DEFAULT_FUSION_PATTERNS.items():
        for matcher in matchers:
            count(name, matcher)
    onnxslim.slim(onnx.load(source))
    return dict(found)


def onnxscript(source: str) -> Rules:
    import onnxscript.optimizer
    from onnxscript.rewriter import _rewrite_rule

    found: Counter[str] = Counter()
    original = _rewrite_rule.RewriteRule.try_rewrite

    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        result = original(self, *arguments, **options)
        if result is not None:
            found[self.name or "?"] += 1
        return result

    _rewrite_rule.RewriteRule.try_rewrite = counted  # type: ignore[method-assign]
    onnxscript.optimizer.optimize(onnx.load(source))
    return dict(found)


_SESSION = """
import onnxruntime, sys
options = onnxruntime.SessionOptions()
options.log_severity_level = 0
options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, sys.argv[2])
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
"""


def _onnxruntime(level: str) -> Callable[[str], Rules]:
    def rules(source: str) -> Rules:
        run = subprocess.run(
            [sys.executable, "-c", _SESSION, source, level], capture_output=True, text=True, check=True
        )
        return dict.fromkeys(re.findall(r"GraphTransformer (\w+) modified: 1", run.stdout + run.stderr))

    return rules


OPTIMIZERS: dict[str, Callable[[str], Rules]] = {
    "onnxslim": onnxslim,
    "onnxscript": onnxscript,
    "ort-basic": _onnxruntime("ORT_ENABLE_BASIC"),
    "ort-extended": _onnxruntime("ORT_ENABLE_EXTENDED"),
}


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        rules = OPTIMIZERS[sys.argv[1]](sys.argv[2])
    print(json.dumps(rules))
