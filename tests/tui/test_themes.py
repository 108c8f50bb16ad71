"""Themes: text is never drawn in its background's colour, whatever the terminal."""

import asyncio
from pathlib import Path

import pytest
from rich.color import Color, ColorSystem
from rich.style import Style

from onnxjson_tui.shell.terminal import ANSI, DARK, LIGHT, detect
from tests.tui.benches import bench
from tests.tui.sessions import saved

UTF = {"LANG": "C.UTF-8"}
TERMS = ("xterm-256color", "xterm-16color", "screen", "tmux-256color", "linux", "dumb", "xterm-kitty", "vt100")


@pytest.mark.parametrize(
    ("environment", "theme"),
    [
        ({"TERM": "xterm-256color"}, DARK),
        ({"TERM": "xterm-kitty"}, DARK),
        ({"TERM": "screen", "COLORTERM": "truecolor"}, DARK),
        ({"TERM": "xterm-256color", "COLORFGBG": "0;15"}, LIGHT),
        ({"TERM": "xterm-256color", "COLORFGBG": "15;0"}, DARK),
        ({"TERM": "xterm-16color"}, ANSI),
        ({"TERM": "screen"}, ANSI),
        ({"TERM": "xterm"}, ANSI),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, ANSI),
        ({"TERM": "xterm-256color", "SSH_TTY": "/dev/pts/1"}, ANSI),
    ],
)
def test_the_theme_follows_the_colours_of_the_terminal(environment: dict[str, str], theme: str) -> None:
    assert detect(UTF | environment).theme == theme


@pytest.mark.parametrize("no_color", [False, True])
@pytest.mark.parametrize("background", ["15;0", "0;15"])
@pytest.mark.parametrize("term", TERMS)
def test_no_text_has_the_colour_of_its_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, term: str, background: str, no_color: bool
) -> None:
    environment = UTF | {"TERM": term, "COLORFGBG": background} | ({"NO_COLOR": "1"} if no_color else {})
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    terminal = detect(environment)

    async def flow() -> None:
        async with bench(saved(tmp_path / "m.onnx"), (80, 24), terminal=terminal) as found:
            for keys in ((), ("f5",), ("question_mark",), ("escape", "a"), ("escape", "i")):
                await found.press(*keys)
                for line in found.app.screen._compositor.render_strips():
                    for text, style, _ in line:
                        assert _is_readable(text, style, terminal.theme), (keys, text, style)
            styles = {str(style) for line in found.bench._compositor.render_strips() for _, style, _ in line}
            assert len(styles) > 2  # quiet and bold text remain
            if no_color:
                assert not any("rgb" in style or "#" in style for style in styles)

    asyncio.run(flow())


def _is_readable(text: str, style: Style | None, theme: str) -> bool:
    if not text.strip() or style is None:
        return True
    system = ColorSystem.STANDARD if theme == ANSI else ColorSystem.EIGHT_BIT
    back, front = (_shown(each, system) for each in (style.bgcolor, style.color))
    return front != back or front == "default"


def _shown(color: Color | None, system: ColorSystem) -> str:
    found = (color or Color.default()).downgrade(system)
    return "default" if found.is_default else str(found.number if found.number is not None else found.triplet)
