"""Collects the contents of a report in one pass over a capture, with the commands' accumulators."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.findings import Findings
from kafkascope.analyzer.findings.causes import Cause, apart, counted, unfolded
from kafkascope.analyzer.findings.evidence import errors_in_words, settled
from kafkascope.analyzer.findings.findings import Span
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.remarks import nothing_found, remarks
from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.report.limits import LIMITS
from kafkascope.analyzer.statistics.errors import Errors
from kafkascope.analyzer.statistics.journeys.model import By
from kafkascope.analyzer.statistics.rates import Rates
from kafkascope.analyzer.text import plural
from kafkascope.times import SECOND

if TYPE_CHECKING:
    from kafkascope.analyzer.reading.reading import Reading
    from kafkascope.analyzer.report.disguise import Disguise
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.captures.model import Resolved

# Of the chart over time, at most.
SLICES: Final = 120


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """Counted facts."""

    inputs: tuple[str, ...]
    """Names of files without folders: a report travels."""
    words: str
    """Inputs, and the zone of their times, as words of a shell."""
    of_logs: bool
    """Whether there are request logs and no packets."""
    filter_text: str
    findings: Findings
    errors: Errors
    rates: Rates
    names: TopicNames
    causes: list[Cause]
    """Findings, the worst first, each with its consequences."""
    packets: int
    connections: int
    captured_bytes: int
    remarks: list[str]
    """Sentences on what is missing or odd about the capture."""
    gaps: list[str]
    """Remarks among these about what makes results incomplete."""
    by: By = "application"
    """What a node of the map stands for. Pseudonyms differ by a number and are no application:
    there it is a client id."""

    @property
    def span(self) -> Span:
        """How many exchanges were counted, and when they were."""
        return self.findings.span

    @property
    def lasted(self) -> str:
        """How long the exchanges took in all; empty without any."""
        first, last = self.span.first_ns, self.span.last_ns
        return "" if first is None else duration((last or first) - first)


HIDDEN: Final = "..."
"""In place of a filter, which is made of names."""


_DAMAGE: Final = re.compile(r".*\b(is (?:damaged|cut short)\b.*)", re.DOTALL)
"""Remark on a file, after its name."""


def _nameless(text: str) -> str:
    """A sentence about a damaged file without the file's name."""
    found = _DAMAGE.fullmatch(text)
    return "a file " + (found[1] if found is not None else "is damaged")


def collect(
    reading: Reading, disguise: Disguise | None = None, hosts: Iterable[Resolved] = ()
) -> ReportFacts:
    """Read all exchanges and count; a disguise replaces names throughout. `hosts`: resolved names
    of brokers."""
    # Reasons why a value does not fit its schema may quote it.
    tables, hidden = reading.stored is not None, disguise is not None
    payloads = None if tables or hidden else reading.payloads
    findings, rates = Findings(payloads=payloads), Rates(SECOND, SLICES)
    options = reading.options
    watch = not options.filter_text
    whole = Findings(payloads=payloads) if reading.is_piece else None
    count(reading, findings, rates, watch=watch, through=disguise, hosts=hosts, whole=whole)
    source = reading.capture.source.statistics
    names = reading.capture.context.names
    inputs = tuple(
        "stdin" if name == "-" else PurePath(name).name or name for name in options.inputs
    )
    zone = ("--time-zone", options.zone) if options.zone and disguise is None else ()
    logs = reading.capture.logs
    of_logs = findings.of_logs or (logs is not None and not source.packets)
    said = list(remarks(reading.capture, verbose=True))
    if logs is not None and of_logs:
        said.append(logs.left_out())
    gaps = list(remarks(reading.capture, verbose=False))
    if not reading.exchanges_read:
        said.insert(0, nothing_found(reading.capture))
    damage = [str(each) for each in source.damage]
    filter_text = options.filter_text
    if disguise is not None:
        disguise.learn()
        names = disguise.names
        inputs = tuple(f"capture-{number}" for number, _ in enumerate(inputs, 1))
        damage = [_nameless(text) for text in damage]
        filter_text = HIDDEN if filter_text else ""
    said += damage
    causes = findings.causes(names, whole, reading.span())
    found = unfolded(causes) if whole is None else whole.reported(names)
    connections = source.connections
    if of_logs:
        connections = len(findings.base.connections.rows())
    return ReportFacts(
        inputs,
        shlex.join((*inputs, *zone)),
        of_logs,
        filter_text,
        findings,
        settled(findings.base.errors, found),
        rates,
        names,
        causes,
        source.packets,
        connections,
        source.captured_bytes,
        said,
        gaps + damage,
        "application" if disguise is None else "client_id",
    )


COMPLETE: Final = "All packets are complete, and all Kafka traffic was decoded."


def summary(facts: ReportFacts, causes: int = LIMITS.summary_causes) -> list[str]:
    """Return three to six sentences, with commands between backticks. `causes`: how many of them
    have a sentence."""
    return [*_seen(facts), *_found(facts.causes, causes)]


def _seen(facts: ReportFacts) -> Iterator[str]:
    """When, how much, between how many, and how it went."""
    packets = plural(facts.packets, "packet")
    only = " matching the filter" if facts.filter_text else ""
    if facts.span.first_ns is None:
        yield f"The capture has {packets} and no exchanges{only}."
        yield from (_sentence(each) for each in facts.remarks[:1])
        return
    base = facts.findings.base
    clients = plural(len({line["client_id"] for line in base.clients.rows()}), "client")
    exchanges = plural(facts.span.exchanges, "exchange")
    yield (
        f"Within {facts.lasted}: {exchanges}{only}, between {clients} and"
        f" {plural(_brokers(facts), 'broker')}, on {plural(facts.connections, 'connection')}."
    )
    errors = errors_in_words(facts.errors).capitalize()
    if facts.of_logs:  # lines are of requests that were answered
        yield f"{errors}."
        return
    lines = facts.rates.rows()
    unanswered = sum(line["unanswered"] or 0 for line in lines)
    lost = (
        f"{plural(unanswered, 'request')} received no response"
        if unanswered
        else "every request that expects a response received one"
    )
    yield f"{errors}, and {lost}."


def _brokers(facts: ReportFacts) -> int:
    """Count the brokers with requests. A node has an address for each listener; without node ids,
    or with two clusters, count addresses."""
    cluster = facts.findings.base.cluster
    lines = [line for line in cluster.rows(facts.names) if line["requests"]]
    nodes = {line["node"] for line in lines if line["node"] is not None}
    several = len(cluster.facts.ids) > 1
    return len({line["address"] for line in lines} if several or not nodes else nodes)


def _found(causes: Iterable[Cause], most: int) -> Iterator[str]:
    """How many causes there are, and the most severe ones."""
    trouble, _ = apart(causes)
    if not trouble:
        yield "No findings need attention."
        return
    *words, last = [plural(count, word) for word, count in counted(trouble).items() if count]
    yield f"Findings: {' and '.join(filter(None, [', '.join(words), last]))}."
    for number, cause in enumerate(trouble[:most]):
        if number and cause.severity == "note":
            return
        therefore = f"; consequences: {cause.therefore()}" if cause.consequences else ""
        yield _sentence(f"{cause.finding.severity.capitalize()}: {cause.finding.text}{therefore}")


def _sentence(text: str) -> str:
    """Make a sentence of bounded length, with its end."""
    if len(text) > LIMITS.sentence_chars:
        text = text[: LIMITS.sentence_chars].rpartition(" ")[0] + " ..."
    return text if text.endswith((".", "!", "?")) else f"{text}."
