"""`kafkascope diff` as people call it."""

import json

from click.testing import CliRunner

from kafkascope.analyzer.commands.diff import diff
from tests.kit import schemas as schema_samples
from tests.kit.samples import SAMPLES

LEFT, RIGHT = str(SAMPLES / "librdkafka.pcap"), str(SAMPLES / "kafka-python.pcap")


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(diff, arguments, standalone_mode=False)
    code = done.return_value if done.exception is None else 2
    return int(code), done.output


def test_two_captures_of_two_clients():
    code, text = run(LEFT, RIGHT, "--api", "fetch")
    assert code == 1
    assert text.splitlines()[0] == "librdkafka.pcap | kafka-python.pcap"
    said = {" ".join(line.split()) for line in text.splitlines()}
    assert "versions v16 | v12" in said
    # A field of one version only is not something that the other client keeps to itself.
    assert "request.topics[].topic no such field in v16 | a topicName" in said
    # Whose data is further is no difference of the clients.
    assert not any("fetch_offset" in line for line in said)


def test_what_only_one_client_asks_and_how_it_begins():
    text = run(LEFT, RIGHT)[1]
    assert "only librdkafka.pcap: AddPartitionsToTxn (5)" in text
    assert "ApiVersions v3 > Metadata v12 (10 of 44 connections)" in text
    assert "after SyncGroup: Heartbeat, OffsetFetch" in text
    lines = [json.loads(line) for line in run(LEFT, RIGHT, "--json")[1].splitlines()]
    (order,) = (line for line in lines if line["what"] == "order of first requests")
    assert order["left"] != order["right"]


def test_a_capture_and_itself():
    assert run(LEFT, LEFT)[0] == 0


def test_two_exchanges():
    code, text = run(f"{LEFT}#34", f"{LEFT}#35", "--hex")
    assert code == 1
    assert "request.max_wait_ms" not in text
    assert "librdkafka.pcap #34" in text
    lines = run(f"{LEFT}#34", f"{RIGHT}#25", "--json")[1].splitlines()
    assert {json.loads(line)["schema"] for line in lines} == {"difference/1"}
    found = {json.loads(line)["path"]: json.loads(line) for line in lines}
    assert (found["api_version"]["left"], found["api_version"]["right"]) == (16, 12)
    assert run(f"{LEFT}#34", f"{LEFT}#34")[0] == 0


def test_keys_and_values_are_compared_by_their_fields():
    path = str(schema_samples.capture("avro-registry"))
    pair = f"{path}#5", f"{path}#6"
    found = {}
    for line in map(json.loads, run(*pair, "--json")[1].splitlines()):
        found[line["path"].partition("partition_data[0].")[2]] = (line["left"], line["right"])
    assert found["records[0].key.region"] == ("US", "AP")
    assert found["records[0].value.amount"] == ("-50.00", "149.90")
    assert found["records[0].value schema"] == ("id 2", "id 3")
    assert not any(path in found for path in ("records[0].value", "records[0].value.digest.base64"))
    code, text = run(*pair, "--no-schemas")
    assert code == 1
    assert "records[0].value\n" in text
    assert "amount" not in text


def test_wrong_use():
    assert run(LEFT)[0] == 2
    assert run(f"{LEFT}#34", RIGHT)[0] == 2
    assert run(f"{LEFT}#34", f"{LEFT}#999999")[0] == 2


def test_requests_of_zookeeper_are_compared_too() -> None:
    code, text = run(str(SAMPLES / "zookeeper.pcap"), LEFT)
    assert code == 1
    assert "zk.multi (5)" in text
