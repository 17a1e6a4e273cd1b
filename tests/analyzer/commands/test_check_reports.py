"""`kafkascope check` in CI: `--format junit`, `sarif` and `github`, and baselines, as users run
them."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kafkascope.analyzer.findings import RULES
from tests.kit.run import run
from tests.kit.samples import CAPTURES

SHOP = str(CAPTURES / "shop.pcap.zst")
LARGE = str(CAPTURES / "too-large.pcap")
HEALTHY = str(CAPTURES / "healthy.pcap")
LARGE_KEY = "message-too-large client=generous topic=small"


def found(path: str, *args: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in run("check", path, "--json", *args).stdout.splitlines()]


@pytest.fixture(scope="module")
def shop() -> list[dict[str, str]]:
    return found(SHOP)


def test_junit_has_the_numbers_of_the_summary() -> None:
    for fail_on in ("error", "warning", "never"):
        done = run("check", SHOP, "--format", "junit", "--fail-on", fail_on)
        numbers = {word: int(n) for n, word in re.findall(r"(\d+) (\w+?)s?\b", done.stderr)}
        suite = ElementTree.fromstring(done.stdout)[0]
        ranks = {"error": ("error",), "warning": ("error", "warning"), "never": ()}[fail_on]
        bad = sum(numbers.get(severity, 0) for severity in ranks)
        assert int(suite.attrib["failures"]) == bad
        assert done.exit_code == bool(bad)
        found = sum(numbers.get(severity, 0) for severity in ("error", "warning", "note", "chat"))
        passed = [case for case in suite if case.attrib["name"] in RULES and not len(case)]
        assert int(suite.attrib["tests"]) == found + len(passed)
        assert numbers["consequence"]


def test_junit_into_a_file(tmp_path: Path) -> None:
    out = tmp_path / "kafka.xml"
    done = run("check", LARGE, "--format", "junit", "--rule", "message-too-large", "-o", str(out))
    assert (done.exit_code, done.stdout) == (1, "")
    (case,) = ElementTree.parse(out).getroot()[0]
    assert case.attrib["name"] == LARGE_KEY


def test_sarif_has_all_findings(shop: list[dict[str, str]]) -> None:
    done = run("check", SHOP, "--format", "sarif", "--fail-on", "never")
    (scan,) = json.loads(done.stdout)["runs"]
    results = [each["properties"] for each in scan["results"]]
    keys = [key for each in results for key in (each["key"], *each.get("consequences", ()))]
    assert keys == [each["key"] for each in shop]
    assert len(results) < len(shop)
    assert [rule["id"] for rule in scan["tool"]["driver"]["rules"]] == list(RULES)


def test_github_has_a_command_for_each_cause() -> None:
    done = run("check", SHOP, "--format", "github", "-q")
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    causes = [block for block in run("check", SHOP, "-q").stdout.split("\n\n") if block]
    told = [block for block in causes if not block.startswith("chat: ")]
    assert len(lines) == len(told) > 1
    for line, block in zip(lines, told, strict=True):
        name = block.splitlines()[1].split(",")[0].strip()
        assert line.startswith(("::error ", "::warning ", "::notice "))
        assert f" title=kafkascope%3A {name}::" in line


@pytest.mark.parametrize("form", ["junit", "sarif", "github"])
def test_reports_of_nothing(form: str) -> None:
    done = run("check", HEALTHY, "--format", form)
    assert done.exit_code == 0
    assert "message-too-large" in done.stdout or form == "github"
    if form == "github":
        assert done.stdout == ""


@pytest.mark.parametrize("form", ["junit", "sarif", "github"])
@pytest.mark.parametrize("option", [("--columns", "name"), ("--sort", "severity")])
def test_reports_have_no_columns(form: str, option: tuple[str, str]) -> None:
    done = run("check", HEALTHY, "--format", form, *option)
    assert done.exit_code == 2
    assert f"--format {form} takes no --columns" in done.stderr


def test_other_commands_have_no_reports() -> None:
    assert run("ls", HEALTHY, "--format", "junit").exit_code == 2


def test_a_baseline_is_what_is_known(tmp_path: Path) -> None:
    known = tmp_path / "known.jsonl"
    written = run("check", LARGE, "--write-baseline", str(known))
    assert written.exit_code == 0
    assert written.stdout.startswith("error: 1 batch from generous")
    assert known.read_text() == f'{{"schema":"baseline/1","key":"{LARGE_KEY}"}}\n'
    again = run("check", LARGE, "--baseline", str(known))
    assert (again.exit_code, again.stdout) == (0, "")
    assert again.stderr == "kafkascope: nothing new, 1 known\n"


def test_only_what_is_new_fails_and_is_told(tmp_path: Path, shop: list[dict[str, str]]) -> None:
    known = tmp_path / "known.jsonl"
    gone = next(each["key"] for each in shop if each["severity"] == "error")
    lines = [json.dumps(each) for each in shop if each["key"] != gone]
    known.write_text("\n".join(lines))
    new = [each for each in shop if each["key"] == gone]
    args = (SHOP, "--baseline", str(known))
    assert found(*args) == new
    done = run("check", *args)
    assert done.exit_code == 1
    assert new[0]["text"] in " ".join(done.stdout.split())
    assert f", {len(shop) - len(new)} known\n" in done.stderr
    (failed,) = ElementTree.fromstring(run("check", *args, "--format", "junit").stdout).iter(
        "failure"
    )
    assert failed.attrib["message"] == new[0]["text"]
    states = [
        each["baselineState"]
        for each in json.loads(run("check", *args, "--format", "sarif").stdout)["runs"][0][
            "results"
        ]
    ]
    assert (states.count("new"), states.count("unchanged")) == (1, len(states) - 1)
    assert len(states) > 1
    (command,) = run("check", *args, "--format", "github").stdout.splitlines()
    assert command.startswith("::error ")


def test_what_json_printed_is_a_baseline(tmp_path: Path) -> None:
    for form in ("json", "jsonl"):
        known = tmp_path / "known.json"
        known.write_text(run("check", SHOP, "--format", form).stdout)
        assert run("check", SHOP, "--baseline", str(known)).exit_code == 0


def test_what_no_longer_occurs_is_told(tmp_path: Path) -> None:
    known = tmp_path / "known.jsonl"
    keys = [LARGE_KEY, "lag group=a", *(f"unknown-topic topic={n}" for n in range(6))]
    known.write_text("".join(json.dumps({"key": key}) + "\n" for key in keys))
    done = run("check", LARGE, "--baseline", str(known))
    assert done.stderr.splitlines()[0] == (
        "kafkascope: 7 known findings no longer occur: lag group=a; unknown-topic topic=0; "
        "unknown-topic topic=1; unknown-topic topic=2; unknown-topic topic=3 and 2 more"
    )
    done = run("check", LARGE, "--baseline", str(known), "--rule", "message-too-large,lag")
    assert "1 known finding no longer occurs: lag group=a\n" in done.stderr


def test_baselines_that_are_none(tmp_path: Path) -> None:
    missing = tmp_path / "none.jsonl"
    done = run("check", LARGE, "--baseline", str(missing))
    assert done.exit_code == 2
    assert "write it with --write-baseline" in " ".join(done.stderr.split())
    done = run("check", LARGE, "--baseline", LARGE)
    assert done.exit_code == 2
    assert "line 1 is no JSON" in " ".join(done.stderr.split())
    assert run("check", LARGE, "--baseline", str(tmp_path)).exit_code == 2


def test_a_baseline_overwrites_no_input(tmp_path: Path) -> None:
    copy = tmp_path / "a.pcap"
    copy.write_bytes(Path(LARGE).read_bytes())
    done = run("check", str(copy), "--write-baseline", str(copy))
    assert done.exit_code == 2
    assert copy.read_bytes() == Path(LARGE).read_bytes()


def test_a_baseline_is_replaced_by_what_is_there_now(tmp_path: Path) -> None:
    known = tmp_path / "known.jsonl"
    known.write_text('{"key": "lag group=gone"}\n')
    args = ("--baseline", str(known), "--write-baseline", str(known))
    done = run("check", LARGE, *args)
    assert done.exit_code == 0
    assert "1 known finding no longer occurs: lag group=gone" in done.stderr
    assert "lag" not in known.read_text()
    assert LARGE_KEY in known.read_text()
