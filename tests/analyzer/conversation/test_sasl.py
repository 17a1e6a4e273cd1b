"""Who a token says its sender is."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.sasl import is_token, user_of
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.dissectors.registry import APIS
from kafkascope.tui.cli import main
from tests.analyzer.capture_files import capture_file
from tests.analyzer.wire import framed, request, response


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
        frames[:0] = [
            ("client", request("Metadata", 1, 1)),
            ("broker", response("Metadata", 1, 1)),
        ]
    path, target = capture_file(tmp_path / "mid.pcapng", frames), tmp_path / "cut.pcapng"
    with open_capture([path]) as capture:
        told = [each.api for each in capture.exchanges()]
    assert told == (["SaslToken", "Heartbeat"] if first else ["Metadata", "SaslToken", "Heartbeat"])
    number = "1" if first else "2"
    shown = b""
    for words in (["cut", str(path), "-o", str(target)], ["show", str(path), number, "--hex"]):
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.output
        shown += result.stdout_bytes
    assert b"hunter2" not in shown + target.read_bytes()
    with open_capture([target]) as capture:
        assert [each.api for each in capture.exchanges()] == told
