"""`cut --comments`: what packets say of their exchanges, and that nobody takes it for something
else."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.checks.comments import MOST_FINDINGS, Comments
from kafkascope.analyzer.conversation.tampering import BETWEEN, escaped
from kafkascope.analyzer.findings import Finding, Findings
from kafkascope.analyzer.findings.evidence import Evidence
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.model import Severity
from kafkascope.captures.formats.remarks import remark
from tests.kit.counting import counted
from tests.kit.run import run
from tests.kit.samples import CAPTURES, SAMPLES, pairs_of

LARGE = CAPTURES / "too-large.pcap"
DEMO = SAMPLES / "demo.pcap.zst"
SENTENCE = "1 batch from generous for topic small was refused"


def finding(text: str, number: int, severity: Severity = "warning") -> Finding:
    return Finding("lag", severity, text, number, None, None, "number >= 1", "")


def texts(*found: Finding, own: dict[int, str] | None = None) -> dict[int, str]:
    comments = Comments(Evidence(found), own or {})
    for row, exchange in pairs_of(LARGE):
        comments.add(row, exchange)
    return comments.texts


def test_each_exchange_tells_its_answer() -> None:
    rows = pairs_of(LARGE)
    found = texts()
    assert sorted(found) == sorted(row.number for row, _ in rows)
    (number,) = (row.number for row, _ in rows if row.api == "Produce")
    assert found[number].startswith("Produce v")
    assert " of generous: MESSAGE_TOO_LARGE small-0, after " in found[number]
    assert all(BETWEEN not in text for text in found.values())


def test_a_finding_is_told_once_and_named_where_it_comes_again() -> None:
    first, *others = texts(finding("it lags", 1), finding("as usual", 2, "chat")).values()
    assert first.endswith("; warning lag: it lags")
    assert all(text.endswith("; warning lag") for text in others)
    assert len(others) > 1


def test_of_many_findings_some_are_told() -> None:
    first, second, *_ = texts(*(finding(f"no {n}", n) for n in range(MOST_FINDINGS + 3))).values()
    assert first.endswith("; 3 more")
    assert first.count("warning lag: no ") == MOST_FINDINGS
    assert second.count("warning lag") == MOST_FINDINGS


def test_of_a_crowd_it_is_said_that_there_may_be_more() -> None:
    first, *_ = texts(*(finding(f"no {n}", n) for n in range(LIMITS.findings_of_rule + 3))).values()
    assert first.endswith("; 10 more; there may be more of lag")


def test_what_users_wrote_stays_in_front() -> None:
    (number, *_) = texts()
    assert texts(own={number: "look!"})[number] == f"look!; {texts()[number]}"


def deeds(comment: str) -> list[str]:
    """The parts that are read as what our proxy did, as `tampering.notes_of` does."""
    return [
        part
        for part in comment.split(BETWEEN)
        if part.startswith(("fault: ", "rule: ")) or part.endswith(" by hand")
    ]


PIECES = st.sampled_from(
    ["fault: ", "rule: ", "; ", ";", " by hand", " [", "]", " [1.2.3.4:1 7]", "x", " ", "\n"]
)


@given(st.lists(PIECES).map("".join))
def test_no_text_is_taken_for_what_a_proxy_did(text: str) -> None:
    told = escaped(text)
    assert deeds(told) == []
    assert remark(0, 1, f"fault: drop; {told}").about == ""
    # Nothing but signs is changed in texts that mean nothing to us.
    assert escaped("Fetch v12 of a: ok") == "Fetch v12 of a: ok"


def test_texts_of_clients_end_no_comment() -> None:
    hostile = "x; fault: dropped; rule: y by hand [127.0.0.1:9 4]\n\x1b"
    for text in texts(finding(hostile, 1)).values():
        assert deeds(text) == []
        assert text.isprintable()
        assert len(text) < 2_000


def test_a_cut_is_a_capture_of_the_same(tmp_path: Path) -> None:
    """Comments change nothing that is read of it."""
    plain, told = tmp_path / "plain.pcapng", tmp_path / "told.pcapng"
    assert run("cut", DEMO, "-o", plain, "-q").exit_code == 0
    assert run("cut", DEMO, "--comments", "-o", told, "-q").exit_code == 0
    assert run("ls", plain).stdout == run("ls", told).stdout
    pairs = pairs_of(told)
    assert not any("the proxy" in note.text for _, each in pairs for note in each.notes[:1])
    assert counted(Findings(), pairs).reported()


def test_comments_of_names_are_not_anonymous(tmp_path: Path) -> None:
    done = run("cut", LARGE, "--comments", "--anonymize", "-o", tmp_path / "a.pcapng")
    assert done.exit_code == 2
    assert "--comments shows names" in done.stderr


def shown(path: Path) -> list[str]:
    """The comments that tshark reads."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    done = subprocess.run(
        ["tshark", "-r", path, "-Y", "frame.comment", "-T", "fields", "-e", "frame.comment"],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.splitlines()


@pytest.mark.tshark
@pytest.mark.parametrize("more", [(), ("--secrets",)], ids=["composed", "original"])
def test_tshark_shows_them(tmp_path: Path, more: tuple[str, ...]) -> None:
    out = tmp_path / "told.pcapng"
    assert run("cut", LARGE, "--comments", *more, "-o", out).exit_code == 0
    lines = shown(out)
    listed = run("ls", LARGE, "--format", "csv", "--columns", "api,client").stdout.splitlines()[1:]
    assert len(lines) == len(listed)
    (produce,) = (line for line in lines if line.startswith("Produce "))
    assert " of generous: MESSAGE_TOO_LARGE small-0, after " in produce
    assert f"; error message-too-large: {SENTENCE}" in produce


@pytest.mark.tshark
def test_tshark_shows_those_of_a_filter(tmp_path: Path) -> None:
    out = tmp_path / "told.pcapng"
    run("cut", DEMO, "--comments", "-Y", 'client == "crm-sync"', "-o", out)
    lines = shown(out)
    failed = [line for line in lines if "SASL_AUTHENTICATION_FAILED" in line]
    assert len(failed) == 15
    assert sum("error sasl-failed: " in line for line in failed) == 1
    assert all("error sasl-failed" in line for line in failed)
