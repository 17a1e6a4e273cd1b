"""Group members that own partitions and never fetch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.offers import offered
from kafkascope.analyzer.findings.view import View, about_group, duration, listed, once
from kafkascope.analyzer.identity import ClientKey, host_of
from kafkascope.analyzer.statistics.groups.model import Member, Story
from kafkascope.analyzer.text import plural, spelled

FETCH_OF_4: Final = 4
"""Kafka 4.0 removed Fetch v0 to v3 (KIP-896)."""
REACHED: Final = frozenset({"yes", "likely"})


class FetchlessMembers(Detector):
    """By group."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "fetches-nothing",
            "warning",
            "group member with partitions that sends no Fetch",
            "Upgrade the client library if its Fetch versions are no longer offered: some clients "
            "then send nothing, without an error. Otherwise check whether the application paused "
            "its partitions or never polls.",
            brief="{client} sent no Fetch",
            limits=("fetchless.time",),
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by member."""
        for story in view.stories():
            if story.type not in ("", "consumer"):
                continue  # members of Connect own connectors
            for member in story.members:
                if member.assigned and _is_fetchless(member, view):
                    yield self._finding(story, member, view)

    def _finding(self, story: Story, member: Member, view: View) -> Finding:
        client_id, host = member.client_id or "", member.host
        who, assigned = view.client(client_id, host), member.assigned or []
        parts = [f"{topic}-{number}" for topic, numbers in assigned for number in numbers]
        span = offered(view, client_id, host, "Fetch")
        offer = f"; the broker offers Fetch v{span.first} to v{span.last}" if span else ""
        lasted = (member.gone_ns or 0) - (member.first_ns or 0)
        return view.finding(
            self.rule("fetches-nothing"),
            f"{who} owned {plural(len(parts), 'partition')} of group {spelled(story.group)} for "
            f"{duration(lasted)} and sent no Fetch ({listed(parts)}){offer}",
            f"group == {quoted(story.group)}",
            count=len(parts),
            first_ns=member.first_ns,
            last_ns=member.gone_ns,
            about=[
                ("client", who),
                *about_group(story.group, (str(topic) for topic, _ in assigned)),
            ],
        )


def _is_fetchless(member: Member, view: View) -> bool:
    """Return whether a member sent no Fetch where the capture would show one: it saw the client
    start, and all brokers that the client knows."""
    who = member.client_id or "", member.host
    if not any(numbers for _, numbers in member.assigned or ()):
        return False
    if (member.gone_ns or 0) - (member.first_ns or 0) < limit("fetchless.time"):
        return False
    apis = _apis(view).get(who, set())
    if {"Fetch", "ShareFetch"} & apis or who in _midstream(view):
        return False
    span = offered(view, *who, "Fetch")
    gone = span is not None and span.first >= FETCH_OF_4
    if "Metadata" not in apis and not (gone and "FindCoordinator" in apis):
        return False  # it learned of the brokers elsewhere
    return who not in _with_unreached_nodes(view)


@once
def _apis(view: View) -> dict[ClientKey, set[str]]:
    """Map each client to the APIs that it used."""
    found: dict[ClientKey, set[str]] = {}
    for usage in view.base.clients.usages():
        who = usage.identity.client_id or "", usage.identity.host
        found.setdefault(who, set()).update(usage.versions)
    return found


@once
def _with_unreached_nodes(view: View) -> set[ClientKey]:
    """Return the clients that learned of a broker whose answers the capture may lack."""
    return {
        client
        for line in view.base.cluster.rows(view.names)
        if line["node"] is not None and line["contacted"] not in REACHED
        for client in line["told_to"]
    }


@once
def _midstream(view: View) -> set[ClientKey]:
    """Return the clients with connections from before the capture."""
    middle = view.base.connections.midstream()
    return {
        (line["client_id"] or "", host_of(line["client_address"]))
        for line in view.lines()
        if line["connection"] in middle
    }
