"""Findings as JUnit XML: what Jenkins, GitLab, Azure and others show as tests.

A test case is what one key names, so that it has the same name in the next run; a rule that found
nothing is a test that passed. Findings that fail the check are failures, known ones are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.checks.blocks import UNBROKEN, block
from kafkascope.analyzer.checks.judging import Checked
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.text import safe

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

NAME: Final = "kafkascope check"
CLASS: Final = "kafkascope.check"


def junit(found: Sequence[Checked], rules: Iterable[str], times: Times, source: str) -> str:
    """Return the document. `rules`: those that ran; `source`: inputs as words of a shell."""
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    cases: dict[str, list[Checked]] = {}
    for each in found:
        cases.setdefault(each.finding.key, []).append(each)
    told = {each.finding.name for each in found}
    silent = [rule for rule in rules if rule not in told]
    failures = sum(any(each.fails for each in group) for group in cases.values())
    skipped = sum(all(each.known for each in group) for group in cases.values())
    counts = {
        "name": NAME,
        "tests": str(len(cases) + len(silent)),
        "failures": str(failures),
        "errors": "0",
        "time": "0",
    }
    # Jenkins holds the document against its schema, which knows no `skipped` here.
    root = Element("testsuites", counts)
    suite = SubElement(root, "testsuite", counts, skipped=str(skipped))
    for key, group in cases.items():
        _fill(_case(suite, key), group, times, source)
    for rule in silent:
        _case(suite, rule)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode")


def _case(suite: Element, name: str) -> Element:
    from xml.etree.ElementTree import SubElement

    # `safe` leaves none of the characters that XML 1.0 has no way to write.
    return SubElement(suite, "testcase", classname=CLASS, name=safe(name), time="0")


def _fill(case: Element, group: Sequence[Checked], times: Times, source: str) -> None:
    """Write what was found into its test case."""
    from xml.etree.ElementTree import SubElement

    first = next((each for each in group if each.fails), group[0])
    finding = first.finding
    text = "\n\n".join("\n".join(_lines(each, times, source)) for each in group)
    if first.fails:
        element = SubElement(case, "failure", message=safe(finding.text), type=finding.severity)
    elif first.known:
        SubElement(case, "skipped", message=f"known: {safe(finding.text)}")
        return
    else:
        element = SubElement(case, "system-out")
    element.text = text


def _lines(each: Checked, times: Times, source: str) -> Iterable[str]:
    for line, _ in block(each.cause, times, UNBROKEN, source):
        yield safe(line)
    if each.because:
        yield f"    because: {safe(each.because)}"
