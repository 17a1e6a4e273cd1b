"""What a capture is, in a few sentences: what was seen, how it went, what is worst."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kafkascope.analyzer.findings.causes import Cause, apart, counted
from kafkascope.analyzer.findings.expected import errors_in_words
from kafkascope.analyzer.findings.view import plural
from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.report.collect import ReportFacts

MOST_CAUSES: Final = 3
"""With a sentence each; all of them follow below the summary."""
LONGEST: Final = 240
"""Characters of a sentence about a cause, so that a summary stays one."""


def summary(facts: ReportFacts, causes: int = MOST_CAUSES) -> list[str]:
    """Return three to six sentences, with commands between backticks. `causes`: how many of them
    have a sentence."""
    return [*_seen(facts), *_found(facts.causes, causes)]


def _seen(facts: ReportFacts) -> Iterator[str]:
    """When, how much, between how many, and how it went."""
    packets = plural(facts.packets, "packet")
    if facts.span.first_ns is None:
        only = " matching the filter" if facts.filter_text else ""
        yield f"The capture has {packets} and no exchanges{only}."
        yield from (_sentence(each) for each in facts.remarks[:1])
        return
    span = duration((facts.span.last_ns or facts.span.first_ns) - facts.span.first_ns)
    base = facts.findings.base
    clients = plural(len({line["client_id"] for line in base.clients.rows()}), "client")
    exchanges = plural(facts.span.exchanges, "exchange")
    only = " matching the filter" if facts.filter_text else ""
    yield (
        f"Within {span}: {exchanges}{only}, between {clients} and"
        f" {plural(_brokers(facts), 'broker')}, on {plural(facts.connections, 'connection')}."
    )
    lines = facts.rates.rows()
    unanswered = sum(line["unanswered"] or 0 for line in lines)
    lost = (
        f"{plural(unanswered, 'request')} received no response"
        if unanswered
        else "every request that expects a response received one"
    )
    yield f"{errors_in_words(facts.errors).capitalize()}, and {lost}."


def _brokers(facts: ReportFacts) -> int:
    """How many brokers were talked to. A node has an address for each listener; where nobody was
    told who they are, or there are two clusters, addresses are all that is known."""
    cluster = facts.findings.base.cluster
    lines = [line for line in cluster.rows(facts.names) if line["requests"]]
    nodes = {line["node"] for line in lines if line["node"] is not None}
    several = len(cluster.whole.ids) > 1
    return len({line["address"] for line in lines} if several or not nodes else nodes)


def _found(causes: Iterable[Cause], most: int) -> Iterator[str]:
    """How many causes there are, and the most severe ones."""
    trouble, _ = apart(causes)
    if not trouble:
        yield "No findings need attention."
        return
    counts = counted(trouble)
    yield f"Findings: {_and([plural(count, word) for word, count in counts.items() if count])}."
    for number, cause in enumerate(trouble[:most]):
        if number and cause.severity == "note":
            return
        therefore = f"; consequences: {cause.therefore()}" if cause.consequences else ""
        yield _sentence(f"{cause.finding.severity.capitalize()}: {cause.finding.text}{therefore}")


def _and(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _sentence(text: str) -> str:
    """Of bounded length, with its end."""
    if len(text) > LONGEST:
        text = text[:LONGEST].rpartition(" ")[0] + " ..."
    return text if text.endswith((".", "!", "?")) else f"{text}."
