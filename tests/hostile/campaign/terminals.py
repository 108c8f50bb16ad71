"""Payloads for terminals in models, through commands on a pipe and on a terminal, read by a state machine."""

import json
import os
import pty
import re
import threading
from collections.abc import Iterator
from pathlib import Path

from onnx import ModelProto, helper

from onnxjson.model.display import unprintable
from tests.hostile.bounds.cases import model
from tests.hostile.campaign.children import Outcome, command, ended, shared_server, started, workplace

PAYLOADS = (
    "\x1b]0;title\x07", "\x1b]2;title\x1b\\", "\x1b]8;;file:///etc/passwd\x1b\\x\x1b]8;;\x1b\\",
    "\x1b]52;c;cm0gLXJm\x07", "\x1b]1337;File=:\x07", "\x1b]50;?\x07", "\x1b]4;1;?\x07", "\x1b]104\x07",
    "\x1b]777;notify;a;b\x07", "\x1b[31m", "\x1b[2J", "\x1b[H", "\x1b[6n", "\x1b[c", "\x1b[>c", "\x1b[21t",
    "\x1b[?1049h", "\x1b[?1000h", "\x1b[?25l", "\x1b[5i", "\x1b[1;5r", "\x1b[8m", "\x1b[1A", "\x1b[999D", "\x1b[K",
    "\x1b[!p", "\x1b[?2026h", "\x1bP1$r0m\x1b\\", "\x1bP+q544e\x1b\\", "\x1b_Gf=24;AAAA\x1b\\", "\x1b^pm\x1b\\",
    "\x1bXsos\x1b\\", "\x1bc", "\x1b7", "\x1b(0", "\x1b#8", "\x1b%G", "\x1bN", "\x1b", "\x9b31m", "\x9d0;t\x9c",
    "\x90q\x9c", "\x84", "\x85", "\x8e", "\x98x\x9c", "\x9fx\x9c", "\x07", "\x08\x08\x08", "\rfake", "\x0b", "\x0c",
    "\x0e", "\x0f", "\x7f", "\x00", "\x05", "\x11\x13", "\n+ fake line", "\u202egnp.exe\u202c", "\u2066a\u2069",
    "\u200b\u200d\u2060", "\u2028", "\u2029", "\ufeff", "\U000e0041\U000e007f", "\ue000\uf8ff", "\ufff9a\ufffb",
    "a" + "\u0301" * 200, "\u115f\u3164", "[/]", "[@click=app.bell]x[/]", "[link=file:///x]y[/]",
    "\x1b[31;1mred\x1b[0m", "\t\t", "$(id)`id`%s{0}", "<script>", "](javascript:x)", "x" * 10_000,
)  # fmt: skip

COMMANDS = (
    "show a.onnx", "show a.onnx NAME", "show a.onnx --json", "check a.onnx", "check --json a.onnx",
    "check --deep a.onnx", "check --select all a.onnx", "diff a.onnx b.onnx", "diff --color always a.onnx b.onnx",
    "diff a.onnx b.onnx --json", "diff a.onnx b.onnx --format markdown", "diff a.onnx b.onnx --unified",
    "find a.onnx op:Relu", "find a.onnx NAME", "merge base.onnx a.onnx b.onnx -o m.onnx.json",
    "conflicts m.onnx.json", "convert a.onnx -o out.onnx.json", "convert missingNAME -o out.onnx",
    "rewrite delete-node a.onnx NAME -o out.onnx", "rewrite rename a.onnx NAME z -o out.onnx",
    "split a.onnx --at NAME -o p", "tensor get a.onnx NAME", "run a.onnx", "git textconv a.onnx",
    "fmt broken.onnx.json", "NAME", "show a.onnx --NAME", "passes NAME", "new NAME -o out.onnx", "undo-save NAME",
)  # fmt: skip

_ALLOWED = re.compile(r"\x1b\[[0-9;]*m|\r\x1b\[2K|\r\n|\n")
"""Colours, the line that shows progress, and line ends."""


def obeyed(text: str) -> str:
    """What a terminal would do with an output besides printing and colours; "" for nothing."""
    rest = _ALLOWED.sub("", text)
    found = unprintable().search(rest)
    return "" if found is None else f"{found[0]!a} in {rest[max(0, found.start() - 60) : found.end() + 20]!a}"


def planted(payload: str) -> dict[str, bytes]:
    """Three versions of a model that has a text in every name."""
    found = {}
    for file, operator in (("base", "Relu"), ("a", "Abs"), ("b", "Neg")):
        text = payload.encode("utf-8", "replace").decode()
        node = helper.make_node(operator, [text], [f"v{text}"], name=text, doc_string=text, domain="")
        other = helper.make_node(text, [f"v{text}"], [f"y{text}"], name=f"{text}2", domain=text, **{f"a{text}": text})
        model_proto: ModelProto = model([node, other], inputs=[text], outputs=[f"y{text}"])
        model_proto.opset_import.add(domain=text, version=1)
        model_proto.graph.name = model_proto.producer_name = model_proto.producer_version = model_proto.domain = (
            model_proto.graph.doc_string
        ) = text
        model_proto.metadata_props.add(key=text, value=f"{text}{operator}")
        model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = text
        model_proto.graph.initializer.add(name=f"w{text}", data_type=1, dims=[1], raw_data=bytes(4), doc_string=text)
        found[f"{file}.onnx"] = model_proto.SerializeToString()
    found["broken.onnx.json"] = f'{{"{payload}": {payload}'.encode("utf-8", "surrogateescape")
    return found


def on_a_terminal(words: list[str], place: Path) -> tuple[int, str]:
    """The exit code and the output of a command whose streams are a terminal."""
    master, slave = pty.openpty()
    printed = bytearray()

    def run() -> int:
        for number in range(3):
            os.dup2(slave, number)
        return command(*words)()

    def read() -> None:
        try:
            while data := os.read(master, 1 << 16):
                printed.extend(data)
        except OSError:  # nobody has the terminal open any more
            return

    child = started(run, place / "out")
    os.close(slave)
    reader = threading.Thread(target=read)
    reader.start()
    code = ended(child, place / "out").code
    reader.join()
    os.close(master)
    return code, printed.decode("utf-8", "surrogateescape")


def terminals(count: int, first: int = 0) -> Iterator[Outcome]:
    """Each payload through each command, on a pipe and on a terminal; fewer if there are to be fewer cases."""
    pairs = [(payload, line) for payload in PAYLOADS for line in COMMANDS]
    step = max(1, 2 * len(pairs) // count) | 1
    os.environ["PAGER"] = "cat"
    with workplace() as place, shared_server():
        before = ""
        for payload, line in pairs[first % step :: step]:
            if payload != before:
                for name, data in planted(payload).items():
                    Path(name).write_bytes(data)
                before = payload
            words = [word.replace("NAME", payload.replace("\0", "0")) for word in line.split(" ")]
            child = started(command(*words), place / "out")
            end = ended(child, place / "out")
            problem = obeyed(end.output)
            if "--json" in words and not problem and end.code in (0, 1):
                try:
                    json.loads((place / "out.stdout").read_text())
                except ValueError as error:
                    problem = f"not JSON: {error}"
            yield Outcome(
                f"{line} with {payload[:30]!a} on a pipe", problem or _internal(end.code), end.seconds, end.peak
            )
            code, printed = on_a_terminal(words, place)
            yield Outcome(f"{line} with {payload[:30]!a} on a terminal", obeyed(printed) or _internal(code))


def _internal(code: int) -> str:
    return f"exit code {code}" if code in (70, -9, -11) else ""
