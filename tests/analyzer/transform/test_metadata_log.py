"""SCRAM credentials and passwords in the metadata log of KRaft, on their way into a cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.transform.secrets import masked_response
from kafkascope.dissectors.records.records import Record, batches, crc_ok, open_batch
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.tui.cli import main
from tests.analyzer.capture_files import capture_file
from tests.analyzer.metadata_logs import CONFIGS, SECRETS, answer, framed, log, snapshot
from tests.analyzer.wire import request


def records_in(data: bytes) -> list[Record]:
    found = []
    for batch in batches(data):
        assert crc_ok(data, batch)
        found += open_batch(data, batch).records
    return found


@pytest.mark.parametrize("codec", [0, 1, 2, 4], ids=["none", "gzip", "snappy", "zstd"])
@pytest.mark.parametrize("api", ["Fetch 11", "Fetch 12", "Fetch 17", "FetchSnapshot 1"])
def test_a_cut_has_none_of_its_secrets(tmp_path: Path, api: str, codec: int) -> None:
    name, _, version = api.partition(" ")
    data = log(codec)
    answered = answer(int(version), data) if name == "Fetch" else snapshot(data)
    turns = [("client", request(name, int(version), 1)), ("broker", answered)]
    path, out = capture_file(tmp_path / "in.pcapng", turns), tmp_path / "out.pcapng"
    done = CliRunner().invoke(main, ["cut", str(path), "-o", str(out)])
    assert done.exit_code == 0, done.output
    with open_capture([out]) as capture:
        (exchange,) = capture.exchanges()
    body = exchange.response.decoded.body  # type: ignore[union-attr]
    topic = body["responses" if name == "Fetch" else "topics"][0]
    (partition,) = topic["partitions"]
    written = partition["records" if name == "Fetch" else "unaligned_records"]
    before, after = records_in(data), records_in(written)
    assert not [each for each in after for secret in SECRETS if secret in (each.value or b"")]
    assert [len(each.value or b"") for each in after] == [len(each.value or b"") for each in before]
    assert after[2:] == before[2:]
    assert b"alice" in (after[0].value or b"")
    assert len(written) == len(data) or codec


def test_what_holds_no_secret_of_it_keeps_its_bytes() -> None:
    values = [Record(0, 1, None, framed("ConfigRecord", CONFIGS[1]), ())]
    for codec in (0, 1, 4):
        payload = answer(12, encode_batch(values, codec=codec))[4:]
        assert masked_response(bytes(4) + payload, 1, 12)[4:] == payload
    other = answer(12, log(0), "orders")[4:]
    assert masked_response(bytes(4) + other, 1, 12)[4:] == other


@pytest.mark.parametrize("cut_at", [20, 70, 100, 150, -1])
def test_what_is_cut_or_unreadable_becomes_asterisks(cut_at: int) -> None:
    for data in (log(0)[:cut_at], log(0)[7:], log(1)[:90] + b"\0" * 9 + log(1)[99:]):
        for payload, key, version in ((answer(12, data)[4:], 1, 12), (snapshot(data)[4:], 59, 1)):
            written = masked_response(bytes(4) + payload, key, version)
            assert not [secret for secret in SECRETS if secret in written]
