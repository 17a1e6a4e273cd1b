"""Nothing that was redacted is in any file of a folder, packed or not, and no secret ever."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkascope.analyzer.commands.fixture import fixture
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.fixtures.folder import read
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import decode_request, decode_response
from tests.analyzer.packed import told_of, unpacked

SAMPLES = sorted((Path(__file__).parents[2] / "captures" / "samples").glob("*.pcap*"))
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
        out += unpacked(found.fixture.decoded())
    return b"\n".join(out)


def unpadded(data: bytes) -> Iterator[bytes]:
    for match in BASE64.findall(data):
        text = match.rstrip(b"=")
        yield text[: len(text) - (len(text) % 4 == 1)]


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


def names_in(sample: Path) -> list[bytes]:
    """Topics, groups, clients, users that people named."""
    names: set[str] = set()
    libraries: set[str] = set()
    with open_capture([sample]) as capture:
        for exchange in capture.exchanges():
            row = row_of(exchange, capture.context.names)
            names |= {*row.topics, *row.groups, *row.transactional_ids}
            names |= {row.client_id or "", row.user or ""}
            libraries.add(row.software.split(" ")[0])
    return [
        name.encode()
        for name in sorted(names - libraries)
        if len(name) > 5 and not name.startswith("__") and not name.endswith("?")
    ]


@pytest.mark.parametrize("level", ["none", "values", "keys", "all"])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_nothing_redacted_is_in_any_file_and_two_runs_are_the_same(
    sample: Path, level: str, tmp_path: Path
) -> None:
    written(sample, tmp_path / "one", level)
    held = everything(tmp_path / "one")
    hidden = [*PASSWORDS, *sasl_tokens(sample)]
    if level != "none":
        hidden += told_of(sample, 5)
    if level in ("keys", "all"):
        hidden += told_of(sample, 4)
    if level == "all":
        hidden += names_in(sample)
    assert [each for each in hidden if each in held] == []
    written(sample, tmp_path / "two", level)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_what_is_not_redacted_would_be_found(tmp_path: Path) -> None:
    """The search itself works: values of packed batches are found where they may stay."""
    sample = next(path for path in SAMPLES if path.name.startswith("java-codecs"))
    written(sample, tmp_path / "plain", "none")
    held = everything(tmp_path / "plain")
    values = told_of(sample, 5)
    assert values
    assert sum(value in held for value in values) > 20
    assert sasl_tokens(next(path for path in SAMPLES if path.name.startswith("sasl.")))
