"""Findings as JUnit XML: what Jenkins, GitLab, Azure and others show as tests.

A test case is a cause, named by its key, so that it has the same name in the next run; a rule that
found nothing is a test that passed. A cause fails if it or a consequence does; known ones are
skipped. Tests and failures are thus the numbers of the summary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.checks.blocks import UNBROKEN, block
from kafkascope.analyzer.checks.judging import Checked
from kafkascope.analyzer.findings.causes import Cause, unfolded
from kafkascope.analyzer.findings.model import RANK
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.text import safe

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

NAME: Final = "kafkascope check"
CLASS: Final = "kafkascope.check"
# Consequences in the text of one test; the others are counted.
MAX_CONSEQUENCES: Final = 20


def junit(found: Sequence[Checked], rules: Iterable[str], times: Times, source: str) -> str:
    """Return the document. `rules`: those that ran; `source`: inputs as words of a shell."""
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    reported = {each.name for each in unfolded(one.cause for one in found)}
    silent = [rule for rule in rules if rule not in reported]
    failures = sum(bool(each.failing) for each in found)
    skipped = sum(each.known for each in found)
    counts = {
        "name": NAME,
        "tests": str(len(found) + len(silent)),
        "failures": str(failures),
        "errors": "0",
        "time": "0",
    }
    # Jenkins holds the document against its schema, which knows no `skipped` here.
    root = Element("testsuites", counts)
    suite = SubElement(root, "testsuite", counts, skipped=str(skipped))
    names: Counter[str] = Counter()
    for each in found:
        key = each.cause.finding.key
        names[key] += 1
        again = f" ({names[key]})" if names[key] > 1 else ""
        _fill(_case(suite, key + again), each, times, source)
    for rule in silent:
        _case(suite, rule)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode")


def _case(suite: Element, name: str) -> Element:
    from xml.etree.ElementTree import SubElement

    # `safe` leaves none of the characters that XML 1.0 has no way to write.
    return SubElement(suite, "testcase", classname=CLASS, name=safe(name), time="0")


def _fill(case: Element, checked: Checked, times: Times, source: str) -> None:
    from xml.etree.ElementTree import SubElement

    finding = checked.cause.finding
    if checked.failing:
        worst = min(checked.failing, key=lambda each: RANK[each.severity])
        message = finding.text if finding in checked.failing else checked.failing[0].text
        element = SubElement(case, "failure", message=safe(message), type=worst.severity)
    elif checked.known:
        SubElement(case, "skipped", message=f"known: {safe(finding.text)}")
        return
    else:
        element = SubElement(case, "system-out")
    element.text = "\n".join(_lines(checked.cause, times, source))


def _lines(cause: Cause, times: Times, source: str) -> Iterator[str]:
    """Yield the cause and its consequences, as `check --all` prints them."""
    consequences = cause.consequences[:MAX_CONSEQUENCES]
    for each in (cause, *map(Cause, consequences)):
        if each is not cause:
            yield ""
        for line, _ in block(each, times, UNBROKEN, source):
            yield safe(line)
        if each is not cause:
            yield f"    because: {safe(cause.finding.text)}"
    if more := len(cause.consequences) - len(consequences):
        yield f"\n{more} more consequences"
