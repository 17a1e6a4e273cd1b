"""Bytes that come alone: what they are is told by what fits, and when nothing does, by what
speaks for itself."""

import struct

import pytest

from kafkascope.analyzer.bodies.standalone import read_whole, write_body, write_frame
from kafkascope.dissectors.errors import DissectError

BODY = {"group_id": "g", "generation_id": 1, "member_id": "m"}
ALONE = write_body("HeartbeatRequest", 0, BODY)
FRAME = write_frame("HeartbeatRequest", 0, {"correlation_id": 7, "client_id": "cl"}, BODY)
ANSWER = write_frame("MetadataResponse", 1, {"correlation_id": 7}, {"controller_id": 3})


@pytest.mark.parametrize(
    ("form", "data"), [("frame", FRAME), ("header and body", FRAME[4:]), ("body", ALONE)]
)
def test_each_form_is_known_by_fitting(form: str, data: bytes) -> None:
    whole = read_whole("HeartbeatRequest", 0, data)
    assert (whole.form, whole.body, whole.end) == (form, BODY, len(data))


@pytest.mark.parametrize(("form", "data"), [("frame", FRAME), ("header and body", FRAME[4:])])
def test_a_header_that_names_the_message_outweighs_bytes_left_over(form: str, data: bytes) -> None:
    whole = read_whole("HeartbeatRequest", 0, data + b"\xff\0\0")
    assert (whole.form, whole.body, whole.end) == (form, BODY, len(data))


def test_the_first_of_several_frames_is_read() -> None:
    whole = read_whole("HeartbeatRequest", 0, FRAME * 2)
    assert (whole.form, whole.end) == ("frame", len(FRAME))


@pytest.mark.parametrize("cut", range(21, len(FRAME)))
def test_a_cut_frame_is_refused_where_it_ends(cut: int) -> None:
    with pytest.raises(DissectError) as caught:
        read_whole("HeartbeatRequest", 0, FRAME[:cut])
    assert caught.value.path in BODY
    assert 16 <= caught.value.offset <= cut


def test_bytes_left_over_in_an_answer_with_its_size() -> None:
    data = struct.pack(">i", len(ANSWER) - 4 + 2) + ANSWER[4:] + b"ab"
    whole = read_whole("MetadataResponse", 1, data)
    assert (whole.form, whole.body["controller_id"], whole.end) == ("frame", 3, len(ANSWER))


def test_a_body_alone_may_have_bytes_left_over() -> None:
    whole = read_whole("HeartbeatRequest", 0, ALONE + b"\0")
    assert (whole.form, whole.body, whole.end) == ("body", BODY, len(ALONE))
