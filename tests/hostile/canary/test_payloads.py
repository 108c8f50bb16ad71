"""The canary can sing: each payload has its effect when its own interpreter evaluates it, and a tripwire detects it."""

import warnings
from collections.abc import Iterator

import pytest

from tests.hostile.canary.interpreters import evaluate
from tests.hostile.canary.payloads import EXECUTED, PAYLOADS, Payload
from tests.hostile.canary.tripwires import SECRET, Tripwires

FAMILIES = sorted({payload.family for payload in PAYLOADS})


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tripwires]:
    with Tripwires(tmp_path_factory.mktemp("wires")) as found:
        yield found


def _fired(payload: Payload, mark: str, wires: Tripwires) -> list[str]:
    """The marks that a payload sets off when it is evaluated."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sockets that payloads leave open
            shown = evaluate(payload, payload.text(mark, wires))
    except Exception as error:  # raised after the payload was executed, so it does not matter
        shown = [f"{type(error).__name__}: {error}"]
    if payload.effect == "secret" and (wires.marks / mark).read_text() != SECRET:
        return ["the file does not hold the secret"]
    return [*wires.sprung(), *shown]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_payload_fires_when_it_is_evaluated(family: str, wires: Tripwires) -> None:
    silent = {}
    for number, payload in enumerate(PAYLOADS):
        if payload.family == family:
            mark = f"canary{number:06}"
            fired = _fired(payload, mark, wires)
            unmarked = payload.name.startswith("location/") and payload.effect == "leak"
            if ("the secret without a mark" if unmarked else mark) not in fired:
                silent[payload.name] = fired
    assert silent == {}


def test_there_are_two_hundred_different_payloads(wires: Tripwires) -> None:
    texts = {payload.text("canary000000", wires) for payload in PAYLOADS}
    assert len({payload.name for payload in PAYLOADS}) == len(PAYLOADS)
    assert len(texts) == len(PAYLOADS) >= 200
    assert {payload.effect for payload in PAYLOADS} >= set(EXECUTED) | {"leak", "page", "click", "terminal"}


def test_tripwires_are_quiet_where_nothing_is_evaluated(wires: Tripwires) -> None:
    for number, payload in enumerate(PAYLOADS):
        payload.text(f"canary{number:06}", wires)
    assert wires.sprung() == []
