"""Messages of both protocols by their keys."""

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.keyed import api_name, decode, error_name, read_header
from kafkascope.dissectors.zookeeper.types import BY_NAME
from tests.kit.samples import SAMPLES

GET_DATA = BY_NAME["zk.getdata"]


@pytest.mark.parametrize("name", ["libraries.pcap", "zookeeper.pcap"])
def test_equals_what_the_capture_decodes(name):
    seen = 0
    with open_capture([SAMPLES / name]) as capture:
        for exchange in capture.exchanges():
            key, version = exchange.api_key, exchange.api_version
            for side in ("request", "response"):
                half = getattr(exchange, side)
                if half is None or half.decoded is None or key is None:
                    continue
                assert decode(half.frame.payload, key, version or 0, side) == half.decoded
                seen += 1
            if exchange.request is not None and exchange.request.header is not None:
                payload = exchange.request.frame.payload
                assert read_header(payload, key) == exchange.request.header
                assert api_name(key) == exchange.api
    assert seen > 50


def test_names_by_protocol():
    assert (api_name(1), api_name(GET_DATA), api_name(9999)) == ("Fetch", "zk.getData", "Api 9999")
    assert error_name(-101, GET_DATA) == "NONODE"
    assert error_name(3, 1) == error_name(3, None) == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize("key", [None, 1, GET_DATA])
def test_what_is_too_short(key):
    with pytest.raises(DissectError):
        read_header(b"\0", key)
