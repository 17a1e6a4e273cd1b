"""Which node is at an address, and which addresses are of brokers that their cluster gave up."""

from __future__ import annotations

from kafkascope.analyzer.findings.view import View, once
from kafkascope.analyzer.statistics.cluster.addresses import address_text
from kafkascope.analyzer.statistics.cluster.reach_judged import JudgedReach
from kafkascope.analyzer.statistics.connections import FAILED


@once
def _judged(view: View) -> JudgedReach:
    """Judge once, for all outages, who reached what they were told."""
    return view.base.cluster.judged(view.names)


def node_at(broker: str, view: View) -> int | None:
    """Return the node that was told with this address."""
    return _nodes(view).get(broker)


@once
def _nodes(view: View) -> dict[str, int]:
    """Map each address to its node; also those that names of nodes resolve to."""
    judged = _judged(view)
    return {
        address_text(host, key[3]): key[1]
        for key in judged.advertised
        for host in judged.hosts_of(key) or ()
    }


def advertised_to(broker: str, view: View) -> set[tuple[str, str]]:
    """Return the clients (id, host) that were told of the node at an address."""
    return _told(view).get((node_at(broker, view), broker.rpartition(":")[2]), set())


@once
def _told(view: View) -> dict[tuple[int | None, str], set[tuple[str, str]]]:
    """Map each node and port to the clients that were told of it."""
    found: dict[tuple[int | None, str], set[tuple[str, str]]] = {}
    for key, clients in _judged(view).advertised.items():
        found.setdefault((key[1], str(key[3])), set()).update(clients)
    return found


@once
def advertised_places(view: View) -> set[str]:
    """Return the addresses that those of nodes stand for, or may stand for: what failed there is
    told of the node."""
    judged = _judged(view)
    return {
        address_text(host, port) for node in judged.advertised for host, port in judged.places(node)
    }


@once
def gone_addresses(view: View) -> set[str]:
    """Return addresses that took no connection, of brokers that their cluster counts as gone and
    that nobody reached at another address since."""
    gone = view.base.cluster.gone()
    if not gone:
        return set()
    failed: dict[str, int] = {}
    answered: dict[int, int] = {}
    for line in view.lines():
        broker = line["broker_address"]
        number = node_at(broker, view)
        if number not in gone or line["opened"] is None:
            continue
        if line["phase"] in FAILED:
            failed[broker] = min(line["opened"], failed.get(broker, line["opened"]))
        answered[number] = max(line["answered"] or 0, answered.get(number, 0))
    return {
        broker
        for broker, time_ns in failed.items()
        if answered.get(node_at(broker, view) or 0, 0) <= time_ns
    }
