"""Nothing that was redacted is in any file of a folder, packed or not, and no secret ever."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer.commands.fixture import fixture
from analyzer.fixtures.folder import read
from analyzer.offline import open_capture
from dissectors.batches import HEADER_SIZE, Partial, batches
from dissectors.compression import OUTPUT_LIMIT, decompress
from dissectors.errors import DissectError
from dissectors.layout import BytesWire
from dissectors.message_sets import open_entry
from dissectors.registry import Decoded, decode_request, decode_response
from dissectors.walk import leaves

SAMPLES = sorted((Path(__file__).parents[2] / "captures" / "samples").glob("*.pcap*"))
TRUTH = Path(__file__).parents[1] / "interop" / "truth"
PASSWORDS = [b"alice-secret", b"admin-secret", b"bob-secret"]
BASE64 = re.compile(rb"[A-Za-z0-9+/]{8,}={0,2}")


def written(sample: Path, folder: Path, level: str) -> None:
    arguments = [str(sample), "-o", str(folder), "--redact", level, "-q"]
    done = CliRunner().invoke(fixture, arguments, standalone_mode=False)
    assert done.exception is None, done.output
    assert done.return_value in (0, None), done.output


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def everything(folder: Path) -> bytes:
    """All bytes of a folder, those inside base64 and those inside batches, too."""
    out = []
    for data in files_of(folder).values():
        out.append(data)
        out += [base64.b64decode(m + b"=" * (-len(m) % 4)) for m in unpadded(data)]
    for found in read(folder):
        out += opened(found.fixture.decoded())
    return b"\n".join(out)


def unpadded(data: bytes) -> Iterator[bytes]:
    for match in BASE64.findall(data):
        text = match.rstrip(b"=")
        yield text[: len(text) - (len(text) % 4 == 1)]


def opened(decoded: Decoded) -> Iterator[bytes]:
    """What is inside the batches of records fields."""
    for leaf in leaves(decoded.layout, decoded.body):
        if not (isinstance(leaf.slot.wire, BytesWire) and leaf.slot.wire.records and leaf.value):
            continue
        field = bytes(leaf.value)
        for batch in batches(field):
            if isinstance(batch, Partial):
                continue
            if batch.magic == 2:
                whole = field[batch.at : batch.at + batch.size]
                yield decompress(batch.codec, whole[HEADER_SIZE:])
            else:
                for record in open_entry(field, batch, OUTPUT_LIMIT).records:
                    yield from (record.key or b"", record.value or b"")


def told(sample: Path, column: int) -> list[bytes]:
    """Keys (4) or values (5) that the clients wrote, from their own story."""
    path = TRUTH / f"{sample.name.partition('.pcap')[0]}.json"
    if not path.exists():
        return []
    rows = json.loads(path.read_text())["produced"]
    return sorted({str(r[column]).encode() for r in rows if len(str(r[column] or "")) > 8})


def sasl_tokens(sample: Path) -> set[bytes]:
    """What clients and brokers said to prove who they are."""
    tokens = set()
    with open_capture([sample]) as capture:
        for each in capture.exchanges():
            if each.api_key != 36 or each.api_version is None:
                continue
            try:
                if each.request is not None:
                    tokens.add(decode_request(each.request.frame.payload).body["auth_bytes"])
                if each.response is not None:
                    payload = each.response.frame.payload
                    tokens.add(decode_response(payload, 36, each.api_version).body["auth_bytes"])
            except DissectError:
                continue
    return {bytes(token) for token in tokens if token and len(token) > 8}


@pytest.mark.parametrize("level", ["none", "values", "all"])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_nothing_redacted_is_in_any_file_and_two_runs_are_the_same(
    sample: Path, level: str, tmp_path: Path
) -> None:
    written(sample, tmp_path / "one", level)
    held = everything(tmp_path / "one")
    hidden = [*PASSWORDS, *sasl_tokens(sample)]
    if level != "none":
        hidden += told(sample, 5)
    assert [each for each in hidden if each in held] == []
    written(sample, tmp_path / "two", level)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_what_is_not_redacted_would_be_found(tmp_path: Path) -> None:
    """The search itself works: values of packed batches are found where they may stay."""
    sample = next(path for path in SAMPLES if path.name.startswith("java-codecs"))
    written(sample, tmp_path / "plain", "none")
    held = everything(tmp_path / "plain")
    values = told(sample, 5)
    assert values
    assert sum(value in held for value in values) > 20
    assert sasl_tokens(next(path for path in SAMPLES if path.name.startswith("sasl.")))
