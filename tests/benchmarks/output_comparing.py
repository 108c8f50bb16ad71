"""Compares two records of `output_recording`: what is equal, what differs in its wording only, what really differs."""

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

import onnx

WORDING_KEYS: Final = frozenset({
    "message", "title", "detail", "hint", "note", "notes", "text", "summary", "description", "help", "evidence",
    "problem", "failure", "reason", "why",
})  # fmt: skip
"""Keys of JSON whose strings are sentences: they may change as long as the numbers and names in them do not."""

_SENTENCE_STARTS: Final = frozenset({"Add", "And", "If", "Not", "Or", "Range", "Split", "Where"})
"""Operators that sentences begin with, too."""

_OPERATORS: Final = frozenset(schema.name for schema in onnx.defs.get_all_schemas()) - _SENTENCE_STARTS

_DIFF_LINES: Final = 12
"""Lines of a diff that are shown for each case."""


class Verdict(Enum):
    """How two outputs compare."""

    EQUAL = "equal"
    WORDING = "differs in wording only"
    DIFFERENT = "really different"


@dataclass
class Difference:
    """One output of one case that is not equal."""

    case: str
    output: str
    """``exit``, ``stdout``, ``stderr``, ``gone`` for files that are there no more, or a file."""
    verdict: Verdict
    old: str
    new: str

    def shown(self) -> str:
        """Its name and a diff of a few lines."""
        lines = difflib.unified_diff(self.old.splitlines(), self.new.splitlines(), "old", "new", n=0, lineterm="")
        kept = [line[:200] for _, line in zip(range(_DIFF_LINES), list(lines)[2:], strict=False)]
        return "\n".join([f"{self.case} [{self.output}]: {self.verdict.value}", *(f"  {line}" for line in kept)])


@dataclass
class Comparison:
    """Everything that was compared."""

    counts: dict[str, Counter[Verdict]] = field(default_factory=dict)
    """Outputs by category: the session of their case."""
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        """Whether nothing but wording differs."""
        return all(difference.verdict is Verdict.WORDING for difference in self.differences)


def compare(old: Path, new: Path) -> Comparison:
    """Compare the records in two folders, case by case under their names.

    Raises:
        OSError: a folder holds no record.
    """
    sides = [_cases(folder) for folder in (old, new)]
    comparison = Comparison()
    for case in dict.fromkeys([*sides[0], *sides[1]]):
        counts = comparison.counts.setdefault(case.split("/")[-2], Counter())
        if missing := [name for name, side in zip(("old", "new"), sides, strict=True) if case not in side]:
            counts[Verdict.DIFFERENT] += 1
            comparison.differences.append(
                Difference(case, f"not in the {missing[0]} record", Verdict.DIFFERENT, "", "")
            )
            continue
        outputs = [_outputs(side[case]) for side in sides]
        for name in dict.fromkeys([*outputs[0], *outputs[1]]):
            first, second = outputs[0].get(name), outputs[1].get(name)
            if first == second:
                counts[Verdict.EQUAL] += 1
                continue
            texts = [_text(folder, value) for folder, value in ((old, first), (new, second))]
            verdict = verdict_of(texts[0], texts[1])
            counts[verdict] += 1
            shown = [str(value) if text is None else text for text, value in zip(texts, (first, second), strict=True)]
            comparison.differences.append(Difference(case, name, verdict, *shown))
    return comparison


def verdict_of(old: str | None, new: str | None) -> Verdict:
    """How two texts compare; None is an output that is no text, or is not there."""
    if old is None or new is None:
        return Verdict.DIFFERENT
    if old == new:
        return Verdict.EQUAL
    values = [_parsed(text) for text in (old, new)]
    if None not in values:
        same = _same_but_for_wording(values[0], values[1])
    else:
        same = facts(old) == facts(new)
    return Verdict.WORDING if same else Verdict.DIFFERENT


def facts(text: str) -> list[str]:
    """The numbers and names in a text, in their order: what has a digit, a sign of a name, or is an operator."""
    return [word for word in _words(text) if _is_fact(word)]


def _words(text: str) -> Iterator[str]:
    for word in re.findall(r"""[-=]>|[^\s<>"'`(),;]+""", text):
        if word := word.rstrip(".:?!"):
            yield word


def _is_fact(word: str) -> bool:
    return (
        re.search(r"\d|[/_@=\\.:]|[a-z][A-Z]", word) is not None
        or word in _OPERATORS
        or (not re.search(r"\w", word) and word not in ("-", "–", "--"))
    )


def _same_but_for_wording(old: Any, new: Any, key: str = "") -> bool:
    """Whether two values of JSON have the same structure and values, sentences under `WORDING_KEYS` aside."""
    if isinstance(old, dict) and isinstance(new, dict):
        return list(old) == list(new) and all(_same_but_for_wording(old[each], new[each], each) for each in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(_same_but_for_wording(*pair, key) for pair in zip(old, new, strict=True))
    if isinstance(old, str) and isinstance(new, str) and key in WORDING_KEYS:
        return facts(old) == facts(new)
    return bool(type(old) is type(new) and old == new)


def _parsed(text: str) -> Any:
    """The value of a text of JSON, None for any other."""
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _cases(folder: Path) -> dict[str, Any]:
    """The cases of a record by their names."""
    files = sorted(folder.joinpath("cases").iterdir())
    return {name: case for file in files for name, case in json.loads(file.read_text(encoding="utf-8")).items()}


def _outputs(case: dict[str, Any]) -> dict[str, Any]:
    """Everything of a case that is compared; not its line, which may have got another spelling, nor its seconds."""
    named = {name: case[name] for name in ("exit", "stdout", "stderr", "gone")}
    return {**named, **{f"file {name}": value for name, value in case["files"].items()}}


def _text(folder: Path, value: object) -> str | None:
    """The text of an output, None for one that is no text."""
    if not isinstance(value, str):
        return None
    path = folder / "texts" / value.split()[0]
    return path.read_text(encoding="utf-8") if path.exists() else None
