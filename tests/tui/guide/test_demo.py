"""The demo: the capture that ships, what it says without a terminal, and the tour."""

import csv
import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from textual.widgets._toast import Toast
from zstandard import ZstdDecompressor

from kafkascope.tui.cli import main
from kafkascope.tui.guide.demo import HINTS, UNREACHABLE, capture
from kafkascope.tui.guide.tour_app import STEPS, TourApp
from tests.tui.pilots import StillFeed, show, store_of, text_of

ROOT = Path(__file__).parents[3]
LIMIT_BYTES = 300_000


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.pcap"
    assert CliRunner().invoke(main, ["demo", "--save", str(path)]).exit_code == 0
    return path


def run(*words: str) -> str:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code in (0, 1), result.output
    return result.output


def test_it_ships_and_is_small() -> None:
    assert capture().stat().st_size < LIMIT_BYTES


def test_one_name_is_one_capture(saved: Path, tmp_path: Path) -> None:
    """What it writes is the sample of that name, and no other sample has it."""
    samples = ROOT / "captures" / "samples"
    assert [path.name for path in samples.glob("demo*")] == [capture().name] == ["demo.pcap.zst"]
    packed = (samples / "demo.pcap.zst").read_bytes()
    assert saved.read_bytes() == ZstdDecompressor().decompress(packed)
    again = tmp_path / "again.pcap.zst"
    assert CliRunner().invoke(main, ["demo", "--save", str(again)]).exit_code == 0
    assert again.read_bytes() == packed


@pytest.mark.parametrize("name", ["a.pcap", "a folder/with a much longer name than usual.pcap"])
def test_what_to_do_next_stands_in_columns(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    told = CliRunner().invoke(main, ["demo", "--save", str(path)])
    starts = set()
    for question, command in HINTS:
        (line,) = (line for line in told.stderr.splitlines() if line.endswith(question))
        assert line.strip().startswith(command.format(shlex.quote(str(path))) + "  ")
        starts.add(line.index(question))
    assert len(starts) == 1


def test_the_request_log_answers_what_it_can(tmp_path: Path) -> None:
    words = ["demo", "--request-log", "--save", str(tmp_path / "demo.log")]
    told = CliRunner().invoke(main, words).stderr
    assert "the demo request log is in" in told
    assert [question for question, _ in HINTS if question not in told] == [UNREACHABLE]


def test_without_a_terminal_it_lists_and_says_what_next() -> None:
    told = run("demo")
    assert "orders-svc" in told
    for question, _ in HINTS:
        assert question in told


def test_the_client_that_breaks(saved: Path) -> None:
    told = told_as_csv("clients", str(saved), "--for", "4.0", "--columns", "client,verdict")
    assert [each["client_id"] for each in told if each["verdict"] == "breaks"] == ["legacy-export"]


def test_why_the_group_rebalanced(saved: Path) -> None:
    told = run("groups", str(saved), "billing", "-q")
    for cause in ("joined", "left", "expired", "no heartbeat for"):
        assert cause in told


def test_the_wrong_address(saved: Path) -> None:
    told = run("cluster", str(saved), "--only", "nodes", "-q")
    assert re.search(r"172\.17\.0\.4:29092", told)


CAUSES = [
    ("error", "sasl-failed", "client=crm-sync"),
    ("error", "address-unanswered", "client=reports-ui"),
    ("warning", "rebalance-expired", "group=billing"),
    ("warning", "rebalance-poll", "group=billing"),
    ("warning", "broker-paused", "broker=10.0.1.2:9092"),
    ("warning", "broker-down", "broker=10.0.1.3:9092"),
    ("note", "breaks-on-upgrade", "client=legacy-export"),
    ("note", "no-api-versions", "client=inventory-sync"),
]
"""What was done to the shop, worst and earliest first: see `tests/interop/demo/`."""

MILDER = {"broker-down": "note"}
"""Severity of the finding itself, where a consequence is worse."""


def test_eight_lines_tell_what_is_wrong(saved: Path) -> None:
    told = run("check", str(saved), "-q")
    heads = [line.partition(":")[0] for line in told.splitlines() if not line.startswith(" ")]
    assert [head for head in heads if head not in ("", "chat")] == [cause[0] for cause in CAUSES]


def test_each_cause_is_what_was_done_and_the_rest_followed_from_one(saved: Path) -> None:
    found = [json.loads(line) for line in run("check", str(saved), "-q", "--json").splitlines()]
    alone = [each for each in found if not each["because"] and each["severity"] != "chat"]
    assert [(each["severity"], each["name"]) for each in alone] == [
        (MILDER.get(name, severity), name) for severity, name, _ in CAUSES
    ]
    assert all(who in each["entities"] for each, (*_, who) in zip(alone, CAUSES, strict=True))
    followed = {each["name"] for each in found if each["because"]}
    assert followed >= {
        *("redelivered", "consumer-silent", "slow-answers", "late-answer", "batch-twice"),
        *("stale-leader", "unanswered", "batch-old-format"),
    }


def commands_of_the_readme() -> list[str]:
    text = (ROOT / "README.md").read_text()
    found = re.findall(r"^    \$ kafkascope (.*?demo\.pcap.*)$", text, re.MULTILINE)
    return [line.partition("  ")[0] for line in found]


def test_the_commands_of_the_readme_do(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(saved.parent)
    commands = commands_of_the_readme()
    assert len(commands) == 3
    for command in commands:
        assert run(*shlex.split(command)), command


def told_as_csv(*words: str) -> list[dict[str, str]]:
    return list(csv.DictReader(run(*words, "-q", "--format", "csv").splitlines()))


def test_what_the_tour_says_is_there(saved: Path) -> None:
    says = " ".join(f"{step.press} {step.see}" for step in STEPS)
    assert "Broker 3 advertises" in says
    assert "reports-ui to 172.17.0.4:29092" in says
    found = run("check", str(saved), "-q")
    assert any("172.17.0.4:29092" in line and "reports-ui" in line for line in found.splitlines())
    assert "legacy-export supports Fetch up to v3 and Produce up to v2" in says
    apis = told_as_csv("clients", str(saved), "--apis")
    versions = {
        line["api"]: line["versions"] for line in apis if line["client_id"] == "legacy-export"
    }
    assert (versions["Fetch"], versions["Produce"]) == ("3", "2")
    assert "crm-sync never completed authentication" in says
    outcomes = {line["client_id"]: line["outcome"] for line in told_as_csv("clients", str(saved))}
    assert outcomes["crm-sync"] == "kept out"
    assert "Produce was slow while broker 2 stalled" in says
    (produce,) = (
        line for line in told_as_csv("stats", "latency", str(saved)) if line["api"] == "Produce"
    )
    assert float(produce["excess_max_ms"]) > 1_000


def test_the_tour_leads_through_the_screens(saved: Path) -> None:
    async def walk(app, pilot):
        assert f"1/{len(STEPS)}" in text_of(app)
        app.say("a remark")
        await pilot.settle()
        remark = app.query_one(Toast).region
        assert remark.bottom <= app.guide.region.y, "remarks leave the guide to be read"
        await pilot.do("7")
        assert "(this screen)" in text_of(app)
        await pilot.resize_terminal(80, 24)
        for number in range(2, len(STEPS) + 1):
            await pilot.do("f2")
            assert f"{number}/{len(STEPS)}" in text_of(app)
            assert "F4" in text_of(app), "which keys lead on is on the smallest terminal, too"
        await pilot.press("f3")
        assert app.stop_number == len(STEPS) - 2
        await pilot.do("f4")
        assert "F2 next" not in text_of(app)

    app = TourApp(StillFeed(store_of(saved)), "demo.pcap")
    show(app, walk, (120, 40), notifications=True)


def test_the_request_log_of_the_same_minute_ships_too(tmp_path: Path) -> None:
    log = tmp_path / "demo.log"
    given = ["demo", "--request-log", "--save", str(log)]
    assert CliRunner().invoke(main, given).exit_code == 0
    assert b"Completed request:" in log.read_bytes()
    told = run("clients", "--for", "4.0", "--json", "--time-zone", "UTC", str(log))
    assert '"client_id":"legacy-export"' in told
    assert "demo.log" in run("demo", "--request-log")
