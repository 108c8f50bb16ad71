"""``python -m tests.tui.fuzzing``: random keys in the workbench, until something is wrong.

Every now and then: no error of the program itself, the cursor on a row, nothing raw on the screen. At the end: undoing
everything gives the bytes that were opened, redoing it those that were left, and the journal gives the same. Some of
the models are merges with conflicts, which are resolved at random: what was saved is what the screen showed.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final
from unittest import mock

import onnxjson
from onnxjson.merging.conflicted_files import open_session, save
from onnxjson.merging.merge import Merged, merge
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError
from onnxjson.storage import files
from onnxjson_tui.screens.conflicts import ConflictsScreen
from onnxjson_tui.session.opening import Unreadable
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.dialogs import ConfirmScreen
from onnxjson_tui.shell.keyed import KeyedScreen
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.lines import LineList
from onnxjson_tui.workbench.app import ACTIONS, WorkbenchApp, workbench
from tests.editing.random_models import random_model
from tests.generation.messages import generate_model
from tests.merging.triples import triple
from tests.tui.screens import send
from tests.tui.sessions import bytes_of

KEYS: Final = 20_000
EACH: Final = 500
"""Keys for each model."""

_LEAVES: Final = frozenset({"quit", "suspend", "open"})
"""Actions that leave the workbench, so that nothing more could be pressed; other ways there are taken rarely."""

_SPECIAL: Final = (
    "escape", "enter", "tab", "shift+tab", "up", "down", "left", "right", "pageup", "pagedown", "home", "end",
    "backspace", "delete", "space",
)  # fmt: skip
_TYPED: Final = "abcdefghijklmnopqrstuvwxyz0123456789:/[]{}().,*!?-_=+@#%&\\'\"<>|~^$ "
_LINES: Final = (
    "set-attribute . axis 1", "rename-node . other", "delete-node .", "prune", "strip", "infer-shapes", "op:Relu",
    "nothing", "name-nodes", "set-metadata a=b", "Relu", "3", "[x/]", "stamp-opset 20", "prefix p_", "insert",
    "compare other.onnx", "compare",
)  # fmt: skip


class Fuzz:
    """Random keys on one model."""

    def __init__(self, path: Path, seed: int, size: tuple[int, int]) -> None:
        self.path = path
        self.size = size
        self.rng = random.Random(seed)
        self.pressed: list[str] = []
        """For the person who looks for the reason."""
        self._keys = [key for action in ACTIONS if action.id not in _LEAVES for key in action.keys]

    def chosen(self, screen: object) -> list[str]:
        """The next keys: those of an action, of the screen on top, a key that moves, or something typed."""
        draw = self.rng.random()
        actions = screen.KEYS if isinstance(screen, KeyedScreen) else ()
        stays = isinstance(screen, ConflictsScreen)  # leaving it ends the program; escape is pressed rarely enough
        own = [key for action in actions if not stays or action.id != "_leave" for key in action.keys]
        if own and draw < 0.6:
            return self.rng.choice(own).split(" ")
        if draw < 0.45:
            return self.rng.choice(self._keys).split(" ")
        if draw < 0.7:
            return [self.rng.choice(_SPECIAL)]
        if draw < 0.8:
            return [self.rng.choice(_TYPED)]
        if draw < 0.9:
            return [":", *self.rng.choice(_LINES), "enter"]
        return [*self.rng.choice(_LINES), self.rng.choice(("enter", "escape", "tab"))]

    async def press(self, app: WorkbenchApp) -> None:
        """Presses the next keys."""
        for key in self.chosen(app.screen if app.screen_stack else None):
            self.pressed.append(key)
            send(app, key)
            await _heard(app)

    async def run(self, count: int) -> int:
        """Presses at least so many keys; gives how many steps were left to undo."""
        opened = Session.open(self.path)
        if isinstance(opened, Unreadable):
            return 0  # Some generated models nobody can read, and so nobody can edit.
        terminal = Terminal(self.rng.choice(("unicode", "ascii")), "onnxjson", True)
        with opened as session:
            before = bytes_of(session.model)
            bench = workbench(session, terminal)
            app = WorkbenchApp(bench, terminal)
            async with app.run_test(size=self.size) as pilot:
                await pilot.pause()
                while len(self.pressed) < count:
                    await self.press(app)
                    if self.rng.random() < 0.05:
                        await pilot.pause()
                        if not app.is_running or not bench.is_attached:
                            require_no_failure(app)
                            return 0
                        self.look(app)
                await pilot.pause()
                if not app.is_running or not bench.is_attached:
                    require_no_failure(app)
                    return 0
                await self.come_back(app, bench, pilot)
                self.look(app)
                steps = session.history.position
                self.undo_all(session, before)
            left, is_changed = bytes_of(session.model), session.is_changed
        self.recover(left, is_changed=is_changed)
        return steps

    async def resolve(self, count: int) -> int:
        """Presses at least so many keys on the conflicts of a file; gives how many conflicts are resolved in it."""
        while True:
            resolution = open_session(self.path)
            before = len(resolution.conflicts)
            if not before or len(self.pressed) >= count:
                return before
            terminal = Terminal(self.rng.choice(("unicode", "ascii")), "onnxjson", True)
            app = WorkbenchApp(ConflictsScreen(resolution, terminal), terminal)
            async with app.run_test(size=self.size) as pilot:
                await pilot.pause()
                while len(self.pressed) < count and app.is_running:
                    await self.press(app)
                    if self.rng.random() < 0.05 and app.screen_stack:
                        await pilot.pause()
                        self.look(app)
                await pilot.pause()
            require_no_failure(app)
            assert resolution.remaining == before - len(resolution.choices)
            left = files.load(self.path, bind=False, conflicted=True)
            if not resolution.is_changed:
                assert (left.model, left.conflicts) == (resolution.model, resolution.left), "what is saved differs"

    def look(self, app: WorkbenchApp) -> None:
        """What holds at any time."""
        require_no_failure(app)
        assert app._exception is None, app._exception
        for lines in [each for screen in app.screen_stack for each in screen.query(LineList)]:
            assert 0 <= lines.cursor <= max(len(lines.rows) - 1, 0)
        for strip in app.screen._compositor.render_strips():
            text = "".join(segment.text for segment in strip)
            assert text.isprintable(), repr(text)

    async def come_back(self, app: WorkbenchApp, bench: Workbench, pilot: Any) -> None:
        """Closes what stands over the workbench, and waits for what runs."""
        for _ in range(50):
            if app.screen is bench and not bench.prompt.is_asking and not bench.jobs.running:
                break
            # A form that was filled in asks first; the last answer is to give it up.
            screen = app.screen
            send(app, screen._answers[-1][0] if isinstance(screen, ConfirmScreen) else "escape")
            await pilot.pause(0.05)
        assert app.screen is bench, f"escape does not close {app.screen_stack}"
        for _ in range(600):
            if not bench.jobs.running:
                return
            await pilot.pause(0.05)
        raise AssertionError(f"still running: {[job.label for job in bench.jobs.running]}")

    def undo_all(self, session: Session, before: bytes) -> None:
        """Undo, redo and the journal say the same."""
        left = bytes_of(session.model)
        steps = session.history.position
        while session.undo() is not None:
            pass
        assert bytes_of(session.model) == before, "undoing everything does not give what was opened"
        for _ in range(steps):
            session.redo()
        assert bytes_of(session.model) == left, "redoing does not give what was left"

    def recover(self, left: bytes, *, is_changed: bool) -> None:
        """What was not saved is in the journal, all of it."""
        opened = Session.open(self.path)
        assert isinstance(opened, Session)
        with opened as session:
            for journal in session.recoverable()[:1]:
                session.recover(journal)
            assert not is_changed or bytes_of(session.model) == left, "the journal does not give what was left"
            session.discard()


def require_no_failure(app: WorkbenchApp) -> None:
    """Whatever the program said to the person of itself is raised here, with its traceback."""
    for error in app.failures:
        raise AssertionError("an error of the program itself") from error


async def _heard(app: WorkbenchApp) -> None:
    """Until every key was heard; much less than Textual's own pause, which waits until nothing at all happens."""
    for _ in range(100):
        await asyncio.sleep(0)
        if app.keys.is_idle and app._message_queue.empty():
            return


def fuzz(model: Model | Merged, seed: int, count: int, size: tuple[int, int] = (100, 30)) -> tuple[int, int]:
    """Presses random keys on a model or a merge; gives how many, and how many steps they made.

    Raises:
        AssertionError: something does not hold; the seed and the last keys are said.
    """
    with tempfile.TemporaryDirectory() as name:
        place = {each: str(Path(name, each)) for each in ("XDG_STATE_HOME", "XDG_CACHE_HOME")}
        path = Path(name, "m.onnx.json" if isinstance(model, Merged) else "m.onnx")
        fuzz = Fuzz(path, seed, size)
        if isinstance(model, Merged):
            save(model.model, model.conflicts, path, "json")
        else:
            onnxjson.save(model, path)
            with suppress(OnnxJsonError):
                other = onnxjson.apply(model, [onnxjson.edits.Prune(), onnxjson.edits.NameNodes()])
                onnxjson.save(other, Path(name, "other.onnx"))
        folder = Path.cwd()
        with (
            mock.patch.dict(os.environ, {**place, "EDITOR": "true", "VISUAL": ""}),
            mock.patch.object(WorkbenchApp, "suspend", side_effect=nullcontext),  # there is no terminal to give back
        ):
            os.chdir(name)
            try:
                steps = asyncio.run((fuzz.resolve if isinstance(model, Merged) else fuzz.run)(count))
            except BaseException:
                print(f"seed {seed}, {size}: {' '.join(fuzz.pressed[-60:])}", file=sys.stderr)
                raise
            finally:
                os.chdir(folder)
    return max(len(fuzz.pressed), 1), steps


def merged(rng: random.Random) -> Merged:
    """A random merge with conflicts."""
    while (found := merge(*triple(rng.randrange(1 << 30)))).is_clean:
        pass
    return found


def models(rng: random.Random, extra: Sequence[Path] = ()) -> Model | Merged:
    """A random model or merge, or one of some files."""
    draw = rng.random()
    if extra and draw < 0.4:
        return onnxjson.load(rng.choice(extra))
    if draw < 0.7:
        return random_model(rng) if draw < 0.6 else merged(rng)
    # Every field of the format, most of it nonsense to an engine.
    return onnxjson.from_proto(generate_model(rng.randrange(1 << 30), 20_000))


def main(arguments: list[str]) -> int:
    """Says how many keys were pressed."""
    parser = argparse.ArgumentParser(prog="python -m tests.tui.fuzzing", description=__doc__)
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the seed of one model, as a failure says it")
    parser.add_argument("--models", type=Path, default=Path("tests/models"))
    given = parser.parse_args(arguments)
    pressed = steps = number = 0
    start = time.monotonic()
    files = sorted(given.models.glob("*.onnx"))
    while pressed < given.keys:
        seed = given.seed * 1_000_003 + number if given.only is None else given.only
        rng = random.Random(seed)
        size = rng.choice([(80, 24), (120, 40), (160, 45), (60, 20)])
        keys, made = fuzz(models(rng, files), seed, min(EACH, given.keys - pressed), size)
        pressed, steps, number = pressed + keys, steps + made, number + 1
    seconds = time.monotonic() - start
    print(f"{pressed:,} keys on {number} models, {steps:,} steps left to undo, {seconds:,.0f} s; nothing went wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
