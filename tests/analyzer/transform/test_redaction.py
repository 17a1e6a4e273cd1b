"""Nothing that is redacted stays, and what stays is still a message."""

from ipaddress import ip_address
from pathlib import Path

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.records import RecordField, shareable
from kafkascope.analyzer.filter.getters import body_values
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.transform.limits import LIMITS
from kafkascope.analyzer.transform.names.pseudonyms import Pseudonyms
from kafkascope.analyzer.transform.redaction import LEVELS, Redaction
from kafkascope.analyzer.transform.secrets import masked_response
from kafkascope.dissectors.embedded.groups import subscription
from kafkascope.dissectors.keyed import decode
from kafkascope.dissectors.records.compression import compress, decompress
from kafkascope.dissectors.records.records import Partial, Record, batches, crc_ok, open_batch
from kafkascope.dissectors.records.redaction import redacted_records
from kafkascope.dissectors.records.writer import encode_batch, encode_message_set
from kafkascope.dissectors.registry import decode_response, layout_of
from kafkascope.dissectors.values import Uuid
from tests.analyzer.metadata_logs import CONFIGS, SECRETS, answer, framed, log, snapshot
from tests.analyzer.transform.cuts import messages_of
from tests.analyzer.unique_words import Filler, unpadded
from tests.kit import run
from tests.kit.captures import capture_file
from tests.kit.samples import ROOT
from tests.kit.wire import full_body, request

SAMPLES = sorted((ROOT / "captures" / "samples").glob("*.pcap*"))

RECORDS = [
    Record(7, 1000, b"a-key", b"a-value", (("a-name", b"a-header"), ("empty", None))),
    Record(8, 1001, None, None, ()),
    Record(10, 999, b"", b"a-value" * 100, ()),
]


def opened(data: bytes) -> list[Record]:
    found = []
    for batch in batches(data):
        assert crc_ok(data, batch)
        result = open_batch(data, batch)
        assert result.error is None
        found += result.records
    return found


@pytest.mark.parametrize("codec", range(5))
def test_values_become_asterisks_and_the_batch_stays_whole(codec):
    data = encode_batch(RECORDS, codec=codec, producer_id=5, base_sequence=3, leader_epoch=2)
    hidden = redacted_records(data + data)
    rows = opened(hidden)[:3]
    assert [row.key for row in rows] == [b"a-key", None, b""]
    assert [row.value for row in rows] == [b"*" * 7, None, b"*" * 700]
    assert list(rows[0].headers) == [("a-name", b"*" * 8), ("empty", None)]
    assert [(row.offset, row.timestamp) for row in rows] == [(7, 1000), (8, 1001), (10, 999)]
    first = next(iter(batches(hidden)))
    assert (first.producer_id, first.base_sequence, first.leader_epoch) == (5, 3, 2)
    (row, *_) = opened(redacted_records(data, keys=True, names=lambda layout, body: body))
    assert (row.key, row.headers[0][0]) == (b"*" * 5, "*" * 6)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", range(4))
def test_message_sets_too(magic, codec):
    rows = [Record(n, 5 if magic else None, b"a-key", b"a-value", ()) for n in range(3)]
    data = encode_message_set(magic, rows, codec=codec)
    found = opened(redacted_records(data, keys=True))
    assert [(row.key, row.value) for row in found] == [(b"*" * 5, b"*" * 7)] * 3
    assert [row.offset for row in found] == [0, 1, 2]


@pytest.mark.parametrize("magic", range(3))
def test_a_cut_last_batch_keeps_what_clients_look_at_and_nothing_else(magic):
    whole = encode_batch(RECORDS) if magic == 2 else encode_message_set(magic, RECORDS[:1])
    cut = whole[:-2]
    out = redacted_records(whole + cut)
    assert len(out) == len(whole + cut)
    assert b"value" not in out
    assert out[len(whole) :] == cut[:17] + b"*" * (len(cut) - 17)
    last = [*batches(out)][-1]
    assert isinstance(last, Partial)
    garbage = cut[:12] + b"secrets and text"
    assert redacted_records(garbage) == b"*" * len(garbage)


def test_a_batch_that_cannot_be_opened_keeps_nothing():
    data = bytearray(encode_batch(RECORDS, codec=4))
    data[70] ^= 0xFF
    hidden = redacted_records(bytes(data))
    assert hidden[61:] == b"*" * (len(data) - 61)
    assert redacted_records(b"a-value") == b"*" * 7
    assert decompress(1, compress(1, b"x")) == b"x"


def test_names_are_the_same_everywhere_and_keep_what_everybody_has():
    names = Pseudonyms()
    assert names.name("orders", "topicName") == "topic-1"
    assert names.name("orders", "resourceName") == "topic-1"
    assert names.name("__consumer_offsets", "topicName") == "__consumer_offsets"
    assert names.name("User:alice", "principal") == "User:user-1"
    topic_id = Uuid(bytes(range(16)))
    key = names.coordinator_key(f"team:{topic_id}:0", 2)
    assert key == f"group-1:{names.uuid(topic_id)}:0"
    assert names.coordinator_key(f"team:{topic_id}:0", 0) == key
    assert names.coordinator_key("te:am:word:other", 2) == "group-2"
    assert names.host("/192.0.2.7") == "/10.0.0.1"
    assert names.host("192.0.2.7") == "10.0.0.1"
    assert names.host("2001:db8::7") == "fd00::2"
    assert names.host("127.0.0.1") == "127.0.0.1"
    assert names.host("93.184.216.34") == "11.0.0.3"
    assert names.host("100.64.3.4") == "100.64.0.4"
    assert names.host("broker.corp.example") == "host-1"


def test_names_of_the_same_length():
    names = Pseudonyms(same_length=True)
    assert names.name("payments", "topicName") == "topic--1"
    assert names.name("abc", "topicName") == "to2"
    assert {names.name(text, "topicName") for text in "abcdefghijklm"} >= {"3", "4"}


def exchanges(path: Path) -> list[Exchange]:
    with open_capture([path]) as capture:
        return list(capture.exchanges())


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_nothing_redacted_is_left_in_a_sample(path):
    redaction = Redaction("all")
    payloads = []
    told = exchanges(path)
    for exchange in told:
        key, version = exchange.api_key, exchange.api_version
        for side in ("request", "response"):
            message = getattr(exchange, side)
            if exchange.request is None or message is None or message.decoded is None:
                continue
            whole = redaction.frame(message.frame.payload, side, key, version)
            if whole is not None:
                payloads.append((decode(whole, key, version, side), whole))
    assert payloads
    for decoded, whole in payloads:
        assert set(whole[decoded.end :]) <= {ord("*")}, "bytes behind a message are hidden"
    # Whose client id is the name of its library: the library stays.
    libraries = {exchange.software.split(" ")[0] for exchange in told}
    names = set(redaction.names.originals) - libraries
    originals = [name.encode() for name in names if len(name) > 5]
    text = b"\0".join(whole for _, whole in payloads)
    assert [name for name in originals if name in text] == []


def test_sizes_stay_with_names_of_the_same_length():
    redaction = Redaction("all", Pseudonyms(same_length=True))
    layout = layout_of("DeleteTopicsRequest", 3)
    body = {"topic_names": ["orders", "payments"], "timeout_ms": 5}
    assert redaction.body(layout, body) == {"topic_names": ["topic1", "topic--2"], "timeout_ms": 5}


def test_formats_inside_of_bytes_stay_readable_with_other_names() -> None:
    redaction, filler = Redaction("all"), Filler()
    layout = layout_of("JoinGroupRequest", 9)
    out = redaction.body(layout, filler.body(layout) | {"protocol_type": "consumer"})
    found = subscription(out["protocols"][0]["metadata"], "consumer", "stream")
    assert (found.kind, found.note) == ("ConsumerProtocolSubscription", "")
    assert found.body["topics"][0].startswith("topic-")
    assert found.body["rack_id"].startswith("rack-")
    assert found.body["user_data"]["version"] == 11
    layout = layout_of("DescribeGroupsResponse", 6)
    out = redaction.body(layout, filler.body(layout))
    (member,) = out["groups"][0]["members"]
    found = subscription(member["member_metadata"], "connect", "")
    assert found.body["allocation"]["assigned"][0]["connector"].startswith("connector-")


def test_user_data_that_is_of_no_known_format_goes() -> None:
    redaction = Redaction("all")
    layout = layout_of("ConsumerProtocolSubscription", 3)
    body = full_body("ConsumerProtocolSubscription", 3, {"user_data": b'{"host": "secret"}'})
    assert redaction.body(layout, body)["user_data"] == b"*" * 18


def test_synonyms_of_a_config_that_the_broker_calls_sensitive_are_hidden_at_every_level() -> None:
    layout = layout_of("DescribeConfigsResponse", 4)
    filler = Filler()
    body = filler.body(layout)
    config = body["results"][0]["configs"][0]
    config |= {"name": "plugin.thing", "is_sensitive": True, "documentation": None}
    config["synonyms"][0] |= {"name": "plugin.thing"}
    value = config["synonyms"][0]["value"]
    for level in LEVELS:
        (result,) = Redaction(level).body(layout, body)["results"]
        assert result["configs"][0]["synonyms"][0]["value"] == "*" * len(value)


@pytest.mark.parametrize("attributes", [0, 0x20])
def test_a_batch_that_says_to_be_control_hides_no_values(attributes: int) -> None:
    data = encode_batch([RECORDS[0]], attributes=attributes)
    assert b"a-value" not in redacted_records(data)


def test_what_kafka_writes_into_control_batches_stays() -> None:
    marker = Record(0, 1000, b"\0\0\0\1", b"\0\0\0\0\0\7", ())
    data = encode_batch([marker], attributes=0x20)
    for names in (None, Redaction("all").body):
        (row,) = opened(redacted_records(data, keys=True, names=names))
        assert (row.key, row.value) == (marker.key, marker.value)


def test_surplus_goes_also_where_nothing_else_does() -> None:
    payload = request("ApiVersions", 0, 1, client_id=None)[4:]
    for level in ("values", "all"):
        changed = Redaction(level, Pseudonyms()).request(payload + b"secret")
        assert changed == payload + b"******"
    assert Redaction("none", Pseudonyms()).request(payload + b"secret") == payload + b"secret"


def test_names_beyond_what_is_remembered_are_asterisks() -> None:
    names = Pseudonyms(same_length=True, limits=LIMITS._replace(names=2))
    assert names.remarks == []
    assert [names.name(each, "topicName") for each in ("orders", "p\u00e4y", "logs", "orders")] == [
        "topic1",
        "top2",
        "****",
        "topic1",
    ]
    ids = [names.uuid(Uuid(bytes([each]) * 16)) for each in (1, 2, 3, 4, 1)]
    assert len(set(ids[:3])) == 3
    assert ids[3:] == [ids[2], ids[0]]
    assert names.remarks == ["names beyond the first 2 became asterisks, 3 times"]


def test_long_names_count_by_their_letters() -> None:
    names = Pseudonyms(limits=LIMITS._replace(name_chars=1_000))
    found = [names.name(f"{number}" + "x" * 400, "groupId") for number in range(5)]
    assert found[:3] == ["group-1", "group-2", "group-3"]
    assert {len(each) for each in found[3:]} == {401}
    hosts = [names.host(f"{number}" + "x" * 400) for number in range(5)]
    assert set(hosts[3:]) == {"*" * 401}
    assert names.remarks == ["names beyond the first 3 became asterisks, 4 times"]


def test_addresses_beyond_what_is_remembered_are_chosen_by_hash() -> None:
    names = Pseudonyms(limits=LIMITS._replace(names=2))
    assert [names.host(each) for each in ("192.168.0.7", "one.example")] == ["10.0.0.1", "host-1"]
    asked = [
        *("192.168.0.8", "192.168.0.9", "8.8.8.8", "100.65.0.1"),
        *("fd12::1", "2001:4860::1", "/192.168.0.8"),
    ]
    given = [names.host(each) for each in asked]
    assert given == [names.host(each) for each in asked]
    assert len(set(given)) == len(asked)
    assert given[6] == "/" + given[0]
    for old, new in zip(asked[:6], given[:6], strict=True):
        was, became = ip_address(old), ip_address(new)
        assert became != was
        assert became.version == was.version
        assert (became.is_private, became.is_global) == (was.is_private, was.is_global)
    assert names.host("two.example") == "***********"
    assert [names.host(each) for each in ("192.168.0.7", "127.0.0.1", "localhost", "")] == [
        *("10.0.0.1", "127.0.0.1", "localhost", "")
    ]
    assert len(names.originals) == 2
    assert names.remarks == [
        "names beyond the first 2 became asterisks, 1 times",
        "hosts beyond the first 2 may share an address, 14 times",
    ]


@pytest.mark.parametrize("first", ["192.168.0.1", "8.8.0.1", "100.64.0.1", "fd00::1", "2600::1"])
def test_remembered_hosts_share_their_addresses_with_nobody(first: str) -> None:
    names = Pseudonyms(limits=LIMITS._replace(names=300))
    hosts = [str(ip_address(first) + i) for i in range(900)]
    given = [names.host(each) for each in hosts]
    assert len(set(given[:300])) == 300
    assert not set(given[:300]) & set(given[300:])
    assert len(set(given)) > 890
    assert [names.host(each) for each in hosts] == given


# --- the metadata log -----------------------------------------------------------------------------


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
