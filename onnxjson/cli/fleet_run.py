"""One run of a fleet: where the models, rows and results are, which models are paired, and what is reported."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import click

from onnxjson.cli import failures, output, reports
from onnxjson.cli.fleet_job import FINGERPRINT, Job
from onnxjson.cli.paths import ENDINGS
from onnxjson.fleet import engine
from onnxjson.fleet.engine import Limits, end_processes
from onnxjson.fleet.listing import Source, list_models
from onnxjson.fleet.results import ROWS, Results, Row, check_form
from onnxjson.fleet.summary import Summary, summarise, summary_html, summary_lines, summary_markdown
from onnxjson.model.display import counted
from onnxjson.model.errors import OutputError
from onnxjson.model.system import FORKS, memory_bytes
from onnxjson.rendering.values import as_json

_WRITING: Final = ("convert", "rewrite", "apply", "optimize")

IN_PLACE: Final = ("rewrite", "apply", "optimize", "fmt", "check")

_PAIRING: Final = ("diff", "verify")

_REPORTS: Final[dict[str, Callable[[Summary], Iterable[str]]]] = {
    ".md": lambda summary: [summary_markdown(summary)],
    ".html": summary_html,
    ".json": lambda summary: [as_json(summary._asdict()) + "\n"],
    ".txt": lambda summary: (f"{line}\n" for line in summary_lines(summary, 120)),
}
"""Forms of the summary by the ending of its file."""

_SECONDS_A_LINE: Final = 30.0
"""Seconds between lines about the progress if standard error is not a terminal."""

_LEAST_MEMORY: Final = 4 << 30

_LEAST_MEMORY_GIVEN: Final = 256 << 20


class FleetRun:
    """One run of a fleet."""

    def __init__(
        self, name: str, words: list[str], tokens: list[str], has_report: bool, limits: list[str], given: dict[str, Any]
    ) -> None:
        self.name = name
        self.given = given
        outputs: tuple[Path, ...] = given["outputs"]
        self.reports = [each for each in outputs if each.suffix.lower() in _REPORTS]
        files = [each for each in outputs if each.suffix in ROWS]
        folders = [each for each in outputs if each not in (*self.reports, *files)]
        if len(files) > 1 or len(folders) > 1:
            raise click.UsageError("-o names one file of rows and one folder at most")
        if folders and name not in _WRITING:
            raise click.UsageError(f"{folders[0]}: an output has the ending {', '.join((*ROWS, *_REPORTS))}")
        self.out = next(iter(files), None)
        folder = next(iter(folders), None)
        before, values, ending = [], [], None
        if name in ("rewrite", "apply"):
            what = "an edit" if name == "rewrite" else "a patch or a script"
            if len(words) < 2:
                raise click.UsageError(f"name {what}, then the models")
            before = [words.pop(0)]
        if name == "find" and "--rules" not in tokens:
            if len(words) < 2:
                raise click.UsageError("name the models, then the pattern in quotes")
            values = [words.pop()]
        if name in _PAIRING and len(words) != 2:
            raise click.UsageError(f"name two folders or patterns: onnxjson fleet {name} OLD NEW")
        in_place = bool(given.get("in_place"))
        writes = name in _WRITING or "--fix" in tokens or (name == "fmt" and "--check" not in tokens)
        if writes != (folder is not None or in_place) or (folder is not None and in_place):
            choices = "-o DIR" * (name in _WRITING), "-i to change the models" * (name in IN_PLACE)
            more = {"fmt": "--check", "check": "or neither -i nor --fix"}.get(name, "")
            raise click.UsageError(f"choose where the results go: {', or '.join(filter(None, (*choices, more)))}")
        if name == "convert":
            tokens = tokens if "--to" in tokens else [*tokens, "--to", "json"]
            ending = ENDINGS.get(tokens[tokens.index("--to") + 1])
        base = {"cost": ["show", "--cost"], "duplicates": [FINGERPRINT], "rewrite": ["rewrite", *before]}.get(name)
        line = [*(base or [name]), *tokens, *(["-i"] if in_place and name in _WRITING else [])]
        if folder is not None and "--internalize" not in tokens:
            line.append("--with-external")
        if 0 < (given["memory"] or 0) < _LEAST_MEMORY_GIVEN:
            raise click.UsageError("--memory is at least 256M, which a process needs before it reads a model")
        self.words = words
        where = [*(["-o", str(folder)] if folder is not None else []), *(words[1:] if name in _PAIRING else [])]
        shown = " ".join([*line, *([] if name == "rewrite" else before), *values, *where])
        self.job = Job(
            command=shown,
            words=(
                *line,
                *limits,
                *(["--json"] if has_report and name != "duplicates" else []),
                *(before if name == "apply" else ()),
            ),
            has_report=has_report,
            limits=Limits(given["timeout"], given["memory"] or self._memory()),
            values=tuple(values),
            folder=None if folder is None else str(folder),
            traces=None if given.get("traces") is None else str(given["traces"]),
            ending=ending,
        )

    def _memory(self) -> int:
        """Bytes that a model may use by default: the share of a worker on this machine, but enough for onnxruntime."""
        total = memory_bytes()
        jobs = self.given["jobs"] or os.cpu_count() or 1
        return 0 if self.given["scheduler"] is not None else max(_LEAST_MEMORY, total // jobs)

    def run(self) -> int:
        """Run the command on all models; return the exit code."""
        if not FORKS:
            raise click.UsageError("a fleet needs Linux or macOS; on Windows it runs in WSL")
        if self.out is not None:
            check_form(self.out)
        with ExitStack() as stack:
            with output.working("listing models"):
                lists = [list_models([word]) for word in self.words]
            self._check_places(_united(lists))
            stack.callback(_remove_empty, self._missing_folders(_united(lists)))
            out = self.out or Path(stack.enter_context(tempfile.TemporaryDirectory()), "rows.jsonl")
            results = Results(out, self.job.command, retry_failed=self.given["retry_failed"])
            stack.callback(results.close)
            if kept := len(results.done):
                output.talk(f"{output.counted(kept, 'model')} done before; see {out}")
            code = 0
            client = stack.enter_context(
                engine.workers(self.given["jobs"] or os.cpu_count() or 1, self.given["scheduler"])
            )
            try:
                sources = self._paired(client, lists, results) if self.name in _PAIRING else _united(lists)
                self._all(client, [each for each in sources if each.shown not in results.done], self.job, results.add)
            except engine.Interrupted as error:
                output.warn(f"{error}; {self._how_to_resume()}")
                code = failures.INTERRUPTED if str(error) == "interrupted" else 1
            except KeyboardInterrupt:
                output.warn(f"stopped at once; {self._how_to_resume()}")
                raise
            finally:
                # Processes of a cluster can belong to other runs.
                client.run(end_processes, all_=self.given["scheduler"] is None, on_error="ignore")
            summary = summarise(results.rows())
            results.finish()
            as_data = as_json(summary._asdict()).splitlines() if self.given["json"] else None
            for line in as_data or summary_lines(summary, reports.width()):
                output.data(line)
            for report in self.reports:
                reports.save(_REPORTS[report.suffix.lower()](summary), report)
            if self.out is not None:
                output.wrote(self.out)
            return code or (1 if set(summary.counts) - {"ok"} else 0)

    def _how_to_resume(self) -> str:
        if self.out is None:
            return "only a run with -o FILE.jsonl can be resumed"
        return f"to resume, repeat the command with the same -o {output.quoted(self.out)}"

    def _check_places(self, sources: Sequence[Source]) -> None:
        """Raise unless each result has its own file, different from all sources; with -i, sources must be files."""
        for report in self.reports:
            if not report.parent.is_dir():
                raise OutputError(f"there is no folder {output.quoted(report.parent)} for the report")
        if self.given.get("in_place"):
            for source in sources:
                if not os.path.lexists(source.model):
                    raise OutputError(
                        f"{output.quoted(source.shown)} is not a file, so -i cannot change it; use -o DIR"
                    )
        if self.job.folder is None:
            return
        places: dict[str, Source] = {os.path.realpath(source.model): source for source in sources}
        for source in sources:
            try:
                place = os.path.realpath(self.job.place(source))
            except ValueError:
                continue  # a failed row
            if (other := places.setdefault(place, source)) is not source or place == os.path.realpath(source.model):
                names = f"{output.quoted(source.shown)} and {output.quoted(other.shown)}"
                raise OutputError(f"{output.quoted(place)} would be written for {names}; use another folder")

    def _missing_folders(self, sources: Sequence[Source]) -> list[Path]:
        """The folders that the results need and that do not exist yet, inner ones first."""
        missing: set[Path] = set()
        for each in sources if self.job.folder is not None else ():
            with suppress(ValueError):
                folder = self.job.place(each).parent
                missing |= {place for place in (folder, *folder.parents) if not os.path.lexists(place)}
        return sorted(missing, key=lambda place: -len(place.parts))

    def _all(self, client: Any, sources: Sequence[Source], job: Job, receive: Any) -> None:
        talked, told = time.monotonic(), ""

        def show(progress: engine.Progress) -> None:
            nonlocal talked, told
            text = f"{self.name}: {_shown(progress)}"
            update(text)
            if progress.stopped != told and progress.running:
                told = progress.stopped
                output.warn(f"{told}; finishing {output.counted(progress.running, 'model')}, ctrl-c stops at once")
            if not output.is_terminal(sys.stderr) and time.monotonic() - talked > _SECONDS_A_LINE:
                talked = time.monotonic()
                output.talk(text)

        with output.working(f"{self.name}: {counted(len(sources), 'model')}") as update:
            engine.run(
                client,
                sources,
                job.row,
                receive,
                show,
                command=job.command,
                most_failures=self.given["failures"],
            )

    def _paired(self, client: Any, lists: Sequence[Sequence[Source]], results: Results) -> list[Source]:
        """Pair the models of two roots by relative path, moved ones by structure; report the others as rows."""
        old, new = (_by_path(found) for found in lists)
        others = {old[name].model: new[name].model for name in old if name in new}
        removed = [each for name, each in old.items() if name not in new]
        added = [each for name, each in new.items() if name not in old]
        moved = self._moved(client, removed, added) if removed and added else {}
        others |= moved
        found = set(others.values())
        alone = [("removed", each) for each in removed if each.model not in others]
        alone += [("added", each) for each in added if each.model not in found]
        results.add([Row(model=each.shown, command=self.job.command, status="findings", bytes=each.size,
                         report={"state": state})
                     for state, each in alone if each.shown not in results.done])  # fmt: skip
        self.job = self.job._replace(others=others, moved=frozenset(moved))
        return [each for each in old.values() if each.model in others]

    def _moved(self, client: Any, removed: Sequence[Source], added: Sequence[Source]) -> dict[str, str]:
        """The models of `removed` that are elsewhere now, by their structure: old name -> new name."""
        rows: list[Row] = []
        job = self.job._replace(words=(FINGERPRINT,), has_report=True)
        self._all(client, [*removed, *added], job, rows.extend)
        keys = {row.model: row.report for row in rows if row.status == "ok"}
        pairs: dict[str, str] = {}
        for kind in ("model", "structure"):
            places: dict[str, list[str]] = {}
            for source in added:
                if source.model in keys and source.model not in pairs.values():
                    places.setdefault(keys[source.model][kind], []).append(source.model)
            for source in removed:
                if source.model in keys and source.model not in pairs and places.get(keys[source.model][kind]):
                    pairs[source.model] = places[keys[source.model][kind]].pop(0)
        return pairs


def _remove_empty(folders: Sequence[Path]) -> None:
    for each in folders:
        with suppress(OSError):  # it has results, or was never made
            each.rmdir()


def _united(lists: Sequence[Sequence[Source]]) -> list[Source]:
    return list({each.model: each for found in lists for each in found}.values())


def _by_path(sources: Sequence[Source]) -> dict[str, Source]:
    """The models of a root by relative path; two with the same one are a UsageError."""
    by_path: dict[str, Source] = {}
    for source in sources:
        if (other := by_path.setdefault(source.relative, source)) is not source:
            names = f"{output.quoted(other.shown)} and {output.quoted(source.shown)}"
            raise click.UsageError(f"{names} have the same path in their root, so they cannot be paired")
    return by_path


def _shown(progress: engine.Progress) -> str:
    left = (progress.total - progress.done) / progress.rate if progress.rate else 0
    return (
        f"{progress.done:,} of {progress.total:,} done, {progress.failed:,} failed, {progress.running} running, "
        f"{progress.bytes / 1e6:,.0f} MB, {progress.rate:,.1f} a second, {left / 60:,.0f} min left"
    )
