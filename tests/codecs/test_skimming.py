"""A skimmed text has the same places as a scanned one."""

import json
import random

from onnxjson.codecs.reading.scan import scan
from onnxjson.codecs.reading.tree import Key, Span, find, skim
from tests.codecs.documents import DOCUMENT


def paths_of(span: Span | int, path: tuple[Key, ...] = ()) -> list[tuple[Key, ...]]:
    if isinstance(span, int):
        return [path]
    return [path, *(deeper for key, member in span.members.items() for deeper in paths_of(member, (*path, key)))]


def assert_alike(text: bytes, rng: random.Random) -> None:
    scanned = scan(text)
    assert scanned.mistakes == []
    paths = paths_of(scanned.root)
    for chosen in ([path] for path in rng.sample(paths, min(20, len(paths)))):
        root = skim(scanned.text, chosen)
        for path in chosen:
            assert find(root, path) == find(scanned.root, path)
            assert find(root, path, on_key=True) == find(scanned.root, path, on_key=True)
            assert find(root, (*path, "absent")) == find(scanned.root, (*path, "absent"))
    root = skim(scanned.text, paths)
    assert all(find(root, path, on_key=True) == find(scanned.root, path, on_key=True) for path in paths)


def test_every_place_is_the_same() -> None:
    rng = random.Random(3)
    assert_alike(DOCUMENT, rng)
    assert_alike(json.dumps(json.loads(DOCUMENT)).encode(), rng)
    assert_alike(b'// first\n{"a": [1, "//,]", {"b\\"}": 2, // }\n},],"c":-1e5//x\n}', rng)
    assert_alike(b" 7 ", rng)
    assert_alike(b'"text"', rng)
