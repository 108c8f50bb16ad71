"""Table of payloads: families, variants, and the effect of each when its own interpreter evaluates it.

``PAYLOADS`` lists them; `Payload.text` writes one with a mark. `tests.hostile.canary.test_payloads` really evaluates
each of them.
"""

import base64
import io
import pickle
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy

from tests.hostile.canary.tripwires import VARIABLE, Tripwires

Effect = Literal["file", "port", "secret", "leak", "page", "markdown", "click", "terminal"]
"""``file`` creates a file, ``port`` connects to a local port, ``secret`` writes an environment variable to a file, and
``leak`` puts it into the output; the others act when the text is displayed."""

EXECUTED: Final[tuple[Effect, ...]] = ("file", "port", "secret")


class Fill(NamedTuple):
    """Values that a payload is written with."""

    mark: str
    marks: Path
    port: int
    fire: Path
    effect: Effect

    @property
    def python(self) -> str:
        """A Python expression with the effect, without double quotes and backslashes."""
        place = f"__import__('pathlib').Path('{self.marks}/{self.mark}')"
        if self.effect == "file":
            return f"{place}.touch()"
        if self.effect == "secret":
            return f"{place}.write_text(__import__('os').environ['{VARIABLE}'])"
        return (
            f"__import__('socket').create_connection(('127.0.0.1','{self.port}')).sendall('{self.mark}'.encode('utf8'))"
        )

    @property
    def shell(self) -> str:
        """A command with the effect, whose words a shell neither splits nor expands."""
        return f"{self.fire} {self.effect} {self.mark}"


class Payload(NamedTuple):
    """One way to be executed, with one effect."""

    name: str
    """FAMILY/VARIANT/EFFECT."""
    effect: Effect
    write: Callable[[Fill], str | bytes]
    family: str

    def text(self, mark: str, wires: Tripwires) -> bytes:
        """The payload with a mark, as bytes."""
        written = self.write(Fill(mark, wires.marks, wires.port, wires.fire, self.effect))
        return written if isinstance(written, bytes) else written.encode()


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


_SUBCLASSES: Final = "[c for c in ().__class__.__base__.__subclasses__() if c.__name__=='_wrap_close'][0]"

_EVAL: Final[dict[str, Callable[[Fill], str]]] = {
    "plain": lambda to: to.python,
    "exec": lambda to: f"exec({to.python!r})",
    "compile": lambda to: f"eval(compile({to.python!r},'','eval'))",
    "lambda": lambda to: f"(lambda:{to.python})()",
    "base64": lambda to: f"exec(__import__('base64').b64decode('{_base64(to.python)}'))",
    "getattr": lambda to: f"getattr(__import__('builtins'),'ev'+'al')({to.python!r})",
    "subclasses": lambda to: f"{_SUBCLASSES}.__init__.__globals__['__builtins__']['eval']({to.python!r})",
    "comprehension": lambda to: f"[{to.python} for _ in 'x']",
    "sum": lambda to: f"'N'+str({to.python})",
    "system": lambda to: f"__import__('os').system('{to.shell}')",
}

_SYMPY: Final[dict[str, Callable[[Fill], str]]] = {
    "plain": lambda to: f"({to.python})",
    "floor": lambda to: f"floor({to.python})",
    "sum": lambda to: f"n+len([{to.python}])",
    "product": lambda to: f"2*n*({to.python} or 1)",
    "eval": lambda to: f"eval({to.python!r})",
    "nested": lambda to: f"S({to.python!r})",
    "signed": lambda to: f"+({to.python} or 1)",
    "tuple": lambda to: f"({to.python}),",
    "maximum": lambda to: f"Max(n,[{to.python}]and 2)",
}

_FSTRING: Final[dict[str, Callable[[Fill], str]]] = {
    "plain": lambda to: f"{{{to.python}}}",
    "conversion": lambda to: f"{{({to.python})!r:>3}}",
    "within": lambda to: f"batch_{{{to.python}}}_n",
}

_GENERATED: Final[dict[str, Callable[[Fill], str]]] = {
    "double-quote": lambda to: f'"+str({to.python})+"',
    "single-quote": lambda to: f"'+str({to.python})+'",
    "three-quotes": lambda to: f'"""+str({to.python})+"""',
    "newline": lambda to: f"x\n{to.python}\n#",
    "comment": lambda to: f'";{to.python}#',
    "identifier": lambda to: f"x,y={to.python},0;z",
}

_FORMAT: Final = ("0", "self", "model", "node", "name", "value", "tensor", "attribute")

_SHELL: Final[dict[str, Callable[[Fill], str]]] = {
    "substitution": lambda to: f"$({to.shell})",
    "backquotes": lambda to: f"`{to.shell}`",
    "semicolon": lambda to: f";{to.shell};",
    "pipe": lambda to: f"x|{to.shell}",
    "and": lambda to: f"x&&{to.shell}",
    "or": lambda to: f"x>&-||{to.shell}",
    "background": lambda to: f"x&{to.shell}",
    "newline": lambda to: f"x\n{to.shell}\n",
    "fields": lambda to: f"$({to.shell.replace(' ', '${IFS}')})",
    "single-quote": lambda to: f"';{to.shell};'",
    "double-quote": lambda to: f'";{to.shell};"',
    "quoted-substitution": lambda to: f'x"$({to.shell})"',
    "arithmetic": lambda to: f"$((1+$({to.shell};echo 1)))",
    "here": lambda to: f"<<E\n$({to.shell})\nE\n",
}

_JINJA: Final[dict[str, Callable[[Fill], str]]] = {
    "cycler": lambda to: f"{{{{cycler.__init__.__globals__.os.system('{to.shell}')}}}}",
    "lipsum": lambda to: f"{{{{lipsum.__globals__['os'].popen('{to.shell}').read()}}}}",
    "joiner": lambda to: f"{{{{joiner.__init__.__globals__.__builtins__.eval({to.python!r})}}}}",
    "self": lambda to: f"{{{{self.__init__.__globals__.__builtins__.__import__('os').system('{to.shell}')}}}}",
    "statement": lambda to: f"{{% set x=namespace.__init__.__globals__.__builtins__.eval({to.python!r}) %}}",
}

_YAML: Final[dict[str, Callable[[Fill], str]]] = {
    "eval": lambda to: f'!!python/object/apply:builtins.eval ["{to.python}"]',
    "system": lambda to: f"!!python/object/apply:os.system ['{to.shell}']",
    "popen": lambda to: f"!!python/object/apply:subprocess.check_output [[{to.shell.replace(' ', ', ')}]]",
    "nested": lambda to: (
        f'{{name: [!!python/object/new:builtins.map [!!python/name:eval , ["{to.python}"]], 1], '
        f'x: !!python/object/apply:builtins.exec ["{to.python}"]}}'
    ),
}


class _Reduced:
    """An object whose pickle calls a function when it is loaded."""

    def __init__(self, function: Callable[[str], object], argument: str) -> None:
        self._call = (function, (argument,))

    def __reduce__(self) -> Any:
        return self._call


def _pickled(protocol: int) -> Callable[[Fill], bytes]:
    return lambda to: pickle.dumps(_Reduced(eval, to.python), protocol)


def _system(to: Fill) -> bytes:
    return f"cos\nsystem\n(V{to.shell}\ntR.".encode()


def _called(to: Fill) -> bytes:
    return pickle.dumps(_Reduced(subprocess.getoutput, to.shell), 4)


def _array(to: Fill) -> bytes:
    held = io.BytesIO()
    array = numpy.empty(1, object)
    array[0] = _Reduced(eval, to.python)
    numpy.save(held, array, allow_pickle=True)
    return held.getvalue()


def _archive(to: Fill) -> bytes:
    held = io.BytesIO()
    array = numpy.empty(1, object)
    array[0] = _Reduced(eval, to.python)
    numpy.savez(held, x=array)
    return held.getvalue()


_PAGE: Final = {
    "script": "<script>{0}()</script>", "closed": "</script><script>{0}()</script>",
    "image": "<img src=x onerror={0}()>", "svg": "<svg/onload={0}()>", "double-quote": '"><img src=x onerror={0}()>',
    "single-quote": "'><svg onload={0}()>", "attribute": '" onmouseover="{0}()" x="',
    "attribute-single": "' onfocus='{0}()' x='", "link": '<a href="javascript:{0}()">x</a>',
    "tab": '<a href="java\tscript:{0}()">x</a>', "frame": "<iframe srcdoc='<script>{0}()</script>'></iframe><{0}>",
    "comment": "--><script>{0}()</script><!--", "title": "</title></style></textarea><script>{0}()</script>",
    "cdata": "]]><script>{0}()</script>",
}  # fmt: skip

_MARKDOWN: Final = {
    "html": "*<img src=x onerror={0}()>*",
    "code": "`` `<script>{0}()</script>",
    "fence": "\n```\n\n<script>{0}()</script>\n\n```\n",
    "cell": "x | <svg onload={0}()>\n\n<script>{0}()</script>\n",
}

_CLICK: Final = {
    "app": "[@click=app.canary('{0}')]x[/]",
    "screen": "[@click=screen.canary('{0}')]x[/]",
    "quoted": "[@click=\"app.canary('{0}')\"]x[/]",
    "styled": "[bold red @click=app.canary('{0}')]x[/]",
    "broken": "[/]x[@click=app.canary('{0}')]y",
}

_TERMINAL: Final = {
    "clipboard": "\x1b]52;c;{0}\x07", "link": "\x1b]8;;http://127.0.0.1/{0}\x1b\\x\x1b]8;;\x1b\\",
    "title": "\x1b]0;{0}\x07", "keys": "\x1bP$q{0}\x1b\\", "erase": "\x1b[2J\x1b[H{0}", "c1": "\x9d52;c;{0}\x9c",
    "return": "x\r{0}", "backspace": "x\b\b\b{0}",
}  # fmt: skip


def _secret_file(to: Fill) -> Path:
    return to.marks.parent / "secret"


_LOCATIONS: Final[dict[str, tuple[Effect, Callable[[Fill], str]]]] = {
    "environment": ("leak", lambda to: "/proc/self/environ"),
    "absolute": ("leak", lambda to: f"{_secret_file(to)}"),
    "relative": ("leak", lambda to: f"{'../' * 30}{_secret_file(to).relative_to('/')}"),
    "detour": ("leak", lambda to: f"x/../{'../' * 30}{_secret_file(to).relative_to('/')}"),
    "file": ("leak", lambda to: f"file://{_secret_file(to)}"),
    "http": ("port", lambda to: f"http://127.0.0.1:{to.port}/{to.mark}"),
    "localhost": ("port", lambda to: f"http://localhost:{to.port}/{to.mark}"),
    "query": ("port", lambda to: f"http://127.0.0.1:{to.port}/?file={to.mark}"),
}


def _in_place(form: str) -> Callable[[Fill], str]:
    return lambda to: form.replace("{0}", to.mark)


def _leaking(name: str) -> Callable[[Fill], str]:
    return lambda to: f"{{{name}.__init__.__globals__[os].environ[{VARIABLE}]}}{to.mark}"


def _payloads() -> Iterator[Payload]:
    executed: dict[str, dict[str, Callable[[Fill], Any]]] = {
        "python": dict(_EVAL),
        "sympy": dict(_SYMPY),
        "f-string": dict(_FSTRING),
        "generated-code": dict(_GENERATED),
        "shell": dict(_SHELL),
        "jinja": dict(_JINJA),
        "yaml": dict(_YAML),
        "pickle": {f"protocol-{number}": _pickled(number) for number in range(6)}
        | {"opcodes": _system, "subprocess": _called},
        "numpy": {"npy": _array, "npz": _archive},
    }
    for family, variants in executed.items():
        for variant, write in variants.items():
            for effect in EXECUTED:
                yield Payload(f"{family}/{variant}/{effect}", effect, write, family)
    for name in _FORMAT:
        yield Payload(f"format/{name}/leak", "leak", _leaking(name), "format")
    for form in (f"${VARIABLE}", f"${{{VARIABLE}}}"):
        yield Payload(f"expandvars/{form}/leak", "leak", _in_place(f"{form}/{{0}}"), "expandvars")
    for variant, (effect, write) in _LOCATIONS.items():
        yield Payload(f"location/{variant}/{effect}", effect, write, "location")
    shown: dict[Effect, dict[str, str]] = {"page": _PAGE, "markdown": _MARKDOWN, "click": _CLICK, "terminal": _TERMINAL}
    for effect, forms in shown.items():
        for variant, form in forms.items():
            yield Payload(f"{effect}/{variant}", effect, _in_place(form), effect)


PAYLOADS: Final[tuple[Payload, ...]] = tuple(_payloads())
