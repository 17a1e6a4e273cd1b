"""A broken tagged section says that it is the section that is broken."""

from __future__ import annotations

import pytest

from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import decode_body, encode_body, example


@pytest.mark.parametrize("section", [b"", b"\x05\x00", b"\x01\x05\x09aa", b"\x02\x05\x00\x03\x00"])
def test_the_section_is_named(section: bytes) -> None:
    body = encode_body("HeartbeatRequest", 4, example("HeartbeatRequest", 4))
    assert body.endswith(b"\0")
    with pytest.raises(DissectError) as caught:
        decode_body("HeartbeatRequest", 4, body[:-1] + section)
    assert caught.value.path == "_tagged_fields"


def test_the_section_of_an_inner_struct_has_the_path_to_it() -> None:
    topics = [{"topic": "a", "partitions": []}]
    body = encode_body("FetchRequest", 12, {**example("FetchRequest", 12), "topics": topics})
    at = body.index(b"\x02a\x01") + 3
    with pytest.raises(DissectError) as caught:
        decode_body("FetchRequest", 12, body[:at] + b"\xff\xff\xff\xff\xff\xff" + body[at + 1 :])
    assert caught.value.path == "topics[0]._tagged_fields"
