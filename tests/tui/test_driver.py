"""What reaches a terminal that shows ASCII only."""

import time
from pathlib import Path

from onnxjson.rendering.tables import cells
from onnxjson_tui.shell.terminal import plain
from tests.editing.graphs import model_of
from tests.tui.programs import Program
from tests.tui.sessions import saved

MODEL = """g (float[N,4] x) => (float[N,4] y) {
    a = Relu(x)
    y = Add(a, a)
}"""


def test_every_character_becomes_as_many_columns_of_ascii() -> None:
    for text in ("╭──╮│ a…b", "λ é", "漢字", "e\u0301", "▁█▇"):
        assert plain(text).isascii()
        assert cells(plain(text)) == cells(text)
    assert plain("\x1b[31mred\x1b[0m") == "\x1b[31mred\x1b[0m"


def test_what_is_drawn_with_has_a_likeness() -> None:
    assert plain("╭─╮│└┘…") == "+-+|''~"
    assert plain("漢λ") == "???"


def test_no_byte_beyond_ascii_reaches_a_linux_console(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", model_of(MODEL.replace("a = Relu(x)", '["%s"] a = Relu(x)' % ("λ漢" * 30))))
    more = {"TERM": "linux", "XDG_STATE_HOME": str(tmp_path)}
    with Program(path, more=more) as program:
        program.expect(b"Relu")
        place = len(program.output)
        program.type(b"?")
        place = program.expect(b"arrows", place)
        program.type(b"\x1b")
        place = program.expect(b"Relu", place)
        program.type(b"r")
        place = program.expect(b"Rename", place)
        assert program.output.isascii()
        assert b"------" in program.output
        assert b"???" in program.output


def test_nothing_is_written_while_a_field_waits(tmp_path: Path) -> None:
    with Program(saved(tmp_path / "m.onnx"), more={"XDG_STATE_HOME": str(tmp_path)}) as program:
        for keys, shown in ((b"a", b"Add a node"), (b"\x1b", b"Relu"), (b"/", b"/")):
            place = program.expect(b"Relu") if keys == b"a" else len(program.output)
            program.type(keys)
            program.expect(shown, place)
            if keys != b"\x1b":
                time.sleep(0.6)
                written = len(program.output)
                time.sleep(1.2)
                assert len(program.output) == written
