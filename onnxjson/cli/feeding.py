"""Options of `run`, `verify` and `bench`: values of inputs, their shapes, and how a model is executed."""

import itertools
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click
import msgspec

from onnxjson.cli import failures, options, output
from onnxjson.model.dimensions import split_dimensions
from onnxjson.model.dtypes import DATA_TYPE_NAMES, DATA_TYPES
from onnxjson.running.comparisons import TOLERANCES, Tolerance
from onnxjson.running.inputs import InputOptions
from onnxjson.running.tasks import ENGINES, Engine, Level, Report, Settings

LEVELS: Final = ("off", "basic", "extended", "layout", "all")
_PROVIDERS: Final = {
    "cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider",
    "openvino": "OpenVINOExecutionProvider", "coreml": "CoreMLExecutionProvider", "rocm": "ROCMExecutionProvider",
    "directml": "DmlExecutionProvider", "qnn": "QNNExecutionProvider",
}  # fmt: skip

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,30}")
_Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Feeding:
    """The requested inputs, and settings for the execution."""

    inputs: tuple[str, ...]
    dims: dict[str, tuple[int, ...]]
    input_options: InputOptions
    seed: int
    settings: Settings
    tolerances: Mapping[str, Tolerance]
    timeout: float
    trust_links: bool

    def with_one_size(self) -> InputOptions:
        """The options of inputs with the size of each dimension; several sizes are a click.UsageError."""
        several = [name for name, sizes in self.dims.items() if len(sizes) != 1]
        if several:
            raise click.UsageError(f"--dim {several[0]} has several sizes; only `onnxjson verify` tries several")
        return msgspec.structs.replace(self.input_options, dims={name: sizes[0] for name, sizes in self.dims.items()})


def feeding_options(*, level: str, several_sizes: bool = False) -> options.Decorator:
    """The options, which reach the command as `feeding`, a `Feeding`; `level` is the default of that option."""
    sizes = "; several sizes, separated by commas, are tried in all combinations" if several_sizes else "; default: 1"
    declared = options.together(
        options.several(
            "--input [NAME=]FILE",
            "Read inputs from a .npz, one input from a .npy or .pb, or a folder of test data (input_0.pb ..., or "
            "test_data_set_0 ...); NAME=NUMBER means --fill. Other inputs are random.",
            "inputs",
        ),
        options.several("--dim NAME=N", f"Size of a dynamic dimension, by its name or as INPUT:AXIS{sizes}.", "dims"),
        options.several("--shape NAME=N,...", "Shape of an input, such as x=1,3,224,224.", "shapes"),
        options.several("--fill [NAME=]VALUE", "Fill an input, or all inputs, with one value.", "fills"),
        options.several(
            "--range [NAME=]LOW:HIGH", "Range of the random values of an input, or of all inputs.", "ranges"
        ),
        options.option("--seed N", "Seed of the random inputs.", type=click.IntRange(min=0), default=0),
        options.option("--level", "Graph optimization level of onnxruntime.", type=click.Choice(LEVELS), default=level),
        options.several(
            "--provider NAME",
            "Execution provider, such as cpu, cuda, tensorrt, openvino or a full name; can be repeated, preferred "
            "first. Options follow a colon: cuda:device_id=1,enable_cuda_graph=1.",
            "providers",
        ),
        options.option(
            "--threads N", "Intra-op threads; 0: chosen by onnxruntime.", type=click.IntRange(0, 1024), default=1
        ),
        options.option(
            "--parallel N",
            "Inter-op threads; 0: operators run one after the other.",
            type=click.IntRange(0, 1024),
            default=0,
        ),
        options.several(
            "--session NAME=VALUE",
            "Session configuration entry of onnxruntime, which ignores unknown names.",
            "session",
            type=options.NAMED,
        ),
        options.several(
            "--engine",
            "Engine; default: onnxruntime, else onnx's reference evaluator.",
            "engines",
            type=click.Choice(["onnxruntime", "reference"]),
        ),
        options.tolerance,
        options.timeout("Overall time limit.", default=600.0),
        options.memory(
            "Memory that the run may allocate; raised to 64 times the size of the model and its inputs if that is "
            "more. Default: 768M."
        ),
        options.max_nodes,
        options.trust_links,
    )
    return options.gathered(declared, _feeding, "feeding")


def _feeding(
    *,
    inputs: tuple[str, ...],
    dims: _Pairs,
    shapes: _Pairs,
    fills: _Pairs,
    ranges: _Pairs,
    level: Level,
    providers: tuple[str, ...],
    engines: tuple[Engine, ...],
    memory: int | None,
    **given: Any,
) -> Feeding:
    if providers and "reference" in engines:
        raise click.UsageError("--provider is for onnxruntime; --engine reference has no providers")
    meant_as_fills = [(name, text) for name, _, text in (word.partition("=") for word in inputs) if _is_number(text)]
    input_options = InputOptions(
        shapes={name: _integers(text, "--shape") for name, text in shapes},
        fills={name: _number(text, "--fill") for name, text in (*meant_as_fills, *fills)},
        ranges={name: _range(text) for name, text in ranges},
    )
    full_names = tuple(map(_full_name, providers)) or ("CPUExecutionProvider",)
    execution = {name: given.pop(name) for name in ("threads", "parallel", "session")}
    engines = engines or (("onnxruntime",) if providers or execution["session"] else ENGINES)
    execution["memory"] = memory or Settings().memory
    settings = Settings(engines=engines, level=level, providers=full_names, **execution)
    limits = tolerances(given.pop("tolerances"))
    sizes = {name: _integers(text, "--dim") for name, text in dims}
    files = tuple([word for word in inputs if not _is_number(word.partition("=")[2])])
    return Feeding(inputs=files, dims=sizes, input_options=input_options, settings=settings, tolerances=limits, **given)


def _full_name(provider: str) -> str:
    name, colon, rest = provider.partition(":")
    if not all("=" in pair for pair in rest.split(",") if colon):
        raise click.BadParameter(
            f"{output.quoted(provider)} is not NAME or NAME:OPTION=VALUE,...", param_hint="--provider"
        )
    return _PROVIDERS.get(name.lower(), name) + colon + rest


def _integers(text: str, option: str) -> tuple[int, ...]:
    words = split_dimensions(text)
    if not all(word.isdecimal() for word in words) or (not words and option == "--dim"):
        raise click.BadParameter(f"{output.quoted(text)} is not a list of sizes such as 1,3,224", param_hint=option)
    return tuple(map(int, words))


def _number(text: str, option: str) -> float:
    """A number; a whole one stays an int, since a float cannot represent every large one."""
    try:
        return int(text) if _WHOLE.fullmatch(text) else float(text)
    except ValueError:
        raise click.BadParameter(f"{output.quoted(text)} is not a number", param_hint=option) from None


def _is_number(text: str) -> bool:
    """Whether the value of ``--input NAME=...`` is a number, and no file is called so."""
    try:
        float(text)
    except ValueError:
        return False
    return not os.path.lexists(text)


def _range(text: str) -> tuple[float, float]:
    low, mark, high = text.partition(":")
    if not mark:
        raise click.BadParameter(f"{output.quoted(text)} is not LOW:HIGH", param_hint="--range")
    limits = _number(low, "--range"), _number(high, "--range")
    if not (limits[0] <= limits[1] and all(map(math.isfinite, limits))):
        raise click.BadParameter(f"{output.quoted(text)}: LOW must not exceed HIGH", param_hint="--range")
    return limits


def tolerances(given: Sequence[tuple[str, str]]) -> dict[str, Tolerance]:
    """Tolerances by dtype, from ``DTYPE=REL[,ABS]``."""
    by_dtype: dict[str, Tolerance] = {}
    for position, (name, text) in enumerate(given):
        if name in [other for other, _ in given[:position]]:
            raise click.BadParameter(f"{name} is given twice; write {name}=REL,ABS", param_hint="--tolerance")
        relative, _, absolute = text.partition(",")
        limits = [_number(each, "--tolerance") for each in (relative, absolute or "0")]
        if not all(each >= 0 for each in limits):
            raise click.BadParameter(
                f"{output.quoted(text)} is not a tolerance; it must be 0 or more", param_hint="--tolerance"
            )
        dtype = DATA_TYPE_NAMES.get(DATA_TYPES.get(name, 0), "")
        if name != "all" and (not dtype or dtype in ("undefined", "string")):
            known = ", ".join(["all", *TOLERANCES])
            raise click.BadParameter(
                f"{output.quoted(name)} is not a numeric dtype; choose one of {known}, or an integer dtype",
                param_hint="--tolerance",
            )
        tolerance = Tolerance(relative=limits[0], absolute=limits[1])
        by_dtype.update(dict.fromkeys(TOLERANCES if name == "all" else [dtype], tolerance))
    return by_dtype


def progress(update: Callable[[str], None], text: str, total: int, kind: type) -> Callable[[Report], None]:
    """Return a listener that shows by `update` how many of `total` steps, each with a report of a kind, are done."""
    done = itertools.count(1)

    def listen(report: Report) -> None:
        if isinstance(report, kind):
            update(f"{text}: {next(done):,} of {total:,}; Ctrl-C keeps what is done")

    return listen


def report_interruption() -> int:
    """Report that the user stopped the work; return the exit code."""
    output.talk("onnxjson: interrupted; the results so far are above", always=True)
    return failures.INTERRUPTED
