import itertools
import subprocess
import sys
import unicodedata

import pytest

from onnxjson.model import display

CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def test_the_list_has_701_runs_in_order_that_do_not_touch() -> None:
    runs = display._unprintable_ranges()
    assert len(runs) == 701
    assert all(first <= last for first, last in runs)
    assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(runs))


@pytest.mark.skipif(unicodedata.unidata_version != "14.0.0", reason="this Python has another version of Unicode")
def test_the_list_is_that_of_unicode_14() -> None:
    listed = {code for first, last in display._unprintable_ranges() for code in range(first, last + 1)}
    assert listed == {code for code in range(0x110000) if unicodedata.category(chr(code)) in CATEGORIES}


def test_the_expression_matches_exactly_the_list() -> None:
    listed = {code for first, last in display._unprintable_ranges() for code in range(first, last + 1)}
    matched = {ord(found) for found in display.unprintable().findall("".join(map(chr, range(0x110000))))}
    assert matched == listed


def test_importing_does_not_build_the_expression() -> None:
    code = "from onnxjson.model import display; print(display.unprintable.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "0\n"
