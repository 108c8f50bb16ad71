"""What `run` and `verify` share on the command line: values of inputs, sizes, and how a model is run."""

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from onnxjson.cli import output
from onnxjson.errors import FeedError, MissingInputError

if TYPE_CHECKING:
    from onnxjson.document import Model
    from onnxjson.running.input_files import DataSet
    from onnxjson.running.inputs import Wishes
    from onnxjson.running.tasks import Report, Settings
    from onnxjson.running.tolerances import Tolerance

_Decorated = TypeVar("_Decorated", bound=Callable[..., object])

LEVELS: Final = ("off", "basic", "extended", "layout", "all")
_PROVIDERS: Final = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "rocm": "ROCMExecutionProvider",
    "directml": "DmlExecutionProvider",
    "qnn": "QNNExecutionProvider",
}


_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,30}")


class Assignment(click.ParamType[tuple[str, str]]):
    """``NAME=VALUE``; where a name may be missing, it is "" then."""

    name = "assignment"

    def __init__(self, *, needs_name: bool = True) -> None:
        self._needs_name = needs_name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """See `click.ParamType.convert`."""
        if isinstance(value, tuple):
            return value
        # Names of values may hold "=", what is assigned to them does not.
        name, mark, text = value.rpartition("=")
        if self._needs_name and not (mark and name):
            self.fail(f"{output.quoted(value)} is no NAME=VALUE", param, ctx)
        return name, text


@dataclass(frozen=True)
class Feeding:
    """What a person said about inputs and about how to run."""

    inputs: tuple[str, ...]
    dims: dict[str, tuple[int, ...]]
    wishes: "Wishes"
    seed: int
    settings: "Settings"
    tolerances: "Mapping[str, Tolerance]"
    timeout: float
    trust_links: bool


def options(*, level: str, several_sizes: bool) -> Callable[[_Decorated], _Decorated]:
    """The options of both commands.

    Args:
        level: how much onnxruntime optimises if nobody says otherwise.
        several_sizes: whether a dimension may have several sizes.
    """
    sizes = "NAME=SIZE[,SIZE...]" if several_sizes else "NAME=SIZE"
    combined = "; every combination is tried" if several_sizes else "; 1 for those without"
    declared = (
        click.option(
            "--input",
            "inputs",
            metavar="[NAME=]FILE",
            multiple=True,
            help="Values of inputs: a .npz by names, a .npy or .pb for one input, a folder with input_0.pb ... or with "
            "test_data_set_0 ... The others are made up.",
        ),
        click.option(
            "--dim", "dims", metavar=sizes, multiple=True, type=Assignment(),
            help=f"The size of an open dimension, by its name or as INPUT:AXIS{combined}.",
        ),
        click.option(
            "--shape", "shapes", metavar="INPUT=DIMS", multiple=True, type=Assignment(),
            help="The shape of an input, such as x=1,3,224,224.",
        ),
        click.option(
            "--fill", "fills", metavar="[INPUT=]NUMBER", multiple=True, type=Assignment(needs_name=False),
            help="All elements the same, of one input or of all.",
        ),
        click.option(
            "--range", "ranges", metavar="[INPUT=]LOW:HIGH", multiple=True, type=Assignment(needs_name=False),
            help="The least and the greatest element, of one input or of all.",
        ),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of made-up values."),
        click.option(
            "--level", type=click.Choice(LEVELS), default=level, show_default=True,
            help="How much onnxruntime optimises the graph before it runs.",
        ),
        click.option(
            "--provider", "providers", metavar="NAME", multiple=True,
            help="Execution provider, best first: cpu, cuda, tensorrt, openvino ... or its full name.",
        ),
        click.option(
            "--threads", type=click.IntRange(0, 1024), default=1, show_default=True,
            help="Threads within an operator; 0 leaves it to onnxruntime.",
        ),
        click.option(
            "--parallel", type=click.IntRange(0, 1024), default=0, show_default=True,
            help="Run so many operators side by side; 0 runs one after the other.",
        ),
        click.option(
            "--engine", "engines", type=click.Choice(["onnxruntime", "reference"]), multiple=True,
            help="What evaluates: onnxruntime, else the reference evaluator of onnx, if nobody says.",
        ),
        click.option(
            "--tolerance", "tolerances", metavar="DTYPE=REL[,ABS]", multiple=True, type=Assignment(),
            help="How far elements may be apart: |a - b| <= ABS + REL * |a|; `all` for all floating-point dtypes.",
        ),
        click.option(
            "--timeout", metavar="SECONDS", type=click.FloatRange(min=0.1), default=600.0, show_default=True,
            help="What everything may take.",
        ),
        click.option(
            "--trust-links", is_flag=True,
            help="Follow links to weights in other files, within the folder of a model or of the file it links to.",
        ),
    )  # fmt: skip

    def decorate(command: _Decorated) -> _Decorated:
        for option in reversed(declared):
            command = option(command)
        return command

    return decorate


def feeding(said: Mapping[str, Any]) -> Feeding:
    """What the options say.

    Raises:
        click.BadParameter: one of them does not say anything.
    """
    from onnxjson.running.inputs import Wishes
    from onnxjson.running.tasks import Settings
    from onnxjson.worker_tasks import ENGINES

    if said["providers"] and "reference" in said["engines"]:
        raise click.UsageError("--provider is for onnxruntime; --engine reference has none")
    wishes = Wishes(
        shapes={name: _integers(text, "--shape") for name, text in said["shapes"]},
        fills={name: _number(text, "--fill") for name, text in said["fills"]},
        ranges={name: _range(text) for name, text in said["ranges"]},
    )
    settings = Settings(
        engines=said["engines"] or (("onnxruntime",) if said["providers"] else ENGINES),
        level=said["level"],
        providers=tuple([_PROVIDERS.get(name.lower(), name) for name in said["providers"]])
        or ("CPUExecutionProvider",),
        threads=said["threads"],
        parallel=said["parallel"],
    )
    return Feeding(
        inputs=said["inputs"],
        dims={name: _integers(text, "--dim") for name, text in said["dims"]},
        wishes=wishes,
        seed=said["seed"],
        settings=settings,
        tolerances=tolerances(said["tolerances"]),
        timeout=said["timeout"],
        trust_links=said["trust_links"],
    )


def _integers(text: str, option: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.strip("[] ").split(",") if word.strip()]
    if not all(word.isdecimal() for word in words) or (not words and option == "--dim"):
        raise click.BadParameter(f"{output.quoted(text)} is no list of sizes such as 1,3,224", param_hint=option)
    return tuple(map(int, words))


def _number(text: str, option: str) -> float:
    """A number; a whole one as it is, since not every large one is a float."""
    try:
        return int(text) if _WHOLE.fullmatch(text) else float(text)
    except ValueError:
        raise click.BadParameter(f"{output.quoted(text)} is no number", param_hint=option) from None


def _range(text: str) -> tuple[float, float]:
    low, mark, high = text.partition(":")
    if not mark:
        raise click.BadParameter(f"{output.quoted(text)} is no LOW:HIGH", param_hint="--range")
    limits = _number(low, "--range"), _number(high, "--range")
    if not (limits[0] <= limits[1] and all(map(math.isfinite, limits))):
        raise click.BadParameter(f"{output.quoted(text)}: the first one is to be the least", param_hint="--range")
    return limits


def tolerances(said: Sequence[tuple[str, str]]) -> "dict[str, Tolerance]":
    """Tolerances by dtype, from ``DTYPE=REL[,ABS]``.

    Raises:
        click.BadParameter: there is no such dtype, or no number.
    """
    from onnxjson.names import DATA_TYPE_NAMES, DATA_TYPES
    from onnxjson.running.tolerances import TOLERANCES, Tolerance

    found: dict[str, Tolerance] = {}
    for name, text in said:
        relative, _, absolute = text.partition(",")
        limits = [_number(each, "--tolerance") for each in (relative, absolute or "0")]
        if not all(each >= 0 for each in limits):
            raise click.BadParameter(
                f"{output.quoted(text)} is no tolerance; those are 0 or more", param_hint="--tolerance"
            )
        dtype = DATA_TYPE_NAMES.get(DATA_TYPES.get(name, 0), "")
        if name != "all" and (not dtype or dtype in ("undefined", "string")):
            known = ", ".join(["all", *TOLERANCES])
            raise click.BadParameter(
                f"{output.quoted(name)} is no dtype of numbers; there are {known} and those of integers",
                param_hint="--tolerance",
            )
        tolerance = Tolerance(relative=limits[0], absolute=limits[1])
        found.update(dict.fromkeys(TOLERANCES if name == "all" else [dtype], tolerance))
    return found


def given_sets(model: "Model", words: Sequence[str]) -> "list[DataSet]":
    """The values in files: one set for each folder of test data, else one if there are any files.

    Raises:
        FeedError: a file does not say for which input it is.
        MissingInputError, AccessDeniedError, FileError, DecodeError, EncodeError: a file cannot be read.
    """
    from onnxjson.running import input_files
    from onnxjson.running.inputs import all_inputs, free_inputs
    from onnxjson.running.model_run import outputs_of

    types = all_inputs(model)
    free = free_inputs(model)
    given: dict[str, Any] = {}
    folders: list[Path] = []
    for word in words:
        name, mark, rest = word.rpartition("=")
        path = Path(rest if mark and name in types else word)
        if mark and name in types:
            given[name] = input_files.read_value(path, types[name])
        elif path.is_dir():
            folders += input_files.data_sets(path)
        elif not os.path.lexists(path) and ".npz:" not in word:
            raise MissingInputError(f"{output.quoted(word)} does not exist")
        elif path.suffix == ".npz":
            given.update(input_files.read_archive(path, {**free, **types}))
        else:
            open_names = [each for each in free if each not in given]
            if len(open_names) != 1:
                raise FeedError(f"{path} may be for {_listed(open_names)}; say --input NAME={path}")
            given[open_names[0]] = input_files.read_value(path, types[open_names[0]])
    inputs, outputs = list(free.items()), list(outputs_of(model).items())
    sets = [input_files.read_data_set(folder, inputs, outputs) for folder in folders]
    if sets:
        return [each._replace(inputs={**each.inputs, **given}) for each in sets]
    return [input_files.DataSet("the files", given, {})] if given else []


def _listed(names: Sequence[str]) -> str:
    return " or ".join([output.quoted(name) for name in names[:5]]) or "no input, since all have values"


class Progress:
    """Says how far runs are, as reports come.

    Args:
        say: shows a text in place of the one before.
        text: what goes on.
        total: how many steps there are.
    """

    def __init__(self, say: Callable[[str], None], text: str, total: int, kinds: tuple[type, ...]) -> None:
        self._say = say
        self._text = text
        self._total = total
        self._kinds = kinds
        self._done = 0

    def __call__(self, report: "Report") -> None:
        """See `onnxjson.running.guarded.Listener`."""
        if isinstance(report, self._kinds):
            self._done += 1
            self._say(f"{self._text}: {self._done:,} of {self._total:,}; Ctrl-C keeps what is done")
