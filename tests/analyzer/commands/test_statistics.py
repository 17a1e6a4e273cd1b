"""clients, stats, groups, cluster, producers and doctor as users run them."""

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from kafkascope.analyzer.commands import output
from tests.hostile import hostile
from tests.kit.run import run
from tests.kit.samples import CAPTURES, ROOT

SAMPLES = ROOT / "captures" / "samples"
REBALANCE = str(SAMPLES / "rebalance.pcap")
TRANSACTIONS = str(SAMPLES / "transactions.pcap")
OLD = str(SAMPLES / "java-old.pcap")
CLUSTER = str(SAMPLES / "cluster.pcap.gz")
DEMO = str(SAMPLES / "libraries.pcap")

TABLES = (
    ("stats", "apis"),
    ("stats", "latency"),
    ("stats", "errors", "--by", "expected,code", "-q"),
    ("stats", "topics"),
    ("stats", "partitions"),
    ("stats", "connections"),
    ("stats", "connections", "--by", "client"),
    ("stats", "sizes"),
    ("stats", "rates"),
    ("clients",),
    ("clients", "--apis"),
    ("clients", "--for", "4.0"),
    ("groups",),
    ("groups", "--members"),
    ("groups", "--rebalances"),
    ("cluster", "--only", "nodes"),
    ("cluster", "--only", "leaders"),
    ("cluster", "--only", "coordinators"),
)


def printed(*args: str) -> str:
    """What a command prints that ends well."""
    done = run(*args)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return done.stdout


def objects(*args: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed(*args, "--json").splitlines()]


@pytest.mark.parametrize("table", TABLES, ids=" ".join)
def test_all_formats_hold_the_same_rows(table: tuple[str, ...]) -> None:
    lines = objects(*table, REBALANCE)
    assert lines
    assert all(re.fullmatch(r"[a-z-]+/1", line["schema"]) for line in lines)
    assert json.loads(printed(*table, REBALANCE, "--format", "json")) == lines
    rows = list(csv.DictReader(io.StringIO(printed(*table, REBALANCE, "--format", "csv"))))
    assert len(rows) == len(lines)
    assert len(printed(*table, REBALANCE, "--format", "tsv").splitlines()) == len(lines) + 1
    assert len(printed(*table, REBALANCE).splitlines()) == len(lines) + 1


@pytest.mark.parametrize(
    "words",
    [
        ("stats", "zookeeper", "zookeeper.pcap"),
        ("cluster", "cluster.pcap.gz"),
        ("groups", "rebalance.pcap"),
        ("groups", "rebalance.pcap", "java-4.4.0.group.group"),
        ("groups", "rebalance.pcap", "--delivery"),
        ("producers", "transactions.pcap"),
    ],
    ids=" ".join,
)
def test_json_of_several_tables_is_nothing_but_json(words: tuple[str, ...]) -> None:
    args = [str(SAMPLES / word) if ".pcap" in word else word for word in words]
    lines = printed(*args, "--json").split("\n")
    assert lines.pop() == ""
    assert lines
    assert all(re.fullmatch(r"[a-z-]+/1", json.loads(line)["schema"]) for line in lines)


@pytest.mark.parametrize("table", TABLES, ids=" ".join)
def test_a_filter_that_nothing_passes_leaves_nothing(table: tuple[str, ...]) -> None:
    assert printed(*table, REBALANCE, "-Y", "number > 100000", "-q") == ""


def test_filters_and_ranges_choose_what_is_counted() -> None:
    def count(*more: str) -> int:
        return sum(line["requests"] for line in objects("stats", "apis", REBALANCE, *more))

    whole = count()
    assert whole == len(objects("ls", REBALANCE))
    beats = count("-Y", "api == Heartbeat")
    assert 0 < beats < whole
    assert count("--from", "1") + count("--to", "1") == whole
    assert count("-c", "3") == 3


def test_numbers_add_up_whatever_they_are_split_by() -> None:
    for by in ("api", "client", "broker_address", "api,api_version,client_id,broker"):
        found = objects("stats", "apis", DEMO, "--by", by)
        exchanges = objects("ls", DEMO)
        assert sum(line["requests"] for line in found) == len(exchanges)
        assert sum(line["lost"] for line in found) == sum(e["state"] == "lost" for e in exchanges)
        asked = [e["request_bytes"] or 0 for e in exchanges]
        assert sum(line["request_bytes"] for line in found) == sum(asked)


def test_latency_is_that_of_the_exchanges() -> None:
    exchanges = [e for e in objects("ls", DEMO) if e["api"] == "Fetch" and e["latency_ms"]]
    (line,) = [line for line in objects("stats", "latency", DEMO) if line["api"] == "Fetch"]
    assert line["requests"] == len(exchanges)
    assert line["max_ms"] == max(e["latency_ms"] for e in exchanges)
    excess = [max(0, e["latency_ms"] - e["wait_ms"]) for e in exchanges]
    assert line["excess_max_ms"] == pytest.approx(max(excess), abs=0.001)
    assert line["waited"] == sum(e["wait_ms"] > 0 for e in exchanges)
    slowest = next(e for e in exchanges if e["number"] == line["slowest"])
    assert slowest["latency_ms"] - slowest["wait_ms"] == pytest.approx(max(excess), abs=0.001)


def test_errors_are_those_of_the_exchanges() -> None:
    wanted: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
    for exchange in objects("ls", DEMO):
        wanted[exchange["expected"]].update(error["name"] for error in exchange["errors"])
    found = objects("stats", "errors", DEMO, "--by", "code", "-q")
    assert {line["error"]: line["count"] for line in found} == wanted[False]
    assert [line["count"] for line in found] == sorted(wanted[False].values(), reverse=True)
    found = objects("stats", "errors", DEMO, "--by", "expected,code", "-q")
    expected = {line["error"]: line["count"] for line in found if line["expected"]}
    assert expected == wanted[True]


def test_topics_hold_the_records_of_the_capture() -> None:
    produced = [e for e in objects("ls", DEMO) if e["api"] == "Produce" and not e["errors"]]
    wanted = sum(e["records"] for e in produced)
    lines = objects("stats", "topics", DEMO)
    assert sum(line["produced_records"] for line in lines) == wanted
    parts = objects("stats", "partitions", DEMO)
    assert sum(line["produced_records"] for line in parts) == wanted
    for topic in lines:
        shares = [line["share"] for line in parts if line["topic"] == topic["topic"]]
        assert sum(share for share in shares if share is not None) in (0, pytest.approx(1))


def test_connections_are_those_of_the_capture() -> None:
    lines = objects("stats", "connections", DEMO)
    seen = {e["connection"] for e in objects("ls", DEMO)}
    assert {line["connection"] for line in lines} == seen
    assert {line["phase"] for line in lines} <= {"work", "sasl", "versions", "connected"}
    clients = objects("stats", "connections", DEMO, "--by", "client")
    assert sum(line["connections"] for line in clients) == len(lines)
    assert sum(line["requests"] for line in clients) == len(objects("ls", DEMO))


def test_rates_hold_every_exchange_once() -> None:
    for every in ("10ms", "1s", "1m"):
        lines = objects("stats", "rates", DEMO, "--every", every)
        assert sum(line["requests"] for line in lines) == len(objects("ls", DEMO))
    assert run("stats", "rates", DEMO, "--every", "soon").exit_code == 2
    assert run("stats", "rates", DEMO, "--every", "1us").exit_code == 2


def test_old_clients_break_on_new_releases() -> None:
    lines = {line["client_id"]: line for line in objects("clients", OLD, "--for", "4.0")}
    old = lines["java-0.10.2.2"]
    assert (old["verdict"], old["breaks_at"]) == ("breaks", "4.0.0")
    assert any("Produce v2, removed in 4.0.0 (4.0 supports v3-12)" in text for text in old["why"])
    here = {line["client_id"]: line["verdict"] for line in objects("clients", OLD, "--for", "3.9")}
    assert here["java-0.10.2.2"] == "ok"
    assert run("clients", OLD, "--for", "four").exit_code == 2


def test_versions_of_apis_are_those_of_the_exchanges() -> None:
    wanted: dict[str, set[int]] = {}
    for exchange in objects("ls", DEMO):
        if exchange["api_version"] is not None:
            wanted.setdefault(exchange["api"], set()).add(exchange["api_version"])
    found: dict[str, set[int]] = {}
    for line in objects("clients", DEMO, "--apis"):
        found.setdefault(line["api"], set()).update(line["versions"])
    assert found == wanted


def test_columns_and_sorting() -> None:
    args = ("stats", "latency", DEMO, "--columns", "api,max", "--sort", "max", "-n", "3")
    header, *lines = printed(*args, "--format", "tsv").splitlines()
    assert header == "api\tmax_ms"
    numbers = [float(line.split("\t")[1]) for line in lines]
    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) == 3
    upwards = printed(*args[:-4], "--sort", "+max", "-n", "1", "--format", "tsv").splitlines()[1]
    assert float(upwards.split("\t")[1]) <= numbers[-1]
    done = run("stats", "latency", DEMO, "--columns", "p9")
    assert done.exit_code == 2
    assert "did you mean p95?" in done.stderr or "did you mean p99?" in done.stderr
    assert run("stats", "latency", DEMO, "--by", "weather").exit_code == 2


def test_a_group_behind_the_input() -> None:
    name = "librdkafka.group.group"
    rebalances, members = printed("groups", REBALANCE, name).split("\n\n")
    assert len(rebalances.splitlines()) == 4
    assert len(members.splitlines()) == 3
    found = objects("groups", REBALANCE, name)
    assert [line["schema"] for line in found] == ["rebalance/1"] * 3 + ["group-member/1"] * 2
    causes = [line["cause"] for line in found if line["schema"] == "rebalance/1"]
    assert causes == ["formed", "joined", "left"]
    done = run("groups", REBALANCE, "librdkafka.group")
    assert done.exit_code == 2
    assert f"groups: {name}, " in done.stderr


def test_a_timeline_has_a_lane_for_every_member() -> None:
    out = printed("groups", REBALANCE, "java-4.4.0.group.group", "--timeline", "-t", "u")
    title, scale, one, two, legend = out.splitlines()
    assert title.startswith("group java-4.4.0.group.group   classic protocol   generation 1 -> 3")
    assert "3 rebalances" in title
    assert re.search(r"\d\d:\d\d:\d\d", scale)
    assert "J" in one
    assert "=" in one
    assert "left" in two
    assert "J join" in legend
    assert run("groups", REBALANCE, "--timeline", "--json").exit_code == 2


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("wide", [False, True])
def test_a_timeline_fits_a_terminal(
    width: int, wide: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Reasons of members and the line of the group were broken by the terminal.
    path = Path(REBALANCE)
    if wide:
        path = hostile(path, tmp_path / "wide.pcapng", "日本語🎉", "注文")
    monkeypatch.setattr(output, "terminal_width", lambda: width)
    told = printed("groups", str(path), "--timeline")
    lines = told.splitlines()
    assert max(map(cell_len, lines)) <= width
    assert "3 rebalances" in " ".join(told.split())
    assert len([line for line in lines if line.startswith(" c")]) == 4


def test_the_cluster_as_told() -> None:
    out = printed("cluster", CLUSTER)
    assert out.startswith("cluster ")
    nodes = objects("cluster", CLUSTER, "--only", "nodes")
    brokers = [line for line in nodes if line["role"] == "broker"]
    assert {line["node"] for line in brokers} == {1, 2, 3}
    assert {line["contacted"] for line in brokers} == {"yes"}
    schemas = {line["schema"] for line in objects("cluster", CLUSTER)}
    assert schemas == {"node/1", "coordinator/1", "leader/1"}


def test_transactions_of_producers() -> None:
    found = objects("producers", TRANSACTIONS, "--transactions")
    assert [line["outcome"] for line in found] == ["committed", "aborted", "committed"] * 2
    assert objects("producers", TRANSACTIONS)
    assert {line["missing"] for line in objects("producers", TRANSACTIONS, "--partitions")} == {0}


def test_a_damaged_capture_is_counted_as_far_as_it_goes(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(Path(DEMO).read_bytes()[:-10])
    done = run("stats", "apis", str(cut))
    assert done.exit_code == 4
    assert "API" in done.stdout
    assert run("clients", str(tmp_path / "none.pcap")).exit_code == 3
    assert run("groups", DEMO, "-Y", "topik == 1").exit_code == 2


def test_the_doctor_names_what_is_there() -> None:
    found = {line["what"]: line for line in objects("doctor")}
    assert found["Python"]["state"] == "ok"
    assert {"terminal", "clipboard", "capture rights", "extra proxy", "extra tls"} <= found.keys()
    assert {line["state"] for line in found.values()} <= {"ok", "note", "missing"}


def test_waits_that_look_slow_are_a_remark() -> None:
    polls = str(CAPTURES / "commit-storm.pcap.gz")
    assert "long-poll wait" in run("stats", "latency", polls).stderr
    assert "asked to wait" not in run("stats", "latency", polls, "-q").stderr
    assert "asked to wait" not in run("stats", "latency", polls, "-Y", "api != Fetch").stderr


def test_where_tls_cannot_be_read_the_table_says_why() -> None:
    captures = ROOT / "tests" / "analyzer" / "captures" / "tls"
    capture = str(captures / "tls13-missing-key.pcap.gz")
    log = str(captures / "tls13-missing-key.keys")
    lines = run("stats", "connections", capture, "--keylog", log).stdout.splitlines()
    assert lines[0].split("\t")[-2:] == ["TLS", "TLS note"]
    told = [line.split("\t")[-1] for line in lines[1:]]
    assert sum(each.startswith("the key log has no line for") for each in told) == 1
    assert sum(not each for each in told) == len(told) - 1
    capture, log = (str(captures / f"tls13-psk.{end}") for end in ("pcap.gz", "keys"))
    assert "TLS note" not in printed("stats", "connections", capture, "--keylog", log)
