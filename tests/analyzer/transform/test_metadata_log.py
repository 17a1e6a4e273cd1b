"""SCRAM credentials and passwords in the metadata log of KRaft, on their way into a cut."""

from pathlib import Path

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.records import RecordField, shareable
from kafkascope.analyzer.filter.getters import body_values
from kafkascope.analyzer.transform.redaction import LEVELS, Redaction
from kafkascope.analyzer.transform.secrets import masked_response
from kafkascope.dissectors.records.records import Record, batches, crc_ok, open_batch
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import decode_response
from tests.analyzer.metadata_logs import CONFIGS, SECRETS, answer, framed, log, snapshot
from tests.analyzer.transform.cuts import messages_of
from tests.analyzer.unique_words import unpadded
from tests.kit import run
from tests.kit.captures import capture_file
from tests.kit.wire import request


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
    run.output("cut", path, "-o", out)
    body = messages_of(out)[1].decoded.body
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


def capture_of(path: Path, data: bytes) -> Path:
    turns = [("client", request("Fetch", 12, 1)), ("broker", answer(12, data))]
    return capture_file(path, turns)


@pytest.mark.parametrize("codec", [0, 1])
def test_no_fixture_has_its_secrets_at_any_level(codec: int) -> None:
    payload = answer(12, log(codec))[4:]
    for level in LEVELS:
        made = Redaction(level).response(payload, 1, 12)
        (topic,) = decode_response(made, 1, 12).body["responses"]
        records = records_in(topic["partitions"][0]["records"])
        assert not [each for each in records for secret in SECRETS if secret in (each.value or b"")]
        assert (records[2].value == records_in(log(codec))[2].value) is (level == "none")


@pytest.mark.parametrize("cut_at", [100, 200, 250, -1])
def test_bytes_that_are_shown_have_none_behind_damage_either(cut_at: int) -> None:
    whole = log(0)
    damaged = whole[:cut_at] + b"\xff" * 5 + whole[cut_at + 5 :]
    for data in (whole[:cut_at], damaged, whole + whole[:cut_at], damaged + whole, whole[7:]):
        for aligned in (True, False):
            field = RecordField("fetch", "__cluster_metadata", None, 0, data, None, aligned)
            shown = shareable(field) or b""
            assert not [secret for secret in SECRETS if secret in shown]


def test_a_diff_a_filter_and_json_have_none(tmp_path: Path) -> None:
    one = capture_of(tmp_path / "one.pcapng", log(0))
    data = encode_batch([Record(0, 1, None, framed("ConfigRecord", CONFIGS[1]), ())] * 3)
    two = capture_of(tmp_path / "two.pcapng", data)
    found = "response.responses.partitions.records"
    for words in (
        ("diff", one, two, "--json"),
        ("diff", one, two),
        ("show", one, "1", "--hex"),
        ("show", one, "1", "--json"),
        ("ls", one, "--json", "--columns", f"number,{found}"),
        ("records", one, "--json"),
    ):
        said = run.run(*words, codes=(0, 1)).output.encode()
        texts = (said, *unpadded(said))
        assert not [text for text in texts for secret in SECRETS if secret in text], words
    with open_capture([one]) as capture:
        (exchange,) = capture.exchanges()
    (shown,) = body_values(exchange, ("response", "responses", "partitions", "records"))
    assert not [secret for secret in SECRETS if secret in shown]
    assert len(shown) == len(log(0))
