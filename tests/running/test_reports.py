"""Reports of a job are read by the client, which believes nothing about their lengths."""

import io
import struct

import pytest

from onnxjson.running.tasks import Began, read_reports, write_report


@pytest.mark.parametrize("length", [2**64 - 1, 2**62, 2**40, 4])
def test_a_report_that_claims_more_than_the_file_holds_is_waited_for(length: int) -> None:
    file = io.BytesIO()
    write_report(Began(task=0), file)
    place = file.tell()
    file.write(struct.pack(">Q", length) + b"abc")
    file.seek(0)
    assert list(read_reports(file)) == [Began(task=0)]
    assert file.tell() == place
