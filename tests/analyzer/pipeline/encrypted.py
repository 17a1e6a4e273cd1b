"""Captures of TLS with their key logs, rotated and written in bursts; what leaks into tables."""

from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path

from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Packet
from tests.kit.captures import written
from tests.kit.samples import TLS

LOGS = sorted(TLS.glob("*.keys"))


PORTS = tuple(range(20_000, 28_000))
"""Of all brokers: what else decides who is one may be known later or earlier behind damage."""


def encrypted() -> list[str]:
    """All captures of TLS that are small."""
    return sorted(map(str, TLS.glob("*.pcap*")))


def packets_of(name: str) -> list[Packet]:
    with open_inputs([TLS / name]) as source:
        return list(source.packets())


def rotated(name: str, folder: Path, size: int) -> list[Path]:
    """The packets of a capture in files of so many."""
    packets = packets_of(name)
    return [
        written(packets[at : at + size], folder / f"{at:05}.pcapng")
        for at in range(0, len(packets), size)
    ]


def leaks(folder: Path, logs: Iterable[Path]) -> Iterator[str]:
    """Yield the names of files that hold a secret of key logs, in some form."""
    secrets = {
        bytes.fromhex(line.split()[2].removeprefix("Master-Key:"))
        for log in logs
        for line in log.read_text().splitlines()
        if len(line.split()) == 3 and not line.startswith("#")
    }
    forms = []
    for each in secrets:
        for at in range(3):
            # Whatever stands before it: base64 has three ways to say it.
            text = b64encode(bytes(at) + each)
            forms.append(text[4 : -4 or None])
        forms += [each, each.hex().encode(), each.hex().upper().encode()]
    for path in folder.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        if any(form in data for form in forms):
            yield path.name
