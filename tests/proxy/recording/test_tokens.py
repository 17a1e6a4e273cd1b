"""What of an OAUTHBEARER token is told and what is masked, on screen, in exports and recordings:
docs/redaction.md lists it."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from kafkascope.proxy.recording.recorder import Recorder
from tests.kit.captures import capture_file
from tests.kit.proxy import echo, proxied, request
from tests.kit.run import run
from tests.kit.wire import framed

MASKED = ("hunter2-signature", "hunter2-trace", "hunter2-azure", "hunter2-email")
"""The signature, the values of extensions that nobody knows, and of such a claim."""
TOLD = ("kafka:read kafka:write", "alice", "lkc-42", "pool-7", "b-1.example.org", "9094")
"""Scope and subject of the claims; the extensions that say where the client wants to go."""
NAMED = ("traceId", "AzureTenant")


def _part(values: dict[str, Any] | str) -> bytes:
    data = values if isinstance(values, str) else json.dumps(values)
    return base64.urlsafe_b64encode(data.encode()).rstrip(b"=")


SIGNATURE = _part(MASKED[0])
CLAIMS = {"sub": "alice", "scope": TOLD[0], "exp": 1_700_000_000, "email": MASKED[3]}
TOKEN = b".".join((_part({"alg": "RS256"}), _part(CLAIMS), SIGNATURE))
EXTENSIONS = {
    "host": TOLD[4],
    "port": TOLD[5],
    "logicalCluster": TOLD[2],
    "identityPoolId": TOLD[3],
    "traceId": MASKED[1],
    "AzureTenant": MASKED[2],
}
MESSAGE = b"\1".join(
    [
        b"n,,",
        b"auth=Bearer " + TOKEN,
        *(f"{name}={value}".encode() for name, value in EXTENSIONS.items()),
        b"\1",
    ]
)


def requests(version: int) -> list[bytes]:
    """A login: in SaslAuthenticate, or as a raw token behind version 0 of the handshake."""
    shake = request(17, version, {"mechanism": "OAUTHBEARER"}, correlation_id=1)
    login = request(36, 2, {"auth_bytes": MESSAGE}, correlation_id=2)
    return [shake, login if version else framed(MESSAGE)]


def on_the_wire(folder: Path, version: int) -> Path:
    """A capture of the login."""
    frames = []
    for number, data in enumerate(requests(version), 1):
        frames.append(("client", data))
        key = 17 if number == 1 else 36
        answer = echo(key, version if number == 1 else 2, data) if number == 1 or version else None
        frames.append(("broker", answer or framed(b"")))
    return capture_file(folder / "wire.pcapng", frames)


def recorded(folder: Path, version: int) -> Path:
    """The proxy's recording of the login."""
    path = folder / "recorded.pcapng"

    def answer(key: int, version: int, asked: bytes) -> bytes:
        return framed(b"") if asked[4:] == MESSAGE else echo(key, version, asked)

    async def login() -> None:
        async with proxied(answer, recorder=Recorder(path)) as proxy:
            await proxy.ask(*requests(version))

    asyncio.run(login())
    return path


SHOW = [["show", "--all"], ["show", "--hex"], ["show", "--json"]]
OTHERS = [
    ["ls", "--json"],
    ["export", "--full", "--format", "jsonl", "-o", "-"],
    ["stats", "connections"],
    ["check"],
]


def printed(path: Path, command: list[str]) -> str:
    selected = ["1-2"] if command[0] == "show" else []
    done = run(*command, path, *selected)
    assert done.exit_code in (0, 1, 4), done.output
    return done.output


@pytest.mark.parametrize("version", [0, 1], ids=["raw token", "SaslAuthenticate"])
def test_scope_and_known_extensions_are_told_and_nothing_else(tmp_path: Path, version: int) -> None:
    path = on_the_wire(tmp_path, version)
    for command in SHOW + OTHERS:
        output = printed(path, command)
        assert not [each for each in (*MASKED, SIGNATURE.decode()) if each in output], command
        # Of a raw token JSON has the size alone.
        if command in SHOW and (version or command[1] != "--json"):
            assert not [each for each in (*TOLD, *NAMED) if each not in output], command


@pytest.mark.parametrize("version", [0, 1], ids=["raw token", "SaslAuthenticate"])
def test_a_recording_has_nothing_of_a_token(tmp_path: Path, version: int) -> None:
    path = recorded(tmp_path, version)
    cut = tmp_path / "cut.pcapng"
    printed(on_the_wire(tmp_path, version), ["cut", "-o", str(cut)])
    for file in (path, cut):
        data = file.read_bytes()
        assert TOKEN[:40] not in data
        assert SIGNATURE not in data
        assert not [each for each in (*MASKED, *TOLD[:5], *NAMED) if each.encode() in data]
        for command in SHOW + OTHERS:
            output = printed(file, command)
            assert not [each for each in (*MASKED, *TOLD[:5], *NAMED) if each in output], command
