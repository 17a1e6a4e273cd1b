"""`kafkascope check` and `groups --delivery` as users run them: text, JSON, exit codes."""

import json
import re
import runpy
import shlex
from pathlib import Path

import pytest

from kafkascope.analyzer.checks.blocks import UNBROKEN, block
from kafkascope.analyzer.filter.syntax import parse
from kafkascope.analyzer.findings import RULES, Cause, Findings
from kafkascope.analyzer.render.times import Times
from tests.analyzer.findings.judging import states
from tests.kit.counting import count_capture
from tests.kit.run import lines_of, run
from tests.kit.samples import CAPTURES, ROOT, SAMPLES

LARGE = str(CAPTURES / "too-large.pcap")
RACKS = str(CAPTURES / "far-racks.pcap")
HEALTHY = str(CAPTURES / "healthy.pcap")
OLD = str(SAMPLES / "java-old.pcap")
COMMITS = str(CAPTURES / "odd-commits.pcap")


def test_a_finding_is_a_block_of_text() -> None:
    done = run("check", LARGE)
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert states(lines[0], "error", "1 batch", "generous", "topic small")
    assert lines[1].startswith("    message-too-large, 1 event, ")
    seen = 'client == "generous" and api == Produce'
    assert lines[2].startswith(f"    evidence: kafkascope ls {shlex.quote(LARGE)} -Y '{seen}")
    assert lines[3].startswith("    fix: Raise max.message.bytes")
    assert lines[4] == "    more: kafkascope error MESSAGE_TOO_LARGE"
    assert done.stderr == "kafkascope: 1 error\n"


def test_severities_are_sorted_by_how_bad_they_are() -> None:
    words = ("--columns", "severity,first", "--format", "csv", "-q")
    done = run("check", str(CAPTURES / "shop.pcap.zst"), "--sort", "severity", *words)
    severities = [line.partition(",")[0] for line in done.stdout.splitlines()[1:]]
    counts = [severities.count(word) for word in ("error", "warning", "note", "chat")]
    assert min(counts[:3]) > 0
    assert severities == sorted(severities, key=["error", "warning", "note", "chat"].index)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((HEALTHY,), 0),
        ((RACKS,), 0),
        ((RACKS, "--fail-on", "note"), 1),
        ((LARGE, "--fail-on", "error"), 1),
        ((LARGE, "--fail-on", "never"), 0),
        ((LARGE, "--ignore", "message-too-large"), 0),
        ((LARGE, "--rule", "slow-answers"), 0),
        ((LARGE, "-Y", "api == ApiVersions"), 0),
        ((LARGE, "--rule", "no-such-rule"), 2),
        ((LARGE, "-Y", "topik == x"), 2),
        (("no-such-file.pcap",), 3),
    ],
)
def test_exit_codes(args: tuple[str, ...], code: int) -> None:
    assert run("check", *args).exit_code == code


@pytest.mark.parametrize(
    ("args", "severity", "release", "code"),
    [
        ((), "note", "4.0.0", 0),
        (("--for", "3.9"), None, "", 0),
        (("--for", "4.0"), "warning", "4.0", 1),
        (("--for", "4.1.0"), "warning", "4.1.0", 1),
        (("--for", "4.0", "--fail-on", "error"), "warning", "4.0", 0),
        (("--fail-on", "note"), "note", "4.0.0", 1),
    ],
)
def test_clients_that_a_release_breaks(
    args: tuple[str, ...], severity: str | None, release: str, code: int
) -> None:
    """It is a note that they will break some day, and a warning for the release in question."""
    done = run("check", OLD, "--rule", "breaks-on-upgrade", "--json", *args)
    found = lines_of(done)
    assert {each["severity"] for each in found} == ({severity} if severity else set())
    for each in found:
        assert f"release={release}" in each["entities"]
        assert states(each["text"], f"will not work with Kafka {release}", "Fetch v3")
        assert "version in {3}" in each["filter"]
    assert len(found) == (3 if severity else 0)
    assert done.exit_code == code


def test_clients_that_a_release_serves() -> None:
    done = run("check", HEALTHY, "--for", "4.1")
    assert (done.exit_code, done.stdout) == (0, "")


def test_a_release_that_is_none() -> None:
    done = run("check", OLD, "--for", "four")
    assert done.exit_code == 2
    assert '"four" is no Kafka release' in done.stderr


def test_damage_is_said_by_the_exit_code(tmp_path: Path) -> None:
    for source, code in ((HEALTHY, 4), (COMMITS, 1)):
        cut = tmp_path / "cut.pcap"
        cut.write_bytes(Path(source).read_bytes()[:-7])
        assert run("check", str(cut)).exit_code == code


def test_json_has_one_object_a_line() -> None:
    (line,) = run("check", LARGE, "--json").stdout.splitlines()
    found = json.loads(line)
    assert (found["schema"], found["name"], found["severity"]) == (
        "finding/1",
        "message-too-large",
        "error",
    )
    assert found["count"] == 1
    assert "client=generous" in found["entities"]


def test_rules_are_listed() -> None:
    lines = run("check", "--rules").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == list(RULES)


def test_an_unknown_rule_has_a_neighbour() -> None:
    done = run("check", LARGE, "--rule", "message-to-large")
    assert "did you mean message-too-large?" in done.stderr


def test_delivery_of_a_group() -> None:
    done = run("groups", COMMITS, "odd-group", "--delivery", "--json")
    assert done.exit_code == 0
    objects = lines_of(done)
    schemas = [each["schema"] for each in objects]
    assert schemas[0] == "delivery-partition/1"
    assert {"delivery-event/1", "delivery-plan/1"} <= set(schemas)
    assert objects[0]["beyond"] == 30


def test_lag_over_time_as_a_table() -> None:
    done = run("groups", HEALTHY, "--lag", "--format", "csv")
    head, *rows = done.stdout.splitlines()
    assert head == "group,time,topic,partition,fetched_offset,committed_offset,end_offset,lag"
    assert rows[-1].endswith(",0")


def test_the_page_of_findings_is_as_the_code_says() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "print_findings.py"))["page"]()
    assert (ROOT / "docs" / "findings.md").read_text() == page


@pytest.fixture(scope="module")
def shop() -> list[Cause]:
    """Findings of a capture with many troubles."""
    findings = Findings()
    return findings.causes(count_capture(CAPTURES / "shop.pcap.zst", findings))


@pytest.mark.parametrize("width", range(20, 121, 4))
def test_no_line_ends_inside_a_word(shop: list[Cause], width: int) -> None:
    assert len(shop) > 10
    for each in shop:
        wide = [text for text, _ in block(each, Times(), UNBROKEN, "x.pcap")]
        lines = [text for text, _ in block(each, Times(), width, "x.pcap")]
        assert " ".join(lines).split() == " ".join(wide).split()
        long = [line for line in lines if len(line) > width and len(line.split()) > 1]
        # Outside its quotes a shell would end a command at a line break.
        assert [line for line in long if not line.startswith("    evidence: kafkascope ")] == []


def test_a_filter_that_is_broken_into_lines_is_the_same_filter(shop: list[Cause]) -> None:
    for each in shop:
        assert _printed(each, "ls") == str(parse(each.finding.filter))


def _printed(cause: Cause, command: str) -> str:
    """The filter of an evidence line, as a shell reads what a narrow terminal shows."""
    text = "\n".join(text for text, _ in block(cause, Times(), 30, "'my shop.pcap'"))
    found = re.search(
        rf"^    evidence: (kafkascope {command} .*?)\n    (?:evidence|fix):", text, re.S | re.M
    )
    if found is None:
        return str(parse(""))
    *words, printed = shlex.split(found[1])
    assert words == ["kafkascope", command, "my shop.pcap", "-Y"]
    return str(parse(printed))


def test_a_finding_about_connects_says_where_they_are(shop: list[Cause]) -> None:
    about = [each for each in shop if each.finding.connects]
    assert about
    for each in about:
        assert _printed(each, "connections") == str(parse(each.finding.connects))
