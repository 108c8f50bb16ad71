"""Interpreters for which payloads are written; each of them really executes its text.

Only the self-test of the canary calls them. An interpreter returns its output or the text that it read, possibly "".
"""

import io
import os
import pickle
import subprocess
import urllib.request
from collections.abc import Callable
from typing import Final

import jinja2
import numpy
import yaml
from textual.content import Content

from tests.hostile.canary.payloads import Payload
from tests.hostile.canary.tripwires import MARK, acting_markdown, acting_markup, escapes, leaks


class Formatted:
    """An argument of a format string; its module imports os, as most modules do."""

    def __init__(self) -> None:
        self.name = "x"


def _python(text: str, variant: str) -> str:
    return str(eval(text))


def _sympy(text: str, variant: str) -> str:
    import sympy

    return str(sympy.simplify(sympy.floor(numpy.array([text])[0])))  # as a shape inference does with sizes


def _f_string(text: str, variant: str) -> str:
    return str(eval(f'f"""{text}"""'))


def _generated_code(text: str, variant: str) -> str:
    forms = {"single-quote": f"name = '{text}'", "three-quotes": f'name = """{text}"""', "newline": f"# {text}"}
    forms["identifier"] = f"{text} = 1"
    exec(forms.get(variant, f'name = "{text}"'), {})
    return ""


def _shell(text: str, variant: str) -> str:
    words = f"echo '{text}'" if variant == "single-quote" else f'echo "{text}"'
    quoted = ("single-quote", "double-quote")
    command = words if variant in quoted else f"cat {text}" if variant == "here" else f"echo {text}"
    done = subprocess.run(["sh", "-c", f"{command}\nwait"], capture_output=True, stdin=subprocess.DEVNULL, timeout=20)
    return done.stdout.decode()


def _jinja(text: str, variant: str) -> str:
    return str(jinja2.Template(text).render())


def _yaml(text: str, variant: str) -> str:
    return str(yaml.unsafe_load(text))


def _format(text: str, variant: str) -> str:
    names = ("self", "model", "node", "name", "value", "tensor", "attribute")
    return text.format(Formatted(), **dict.fromkeys(names, Formatted()))


def _expandvars(text: str, variant: str) -> str:
    return os.path.expandvars(text)


def _location(text: str, variant: str) -> str:
    if text.startswith(("http:", "file:")):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(text, timeout=5) as opened:
            return bytes(opened.read()).decode()
    # A process of its own: /proc/self/environ has the variables with which a process started.
    return subprocess.run(["cat", text.removeprefix("x/../")], capture_output=True, timeout=20).stdout.decode()


_BY_TEXT: Final[dict[str, Callable[[str, str], str]]] = {
    "python": _python, "sympy": _sympy, "f-string": _f_string, "generated-code": _generated_code, "shell": _shell,
    "jinja": _jinja, "yaml": _yaml, "format": _format, "expandvars": _expandvars, "location": _location,
}  # fmt: skip


def evaluate(payload: Payload, text: bytes) -> list[str]:
    """Execute a payload in its own interpreter; return the marks in its output, or in the page that it would show."""
    variant = payload.name.split("/")[1]
    if payload.family == "pickle":
        pickle.loads(text)
        return []
    if payload.family == "numpy":
        loaded = numpy.load(io.BytesIO(text), allow_pickle=True)
        if variant == "npz":
            loaded["x"]
        return []
    decoded = text.decode()
    if payload.effect == "page":  # between tags, in an attribute of either quote, in a script and a comment
        forms = (
            f"<p>{decoded}</p>",
            f'<p title="{decoded}">',
            f"<p title='{decoded}'>",
            f"<script>'{decoded}'</script>",
        )
        return [mark for form in forms for mark in acting_markup(form)]
    if payload.effect == "markdown":
        forms = (decoded, f"`{decoded}`", f"```\n{decoded}\n```", f"|a|\n|-|\n|{decoded}|")
        return [mark for form in forms for mark in acting_markdown(form)]
    if payload.effect == "click":
        spans = Content.from_markup(decoded.removeprefix("[/]")).spans
        return MARK.findall(str([span.style for span in spans]))
    if payload.effect == "terminal":
        return escapes([text])
    return leaks([_BY_TEXT[payload.family](decoded, variant).encode()])
