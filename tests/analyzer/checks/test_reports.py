"""Reports for CI systems: their structure, and texts from traffic that would break out of them."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kafkascope.analyzer.checks import baseline
from kafkascope.analyzer.checks.baseline import WrongBaseline, baseline_lines, gone, read_baseline
from kafkascope.analyzer.checks.blocks import commands
from kafkascope.analyzer.checks.judging import NEVER, judged
from kafkascope.analyzer.checks.junit import MAX_CONSEQUENCES, junit
from kafkascope.analyzer.checks.sarif import sarif
from kafkascope.analyzer.findings import RULES, Cause, Finding
from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.render.times import Times
from kafkascope.dissectors.codec.jsonform import dumps

HOSTILE = (
    "a\n::set-output name=x::y\r::add-mask::%0A%25\n::error file=a,line=1::b",
    "]]></failure><testcase/>&lt;\x00\x0b\x1b[31m\ufffe\uffff\ud800 \u202e",
    "[click](https://evil.example) {0} {{1}} \\[x] \\\\",
)
TEXTS = st.text() | st.sampled_from(HOSTILE)


def finding(
    text: str = "it broke",
    severity: Severity = "error",
    key: str = "unknown-topic topic=t",
    name: str = "unknown-topic",
) -> Finding:
    return Finding(name, severity, text, 2, 1_000, 5_000, f'client == "{text}"', "Fix it.", key=key)


CAUSE = Cause(
    finding(),
    (finding("it was slow", "warning", "slow-answers topic=t", "slow-answers"),),
)
MILD = Cause(finding("by the way", "note", "no-api-versions client=c", "no-api-versions"))
CHAT = Cause(finding("as usual", "chat", "tls-opaque", "tls-opaque"))
SILENT = "lookup-storm"
RULE_NAMES = ["unknown-topic", "slow-answers", "no-api-versions", "tls-opaque", SILENT]


def times() -> Times:
    return Times("u")


def cases(xml: str) -> dict[str, ElementTree.Element]:
    """The only suite's cases by name; the counts of it and of the whole are what it holds, and no
    element has an attribute that the schema of Jenkins (junit-10.xsd) does not know."""
    root = ElementTree.fromstring(xml)
    (suite,) = root
    found = {case.attrib["name"]: case for case in suite}
    assert len(found) == len(suite)
    held = {tag: len(suite.findall(f"testcase/{tag}")) for tag in ("failure", "skipped", "error")}
    counts = {"tests": len(suite), "failures": held["failure"], "errors": held["error"]}
    for element, told in ((root, counts), (suite, {**counts, "skipped": held["skipped"]})):
        attributes = dict(element.attrib)
        assert attributes.pop("name") == "kafkascope check"
        assert float(attributes.pop("time")) == 0
        assert {name: int(value) for name, value in attributes.items()} == told
    assert all(set(case.attrib) == {"classname", "name", "time"} for case in suite)
    assert {name for each in suite.iter("failure") for name in each.attrib} <= {"message", "type"}
    return found


def test_junit_has_a_case_for_each_cause_and_each_silent_rule() -> None:
    found = cases(
        junit(judged([CAUSE, MILD], (), "warning"), [*RULE_NAMES[:3], SILENT], times(), "x.pcap")
    )
    assert list(found) == ["unknown-topic topic=t", "no-api-versions client=c", SILENT]
    failure = found["unknown-topic topic=t"].find("failure")
    assert (failure.attrib["message"], failure.attrib["type"]) == ("it broke", "error")
    lines = (failure.text or "").splitlines()
    assert lines[0] == "error: it broke"
    assert "    fix: Fix it." in lines
    assert "warning: it was slow" in lines
    assert lines[-1] == "    because: it broke"
    assert [each.tag for each in found["no-api-versions client=c"]] == ["system-out"]
    assert list(found[SILENT]) == []


def test_junit_counts_the_consequences_that_it_leaves_out() -> None:
    many = tuple(
        finding(f"it was slow {n}", "warning", f"slow-answers topic={n}", "slow-answers")
        for n in range(MAX_CONSEQUENCES + 3)
    )
    (case,) = cases(
        junit(judged([Cause(finding(), many)], (), "error"), (), times(), "x.pcap")
    ).values()
    assert (case[0].text or "").endswith("\n3 more consequences")


def test_junit_has_a_case_for_each_of_several_causes_with_one_key() -> None:
    found = cases(
        junit(judged([CAUSE, Cause(finding("again"))], (), "error"), (), times(), "x.pcap")
    )
    assert list(found) == ["unknown-topic topic=t", "unknown-topic topic=t (2)"]


def test_junit_fails_a_mild_cause_for_a_consequence() -> None:
    cause = Cause(MILD.finding, CAUSE.consequences)
    for known in ((), {MILD.finding.key}):
        (case,) = cases(junit(judged([cause], known, "warning"), (), times(), "x.pcap")).values()
        assert [(each.tag, each.attrib["type"]) for each in case] == [("failure", "warning")]
        assert case[0].attrib["message"] == "it was slow"


def test_junit_skips_what_is_known() -> None:
    found = judged([CAUSE], {"unknown-topic topic=t", "slow-answers topic=t"}, "warning")
    (one,) = cases(junit(found, (), times(), "x.pcap")).values()
    assert [each.tag for each in one] == ["skipped"]
    assert one[0].attrib["message"] == "known: it broke"


def strict(required: str = "", /, **properties: Any) -> dict[str, Any]:
    """An object with these properties and no others."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | {"required": required.split()}


def array(items: dict[str, Any], **more: bool) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


WORDS = {"type": "string"}
COUNT = {"type": "integer", "minimum": 1}
TEXT = strict("text", text=WORDS | {"minLength": 1})
LEVEL = {"enum": ["none", "note", "warning", "error"]}
RULE = strict(
    "id",
    id=WORDS,
    helpUri=WORDS,
    defaultConfiguration=strict(level=LEVEL),
    **dict.fromkeys(("shortDescription", "fullDescription", "help"), TEXT),
)
DRIVER = strict(
    "name", name=WORDS, version=WORDS, informationUri=WORDS, rules=array(RULE, uniqueItems=True)
)
PLACE = strict(
    "artifactLocation region",
    artifactLocation=strict("uri", uri=WORDS),
    region=strict("startLine", startLine=COUNT),
)
RESULT = strict(
    "message locations",
    ruleId=WORDS,
    ruleIndex=COUNT | {"minimum": 0},
    kind={"enum": ["fail", "informational"]},
    level=LEVEL,
    message=TEXT,
    baselineState={"enum": ["new", "unchanged"]},
    occurrenceCount=COUNT,
    partialFingerprints={"type": "object", "additionalProperties": WORDS},
    properties={"type": "object"},
    locations=array(strict("physicalLocation", physicalLocation=PLACE)),
)
RUN = strict(
    "tool results",
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    tool=strict("driver", driver=DRIVER),
    results=array(RESULT),
)
LOG = strict(
    "version runs $schema", **{"$schema": WORDS}, version={"const": "2.1.0"}, runs=array(RUN)
)
"""What we use of the schema of SARIF 2.1.0 (OASIS, errata 01), as it stands there; the log was
held against the whole of it as well."""


def results(
    causes: list[Cause], known: set[str] | None = None, inputs: tuple[str, ...] = ("a.pcap",)
) -> list[dict[str, Any]]:
    log = sarif(judged(causes, known or (), "warning"), RULE_NAMES, inputs, known is not None)
    Draft202012Validator(LOG).validate(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == RULE_NAMES
    found: list[dict[str, Any]] = run["results"]
    assert all(rules[each["ruleIndex"]]["id"] == each["ruleId"] for each in found)
    return found


def test_sarif_has_a_result_for_each_cause() -> None:
    mild = Cause(finding("odd", "note", name="no-api-versions"), CAUSE.consequences)
    found = results([CAUSE, mild, MILD, CHAT])
    assert [(each["level"], each["kind"]) for each in found] == [
        ("error", "fail"),
        ("warning", "fail"),
        ("note", "fail"),
        ("none", "informational"),
    ]
    assert found[0]["message"]["text"] == f"it broke. Therefore: {CAUSE.therefore()}. Fix it."
    assert found[2]["message"]["text"] == "by the way. Fix it."
    assert found[0]["properties"]["key"] == "unknown-topic topic=t"
    assert found[0]["properties"]["consequences"] == ["slow-answers topic=t"]
    assert "consequences" not in found[2]["properties"]
    assert "baselineState" not in found[0]


def test_sarif_fingerprints_are_those_of_the_keys() -> None:
    one, other, again = results([CAUSE, MILD, Cause(finding("broken 3 times"))])
    assert one["partialFingerprints"] == again["partialFingerprints"]
    assert one["partialFingerprints"] != other["partialFingerprints"]
    # Of the form that GitHub's own have.
    assert re.fullmatch(r"[0-9a-f]{16}:1", one["partialFingerprints"]["primaryLocationLineHash"])


def test_sarif_tells_what_is_known() -> None:
    found = results([CAUSE, MILD], {MILD.finding.key, CAUSE.finding.key})
    assert [each["baselineState"] for each in found] == ["new", "unchanged"]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b/c:d.pcap", "a%20b/c%3Ad.pcap"),
        ("/tmp/é.pcap", "file:///tmp/%C3%A9.pcap"),
        ("\udcff.pcap", "%FF.pcap"),
        ("-", "-"),
        ("100%.pcap", "100%25.pcap"),
    ],
)
def test_sarif_names_the_captures(path: str, uri: str) -> None:
    (place,) = results([MILD], None, (path,))[0]["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == uri
    assert not urlparse(uri).netloc


def test_workflow_commands_are_one_for_each_cause() -> None:
    mild = Cause(finding("odd", "note"), CAUSE.consequences)
    lines = list(commands([CAUSE, mild, MILD, CHAT], times(), "x.pcap"))
    assert [line.split(" ")[0] for line in lines] == ["::error", "::warning", "::notice"]
    head, _, message = lines[0].removeprefix("::").partition("::")
    assert head == "error title=kafkascope%3A unknown-topic"
    first, *others = message.split("%0A")
    assert first == "it broke"
    assert "    fix: Fix it." in others


COMMAND = re.compile(r"::(error|warning|notice) title=([^:,\r\n]*)::([^\r\n]*)")


def read_command(line: str) -> tuple[str, str, str]:
    """As the runner reads a line: https://github.com/actions/runner, ActionCommand.cs."""
    match = COMMAND.fullmatch(line)
    kind, title, message = match.groups()
    for code, sign in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        title = title.replace(code, sign)
        if sign not in ":,":
            message = message.replace(code, sign)
    return kind, title, message


@given(TEXTS, TEXTS)
def test_texts_from_traffic_stay_texts(text: str, key: str) -> None:
    hostile = finding(text or "x", key=f"unknown-topic client={key}")
    causes = [Cause(hostile, (finding(text or "x", "note", key, "slow-answers"),))]

    (line,) = commands(causes, times(), "x.pcap")
    kind, title, message = read_command(line)
    assert (kind, title) == ("error", "kafkascope: unknown-topic")
    assert message.split("\n")[0].isprintable()
    assert all(each.startswith("    ") for each in message.split("\n")[1:])

    for known in ((), (hostile.key,)):
        found = judged(causes, known, "note")
        root = ElementTree.fromstring(junit(found, [SILENT], times(), "x.pcap").encode())
        tags = {each.tag for each in root.iter()}
        assert tags <= {"testsuites", "testsuite", "testcase", "failure", "skipped"}
        assert len(root[0]) == 2

    log = sarif(judged(causes, (), NEVER), RULE_NAMES, ["a.pcap"], False)
    Draft202012Validator(LOG).validate(log)
    assert dumps(log)
    said = log["runs"][0]["results"][0]["message"]["text"]
    assert said.isprintable()
    # Placeholders and links have lost their meaning: signs are doubled or behind a backslash.
    assert "{" not in said.replace("{{", "").replace("}}", "")
    assert re.search(r"(?<!\\)(?:\\\\)*[\[\]]", said) is None


def test_escapes_of_workflow_commands() -> None:
    cause = Cause(finding("100% of a,b: c"))
    (line,) = commands([cause], times(), "x.pcap")
    assert "::100%25 of a,b: c%0A" in line
    assert read_command(line)[2].startswith("100% of a,b: c\n")


@pytest.mark.parametrize(
    ("fail_on", "fails"),
    [
        ("error", ["it broke"]),
        ("warning", ["it broke", "it was slow"]),
        ("note", ["it broke", "it was slow", "by the way"]),
        (NEVER, []),
    ],
)
def test_what_fails(fail_on: str, fails: list[str]) -> None:
    found = judged([CAUSE, MILD], (), fail_on)
    assert [each.text for checked in found for each in checked.failing] == fails


def test_what_is_known_does_not_fail() -> None:
    one, other = judged([CAUSE, MILD], {"slow-answers topic=t", MILD.finding.key}, "note")
    assert (one.known, one.failing) == (False, (CAUSE.finding,))
    assert (other.known, other.failing) == (True, ())


def test_a_cause_is_new_with_a_new_consequence() -> None:
    (one,) = judged([CAUSE], {CAUSE.finding.key}, "warning")
    assert (one.known, one.failing) == (False, CAUSE.consequences)
    (one,) = judged([CAUSE], {CAUSE.finding.key, CAUSE.consequences[0].key}, "warning")
    assert one.known


def test_the_rules_of_these_tests_are_there() -> None:
    assert set(RULE_NAMES) <= set(RULES)


# --- baselines ------------------------------------------------------------------------------------


def read(folder: Path, data: bytes) -> frozenset[str]:
    path = folder / "known.jsonl"
    path.write_bytes(data)
    return read_baseline(path)


@given(st.sets(st.text(st.characters(exclude_categories=["Cs"]))))
def test_what_is_written_is_read(keys: set[str]) -> None:
    lines = baseline_lines(keys)
    assert lines == baseline_lines(sorted(keys, reverse=True))
    assert [json.loads(line)["key"] for line in lines.splitlines()] == sorted(keys)


def test_a_file_is_read(tmp_path: Path) -> None:
    keys = {"unknown-topic topic=é\n\u202e", "lag group=g"}
    assert read(tmp_path, baseline_lines(keys)) == keys


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"", set()),
        (b"\n\n", set()),
        (b"[]", set()),
        (b'{"key": "a"}\r\n{"schema": "finding/1", "key": "b", "text": "t"}', {"a", "b"}),
        (b' [{"key": "a", "why": "ticket 7"},\n {"key": "a"}]', {"a"}),
    ],
)
def test_forms_of_a_baseline(tmp_path: Path, data: bytes, keys: set[str]) -> None:
    assert read(tmp_path, data) == keys


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "line 1 is no JSON"),
        (b'{"key": "a"}\nhello', "line 2 is no JSON"),
        (b"[1", "the array is no JSON"),
        (b"[1]", "element 1 has no key of a finding"),
        (b'{"key": 3}', "line 1 has no key of a finding"),
        (b'{"key": "a"}\n{"name": "lag"}', "line 2 has no key of a finding"),
        (b'{"schema": "record/1", "key": "a"}', "line 1 is no finding, but record/1"),
        (b"\xd4\xc3\xb2\xa1\x02\x00", "line 1 is no JSON"),
        (b"[" * 100_000, "the array is no JSON"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(WrongBaseline, match=said):
        read(tmp_path, data)


def test_huge_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "MOST_BYTES", 10)
    with pytest.raises(WrongBaseline, match="is larger than"):
        read(tmp_path, b'{"key": "a"}')


def test_what_no_longer_occurs() -> None:
    known = ["lag group=a", "lag group=b", "unknown-topic topic=t"]
    assert gone(known, ["lag group=a"], ["lag", "unknown-topic"]) == known[1:]
    # A rule that was not asked could not find anything.
    assert gone(known, ["lag group=a"], ["lag"]) == ["lag group=b"]
