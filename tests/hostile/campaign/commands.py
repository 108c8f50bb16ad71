"""Hostile files through every command: each ends as documented, in bounds, and leaves what it may."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.hostile.campaign.children import Ended, Outcome, command, in_child, shared_server, workplace
from tests.hostile.campaign.recipes import KINDS, NAMES, surroundings

EXIT_CODES = frozenset({0, 1, 2, 16, 65, 66, 71, 73, 74, 75, 76, 77, 78})

MOST_SECONDS = 20.0
MOST_MEGABYTES = 1_024

LIMITED = "--timeout 10 --memory 1G"

COMMANDS = tuple(
    line.split()
    for line in f"""
    show A
    show A NAME
    show A NAME --json
    show A --cost
    show A --format markdown
    check A
    check --strict A
    check --json A
    check --deep A
    check --select all A
    find A Relu($x)
    find A NAME
    convert A -o out.onnx.json
    convert A -o out.onnx
    convert A -o out.json
    convert A -o out.json --lossy
    convert A -o out.onnx --externalize --threshold 1
    convert A -o out.onnx --internalize
    convert A -o out.onnx.json --weights blobs
    convert A -o out.onnx.json --weights digest
    convert A -o sub/out.onnx --with-external
    fmt A
    fmt --check A
    diff A B
    diff A B --json
    diff A B --format patch
    diff A B --format html -o out.html
    diff A B --format markdown
    diff A A
    apply patch.json A -o out.onnx
    apply script.json A -o out.onnx
    apply script.json A -i
    apply w.npy A -o out.onnx
    merge BASE A B -o out.onnx.json
    merge BASE A B -o out.onnx
    merge A BASE B -o out.onnx.json
    conflicts A
    resolve A --ours -o out.onnx
    optimize A --recipe recipe.yaml -o out.onnx
    optimize A -p onnxoptimizer -o out.onnx
    optimize A -p onnxsim -o out.onnx
    optimize A -p onnxslim -o out.onnx
    optimize A -p prune -o out.onnx --trace steps
    run A {LIMITED}
    run A {LIMITED} --input x=w.npy
    run A {LIMITED} --input w.npz
    verify A B {LIMITED}
    verify A B {LIMITED} --input w.npz
    bench A {LIMITED} -n 1
    bench A {LIMITED} -n 1 --variant one=prune -o out.md
    tensor get A w
    tensor get A w -o out.npy
    tensor get A -o out.npz
    tensor encode --from w.npy
    tensor encode --from w.npz --format json
    tensor encode --from A
    tensor encode NAME --type float32[2]
    tensor decode NAME --type float32[2]
    rewrite set-tensor A w --file w.npy -o out.onnx
    rewrite set-tensor A w --file w.npz -o out.onnx
    rewrite set-tensor A w 1 -o out.onnx
    rewrite cast-tensor A w float16 -o out.onnx
    rewrite set-metadata A --key NAME --value NAME -i
    rewrite delete-node A op:Relu -o out.onnx
    rewrite delete-node A NAME -o out.onnx
    rewrite rename A NAME new -o out.onnx
    rewrite rename A x NAME -i
    rewrite infer-shapes A -o out.onnx
    rewrite inline-functions A -o out.onnx
    rewrite convert-opset A 21 -o out.onnx
    rewrite set-batch-size A 4 -o out.onnx
    rewrite set-dim A N 4 -o out.onnx
    rewrite extract A --inputs x --outputs y -o out.onnx
    rewrite combine A B -o out.onnx
    rewrite prune A -o out.onnx
    rewrite strip A -o out.onnx
    rewrite deduplicate-initializers A -i
    rewrite constants-to-initializers A -o out.onnx
    rewrite add-output A NAME -o out.onnx
    rewrite name-nodes A -o out.onnx
    rewrite prefix A NAME -o out.onnx
    git textconv A
    git show HEAD:A
    undo-save A
    undo-save A --list
    passes explain onnxruntime A --fusion gelu
    new NAME -o out.onnx
    trace steps
    """.strip().splitlines()
)

_FORBIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]")


def words(line: list[str], rng: Random, files: dict[str, bytes]) -> list[str]:
    """The words of a command on these files."""
    text = "" if "a.onnx" in files or "a.json" in files else ".json"
    names = {
        "A": next(name for name in files if name.startswith("a.")),
        "B": "b.onnx" if "b.onnx" in files else next(name for name in files if name.startswith(("base", "a."))),
        "BASE": "base.onnx" + text if "base.onnx" + text in files else next(iter(files)),
        "NAME": rng.choice(NAMES).replace("\0", "0"),
    }
    return [names.get(word, word) for word in line]


def wrong(end: Ended, before: dict[str, bytes], line: list[str], place: Path) -> str:
    """What is wrong with how a command ended; "" for nothing."""
    if end.code not in EXIT_CODES:
        return f"exit code {end.code}: {end.output[-300:]}"
    if "Traceback" in end.error or "Exception ignored" in end.error:
        return f"a traceback: {end.error[-300:]}"
    if found := _FORBIDDEN.search(end.output):
        return f"prints {found[0]!a}: {end.output[max(0, found.start() - 80) : found.end() + 20]!a}"
    if end.code not in (0, 1, 16) and not re.search(r"onnxjson: (error\[|warning: weights not compared)", end.error):
        return f"exit code {end.code} without a reason"
    if end.seconds > MOST_SECONDS or end.peak > MOST_MEGABYTES:
        return f"{end.seconds:.1f} s, {end.peak:,} MB"
    failed = end.code not in (0, 1, 16)
    for name, data in before.items():
        path = Path(name)
        if (failed or not {"-i", "fmt", "undo-save"} & set(line)) and (not path.exists() or path.read_bytes() != data):
            return f"{name} was changed"
    left = sorted(path.name for path in Path().iterdir() if path.name not in before)
    if left and failed and end.code != 66:
        return f"exit code {end.code}, but {left} is left"
    if hidden := [name for name in left if name.startswith(".")]:
        return f"{hidden} is left"
    scratch = sorted(path.name for path in (place / "tmp").iterdir())
    return f"{scratch} is left in the temporary folder" if scratch else ""


def one(number: int, place: Path) -> Outcome:
    """The case of a number."""
    rng = Random(number)
    files = rng.choice(KINDS)(rng)
    files = {**files, **surroundings(rng)}
    line = rng.choice(COMMANDS)
    for name, data in files.items():
        Path(name).write_bytes(data)
    typed = words(line, rng, files)
    end = in_child(command(*typed), place)
    problem = wrong(end, files, line, place)
    for folder in (Path(), place / "tmp", place / "state"):
        for path in folder.iterdir() if folder.exists() else ():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return Outcome(f"{number}: {' '.join(map(ascii, typed))}", problem, end.seconds, end.peak)


def commands(count: int, first: int = 0) -> Iterator[Outcome]:
    """Cases by number."""
    with workplace() as place, shared_server():
        for number in range(first, first + count):
            yield one(number, place)
