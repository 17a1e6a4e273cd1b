"""The connections that tests write are such as tshark reads."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kafkascope.captures.build import Composer
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.model import Endpoint
from kafkascope.captures.tls.keys.suites import SUITE_NAMES, suite_of
from tests.captures.tls.writer import CLIENT, SERVER, Talk, certificate
from tests.matrix import each_nth

SUPPORTED = [suite for suite in map(suite_of, SUITE_NAMES) if suite.cipher]


def said(talk: Talk) -> Talk:
    """Data both ways, in records of several sizes."""
    talk.client(b"request " * 9, [1, 0, 40]).server(b"response" * 3000)
    return talk.client(b"more").close(CLIENT).close(SERVER)


def shapes() -> dict[str, list[Talk]]:
    """One of each kind of connection; what resumes another stands behind it."""
    first = said(Talk(tickets=2, seed=2))
    second = said(Talk(0xC02F, ticket=True, seed=3))
    third = said(Talk(0x2F, etm=True, seed=4))
    mine = certificate("client", "authority")
    retried = Talk(0x1302, seed=5, retry=True, split=50)
    updated = Talk(0x1303, seed=6).client(b"one")
    updated.key_update(CLIENT, requested=True).key_update(SERVER).key_update(SERVER)
    renegotiated = Talk(0xC013, etm=True, seed=7).client(b"before").server(b"before")
    return {
        "retry": [said(retried)],
        "updates": [said(updated)],
        "tickets, resumed with early data": [
            first,
            said(Talk(seed=8, resume=first, early=b"early" * 9)),
        ],
        "early data with changes": [said(Talk(0x1302, seed=9, resume=first, early=b"e"))],
        "padding, mutual, no middlebox": [
            said(
                Talk(seed=10, padding=99, client_certificate=mine, middlebox=False, coalesce=False)
            )
        ],
        "ids": [third, said(Talk(0x2F, etm=True, seed=11, resume=third))],
        "tickets": [second, said(Talk(0xC02F, seed=12, resume=second, resume_by="ticket"))],
        "bare tickets": [second, said(Talk(0xC02F, seed=13, resume=second, resume_by="bare"))],
        "renegotiated": [said(renegotiated.renegotiate(asked=True))],
        "mutual 1.2, no extended master secret": [
            said(Talk(0x9E, seed=14, client_certificate=mine, ems=False, session_id=False))
        ],
        "fragments of 1.2": [said(Talk(0xC030, seed=15, split=7, coalesce=False, alpn="kafka"))],
        "no certificate": [said(Talk(0xC028, seed=16, client_certificate=b"", padding=3))],
    }


def capture(talks: list[Talk], path: Path, keys: str) -> None:
    """A capture with its key log inside; the n-th connection comes from port 40000 + n."""
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        writer.secrets(keys.encode())
        interface = writer.interface("lo")
        for number, talk in enumerate(talks):
            composer = Composer(Endpoint("10.0.0.1", 40000 + number), Endpoint("10.0.0.2", 4433))
            packets = composer.open()
            for direction, data in talk.pairs():
                packets += composer.send(direction, data)
            for packet in packets:
                writer.packet(packet, 0, interface=interface)


def followed(path: Path, count: int) -> list[list[bytes]]:
    """What tshark decrypts of each connection: by direction."""
    command = ["tshark", "-r", str(path), "-q", "-d", "tcp.port==4433,tls"]
    for number in range(count):
        command += ["-z", f"follow,tls,raw,{number}"]
    run = subprocess.run(command, capture_output=True, check=True, timeout=300)
    found = [[b"", b""] for _ in range(count)]
    for text in run.stdout.decode().split("Follow: tls,raw")[1:]:
        stream = re.search(r"tcp.stream eq (\d+)", text)
        assert stream
        swapped = re.search(r"Node 0: .*:4433$", text, re.MULTILINE) is not None
        for tab, line in re.findall(r"^(\t?)([0-9a-f]+)$", text, re.MULTILINE):
            found[int(stream[1])][bool(tab) != swapped] += bytes.fromhex(line)
    return found


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
def test_tshark_opens_every_suite(tmp_path: Path) -> None:
    # Of these two key exchanges TShark 4.0 knows the names only.
    suites = [each for each in SUPPORTED if each.exchange not in ("ECCPWD", "ECDHE_PSK")]
    talks = [
        said(Talk(suite.number, seed=suite.number + (etm << 16), etm=etm))
        for suite in suites
        for etm in ((False, True) if suite.mac else (False,))
    ]
    path = tmp_path / "all.pcapng"
    capture(talks, path, "".join(talk.keylog() for talk in talks))
    assert [bytes(side) for talk in talks for side in talk.plain] == [
        side for sides in followed(path, len(talks)) for side in sides
    ]


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
@pytest.mark.parametrize("name", each_nth(list(shapes()), 4))
def test_tshark_opens_every_shape(name: str, tmp_path: Path) -> None:
    talks = shapes()[name]
    for kind in ("random", "session", "premaster"):
        keys = [talk.keylog(kind) for talk in talks]
        if keys[0]:
            path = tmp_path / f"{kind}.pcapng"
            capture(talks, path, "".join(keys))
            found = followed(path, len(talks))
            assert found == [[bytes(side) for side in talk.plain] for talk in talks], kind
