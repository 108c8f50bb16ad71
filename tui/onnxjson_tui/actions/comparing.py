"""Compare the model with its saved state, another file or a revision; run passes; open traces."""

from pathlib import Path
from typing import Final

from onnxjson.model.display import visible
from onnxjson_tui.keys.action import Action, Given
from onnxjson_tui.names.completion import complete_path
from onnxjson_tui.pages.changes import ChangesPage
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.screens.comparison import ComparisonScreen, comparison_unsaved, comparison_with
from onnxjson_tui.shell.bench import Bench


async def compare(bench: Bench, given: Given) -> None:
    """Compare with a file or a revision; ask with which one."""
    if given.text.strip():
        await _show(bench, comparison_with(bench, given.text.strip()))
        return
    is_changed = bench.session.is_changed
    choices = [
        Choice("unsaved", "unsaved changes", "", "" if is_changed else "no changes since the last save"),
        Choice("file", "another file, or REV:path ...", "asks which"),
    ]
    committed = None if bench.session.opened.path is None else last_commit(bench.session.opened.path)
    if committed is not None:
        choices.append(Choice(committed, visible(committed, 200), "the last commit"))
    if not is_changed:
        choices.append(choices.pop(0))
    chosen = await bench.choose("Compare with", choices)
    if chosen == "unsaved":
        await _show(bench, comparison_unsaved(bench))
    elif chosen == "file":
        other = await bench.ask("compare with ", complete=complete_path)
        if other and other.strip():
            await _show(bench, comparison_with(bench, other.strip()))
    elif chosen is not None:
        await _show(bench, comparison_with(bench, chosen))


def last_commit(path: Path) -> str | None:
    """Return ``HEAD:path`` of a file in the repository of the current folder; None outside of it."""
    real = path.resolve()
    for folder in real.parents:
        if (folder / ".git").exists():
            is_here = Path.cwd().resolve().is_relative_to(folder)
            return f"HEAD:{real.relative_to(folder).as_posix()}" if is_here else None
    return None


async def _show(bench: Bench, screen: ComparisonScreen) -> None:
    address = await bench.app.push_screen_wait(screen)
    if address:
        bench.go(address)


async def run_pass(bench: Bench, given: Given) -> None:
    """Run a pass on the current model and show its diff; the user applies or drops it."""
    from onnxjson.optimizing.passes.catalogue import entries
    from onnxjson_tui.screens.passes import SpecScreen, pass_choices, run_screen

    spec: str | None = given.text.strip()
    if not spec:
        hint = "enter options   esc cancel   type to search"
        name = await bench.choose("Run a pass", pass_choices(), hint=hint)
        if name is None:
            return
        entry = next(each for each in entries() if each.name == name)
        spec = await bench.app.push_screen_wait(SpecScreen(entry))
    if spec:
        await _show(bench, run_screen(bench, spec))


async def trace(bench: Bench, given: Given) -> None:
    """Show the passes of a trace."""
    from onnxjson_tui.screens.tracing import trace_of_folder

    folder = given.text or await bench.ask("trace in folder ", complete=complete_path)
    if folder and folder.strip():
        bench.app.push_screen(trace_of_folder(folder.strip(), bench.terminal))


ACTIONS: Final[tuple[Action[Bench], ...]] = (
    Action(
        "compare", "compare: unsaved changes, another file, a revision", ("c",), compare, "See",
        argument="[PATH|REV:PATH]", footer="compare",
    ),
    Action(
        "next-change", "next node changed since the last save", ("}",),
        lambda bench, given: bench.drawer.find(ChangesPage).next_node(given.number or 1), "See",
    ),
    Action(
        "previous-change", "previous changed node", ("{",),
        lambda bench, given: bench.drawer.find(ChangesPage).next_node(-(given.number or 1)), "See",
    ),
    Action(
        "run-pass", "run a pass and see its diff before applying it", ("p",), run_pass, "See", argument="[PASS]",
    ),
    Action("trace", "show the passes of a trace", (), trace, "See", argument="[DIR]"),
)  # fmt: skip
