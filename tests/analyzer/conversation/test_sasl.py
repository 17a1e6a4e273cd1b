"""Who a token says its sender is."""

from base64 import b64encode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.sasl import is_answer, is_token, user_of
from kafkascope.captures.build import Composer
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.dissectors.registry import APIS
from tests.kit.captures import capture_file
from tests.kit.run import output
from tests.kit.samples import rows_of
from tests.kit.wire import BROKER, CLIENT, MS, START, framed, request, response


@pytest.mark.parametrize(
    ("mechanism", "token", "user"),
    [
        ("PLAIN", b"\0alice\0secret", "alice"),
        ("PLAIN", b"admin\0alice\0secret", "alice"),
        ("PLAIN", b"no separators", ""),
        ("SCRAM-SHA-256", b"n,,n=b=2Co=3Db,r=abc", "b,o=b"),
        ("SCRAM-SHA-512", b"c=biws,r=abc,p=xyz", ""),
        ("OAUTHBEARER", b"n,a=carol,\x01auth=Bearer x\x01\x01", "carol"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer x\x01\x01", ""),
        ("GSSAPI", b"\x60\x82", ""),
    ],
)
def test_the_user_of_a_token(mechanism: str, token: bytes, user: str) -> None:
    assert user_of(mechanism, token) == user


@given(st.sampled_from(["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"]), st.binary(max_size=60))
def test_any_token_has_a_user_or_none(mechanism: str, token: bytes) -> None:
    assert isinstance(user_of(mechanism, token), str)


TOKENS = [
    b"\0alice\0hunter2",
    b"\0a\0hunter2",
    b"admin\0alice\0hunter2",
    b"n,,n=alice,r=nonce",
    b"n,a=x,n=alice,r=nonce",
    b"c=biws,r=abc,p=hunter2",
    b"n,a=x,\x01auth=Bearer hunter2\x01\x01",
    b"\x60\x82\x00\x20\x06hunter2" + bytes(22),
    b'{"version":"2020_10_22","x-amz-signature":"hunter2"}',
    b"*" * 14,
]


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_are_known_by_their_form(token: bytes) -> None:
    assert is_token(token)


def test_no_request_has_the_form_of_a_token() -> None:
    for api in APIS.values():
        for version in range(api.versions.low, api.versions.high + 1):
            for correlation_id in (0, 1, 0x61616161):
                asked = request(api.name, version, correlation_id, "app" if version else None)
                assert not is_token(asked[4:]), (api.name, version)


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("first", [True, False])
def test_a_token_without_its_handshake_is_in_no_output(
    token: bytes, first: bool, tmp_path: Path
) -> None:
    frames = [("client", request("Heartbeat", 4, 2)), ("broker", response("Heartbeat", 4, 2))]
    frames = [("client", framed(token)), ("broker", framed(b"")), *frames]
    if not first:
        before = ("client", request("Metadata", 1, 1)), ("broker", response("Metadata", 1, 1))
        frames[:0] = before
    path, target = capture_file(tmp_path / "mid.pcapng", frames), tmp_path / "cut.pcapng"
    told = [row.api for row in rows_of(path)]
    assert told == [*([] if first else ["Metadata"]), "SaslToken", "Heartbeat"]
    shown = output("show", path, 1 if first else 2, "--hex")
    shown += output("cut", path, "-o", target)
    assert "hunter2" not in shown
    assert b"hunter2" not in target.read_bytes()
    assert [row.api for row in rows_of(target)] == told


ANSWERS = [
    b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=aHVudGVyMg==,i=4096",
    b"v=" + b64encode(b"hunter2" + bytes(25)),
    b"v=" + b64encode(b"hunter2" + bytes(57)),
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_a_broker_says_in_a_login_that_was_not_seen_is_not_shown(
    answer: bytes, tmp_path: Path
) -> None:
    # The capture begins in the middle of the login: it was shown as undecoded bytes.
    path, time_ns = tmp_path / "mid.pcapng", START
    composer = Composer(CLIENT, BROKER)
    turns = [(0, framed(b"c=biws,r=abc,p=x")), (1, framed(answer))]
    turns += [(0, request("Heartbeat", 4, 2)), (1, response("Heartbeat", 4, 2))]
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        writer.interface("eth0")
        for side, data in turns:
            for packet in composer.send(side, data):
                writer.packet(packet, time_ns)
                time_ns += MS
    shown = output("show", path, "1-3", "--hex")
    assert f"{len(answer)} bytes that may hold a secret, not shown" in shown
    assert b64encode(b"hunter2")[:8].decode() not in shown


@pytest.mark.parametrize("answer", [b"v=1", b"r=a,s=b", b"value", b"v=" + b"x" * 200])
def test_other_answers_are_shown(answer: bytes) -> None:
    assert not is_answer(answer)
