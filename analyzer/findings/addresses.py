"""Advertised addresses that clients cannot reach (question 3); which node is at an address, and
which addresses are of brokers that their cluster gave up."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from itertools import chain
from typing import Final

from kafkascope.analyzer.findings.filters import ADDRESS_REQUESTS, all_of
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.view import DetectorInput, Finding
from kafkascope.analyzer.findings.words import listed, plural, spelled
from kafkascope.analyzer.identity import ClientKey
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.cluster.addresses import address_text, is_address, is_loopback
from kafkascope.analyzer.statistics.cluster.reach_judged import JudgedReach, NodeKey, StuckClient
from kafkascope.analyzer.statistics.connections import FAILED
from kafkascope.analyzer.statistics.errors import Count
from kafkascope.analyzer.statistics.model import Line

OF_FAILURE: Final = {
    "refused": ("address-unreachable", "refused"),
    "no answer to SYN": ("address-unanswered", "did not answer"),
}
"""Remark of an address -> rule, and what became of connects."""
REMARKS: Final = {
    "loopback, advertised to": (
        "address-loopback",
        "the loopback address {} to {} at {}, where it is the client's own machine",
    ),
    "private, advertised to": (
        "address-private",
        "the private address {} to {} at {}, and is not reachable from there",
    ),
    "registered as": ("address-differs", "{} to {}, but {registered} in ZooKeeper"),
    "unspecified address": ("address-unspecified", "the unspecified address {} to {}"),
}
"""Beginning of a remark -> rule, and what a broker advertises."""


# NOT_LEADER_OR_FOLLOWER, NOT_COORDINATOR.
ELSEWHERE: Final = frozenset({6, 16})


def findings(view: DetectorInput) -> Iterator[Finding]:
    """Yield one finding per address, and per client that got stuck."""
    gone = gone_addresses(view)
    for line in view.base.cluster.rows(view.names):
        for remark in line["remarks"] if line["node"] is not None else ():
            name, text = _of_remark(remark, line)
            # The address of a broker that its cluster counts as gone was right: see `outages`.
            down = remark in OF_FAILURE and any(_stands_for(each, line, view) for each in gone)
            if name and not down:
                yield _finding(name, text, line, view)
    yield from _shared(view)
    for stuck in judged_reach(view).stuck():
        # Findings about the address itself cover these.
        missed = [each for each in stuck.missed if not _is_wrong(each[2], stuck.client[1])]
        if missed:
            yield _stuck(stuck, missed, view)


def _of_remark(remark: str, line: Line) -> tuple[str, str]:
    address, clients = spelled(line["address"]), listed(line["clients"], 2)
    advertises = f"Broker {line['node']} advertises"
    if remark in OF_FAILURE:
        name, how = OF_FAILURE[remark]
        tried = plural(line["attempts"] or 1, "connection attempt")
        return name, f"{advertises} {address} to {clients}; {address} {how} {tried}"
    for begin, (name, text) in REMARKS.items():
        if remark.startswith(begin):
            place = remark.rpartition(" ")[2]
            text = text.format(address, clients, place, registered=spelled(remark))
            return name, f"{advertises} {text}"
    return "", ""


def _finding(name: str, text: str, line: Line, view: DetectorInput) -> Finding:
    clients = line["told_to"]
    if name == "address-loopback":
        clients = [each for each in clients if not is_loopback(each[1])]
    return view.finding(
        name,
        text,
        f"number == {line['number']}" if line["number"] else ADDRESS_REQUESTS,
        count=line["advertised"],
        span=(line["first"], line["last"]),
        number=line["number"],
        connects=_connects(line) if name in {rule for rule, _ in OF_FAILURE.values()} else "",
        about={
            "broker": spelled(line["address"]),
            "node": str(line["node"]),
            "client": view.clients(clients)[: LIMITS.entities],
        },
    )


def _shared(view: DetectorInput) -> Iterator[Finding]:
    """Yield addresses of several nodes: a load balancer before them picks any, and not the leader
    or coordinator that a request needs."""
    judged = judged_reach(view)
    nodes = by_key(((role, host, port), number) for role, number, host, port in judged.advertised)
    shared = {place: set(numbers) for place, numbers in nodes.items() if len(set(numbers)) > 1}
    if not shared:
        return
    misled = [
        (key["broker"], key["client_id"], key["host"], count)
        for key, count in view.base.errors.grouped(("code", "client_id", "host", "broker"))
        if key["code"] in ELSEWHERE
    ]
    for (role, host, port), numbers in sorted(shared.items()):
        keys = [(role, number, host, port) for number in sorted(numbers)]
        places = {address_text(*place) for key in keys for place in judged.places(key)}
        wrong = [each for broker, *each in misled if broker in places]
        if not wrong:
            continue
        address, errors = address_text(host, port), Count()
        named = listed([str(key[1]) for key in keys])
        for *_, each in wrong:
            errors.merge(each)
        clients = view.clients((id_ or "", place) for id_, place, _ in wrong)
        yield view.finding(
            "address-shared",
            f"Brokers {named} advertise the same address {spelled(address)}: "
            f"{plural(errors.count, 'request')} from {listed(clients, 2)} reached a broker that is "
            "not the leader or coordinator",
            f"error in {{{', '.join(map(str, sorted(ELSEWHERE)))}}}",
            count=errors.count,
            span=(errors.first_ns, errors.last_ns),
            about={"broker": spelled(address), "client": clients[: LIMITS.entities]},
        )


def _stuck(stuck: StuckClient, missed: list[NodeKey], view: DetectorInput) -> Finding:
    """Return the finding about a client that repeats its lookups, and never reaches the
    addresses."""
    client = view.client(*stuck.client)
    nodes = list(dict.fromkeys(str(number) for _, number, _, _ in missed))
    addresses = list(dict.fromkeys(address_text(*each[2:]) for each in missed))
    others = [address_text(*each) for each in stuck.asked]
    broker = "broker" if len(nodes) == 1 else "brokers"
    then = f" and looked up addresses {stuck.looks} times at {listed(others, 2)}"
    if stuck.works:
        then = (
            f", although {plural(stuck.looks, 'response')} named it as the one that it needs; it "
            f"is connected to {listed(others)}"
        )
    return view.finding(
        "address-unresolved",
        f"{client} never connected to {broker} {listed(nodes)} at {listed(addresses)}{then}",
        ADDRESS_REQUESTS,
        client=client,
        count=stuck.looks,
        span=(stuck.first_ns, stuck.last_ns),
        severity="warning" if stuck.works else None,
        about={"broker": map(spelled, addresses), "node": nodes},
    )


def _stands_for(address: str, line: Line, view: DetectorInput) -> bool:
    """Return whether a packet address is that of a node, which may be advertised by name."""
    port = line["address"].rpartition(":")[2]
    return address.endswith(f":{port}") and node_at(address, view) == line["node"]


def _connects(line: Line) -> str:
    """Return the filter of connections to an address, by port where its name is not resolved."""
    host, _, port = line["address"].rpartition(":")
    if is_address(host.strip("[]")):
        return f'broker == "{line["address"]}"'
    clients = sorted({host for _, host in line["told_to"]})
    found = " or ".join(f"client.ip == {each}" for each in clients[: LIMITS.listed] if each)
    return all_of(f"broker.port == {port}", f"({found})" if found else "")


def _is_wrong(host: str, client_host: str) -> bool:
    """Return whether an address leads only to the client itself."""
    if is_loopback(host):
        return not is_loopback(client_host)
    return is_address(host) and ip_address(host.partition("%")[0]).is_unspecified


@DetectorInput.once
def judged_reach(view: DetectorInput) -> JudgedReach:
    """Return which advertised addresses clients reached."""
    return view.base.cluster.judged(view.names)


def node_at(broker: str, view: DetectorInput) -> int | None:
    """Return the node advertised with this address."""
    return _nodes(view).get(broker)


@DetectorInput.once
def _nodes(view: DetectorInput) -> dict[str, int]:
    """Map each address to its node; also those that names of nodes resolve to."""
    judged = judged_reach(view)
    return {
        address_text(host, key[3]): key[1]
        for key in judged.advertised
        for host in judged.hosts_of(key) or ()
    }


def advertised_to(broker: str, view: DetectorInput) -> set[ClientKey]:
    """Return the clients (id, host) that got the address of the node at one."""
    return _clients_of_nodes(view).get((node_at(broker, view), broker.rpartition(":")[2]), set())


@DetectorInput.once
def _clients_of_nodes(view: DetectorInput) -> dict[tuple[int | None, str], set[ClientKey]]:
    advertised = judged_reach(view).advertised.items()
    by_place = by_key(((key[1], str(key[3])), clients) for key, clients in advertised)
    return {place: set(chain.from_iterable(clients)) for place, clients in by_place.items()}


@DetectorInput.once
def advertised_places(view: DetectorInput) -> set[str]:
    """Return the addresses of advertised nodes, certain or possible: failures there are findings
    about the node."""
    judged = judged_reach(view)
    return {
        address_text(host, port) for node in judged.advertised for host, port in judged.places(node)
    }


@DetectorInput.once
def gone_addresses(view: DetectorInput) -> set[str]:
    """Return addresses that accepted no connection, of brokers that their cluster counts as gone
    and that no client reached at another address since."""
    gone = view.base.cluster.gone()
    if not gone:
        return set()
    failed: dict[str, int] = {}
    answered: dict[int, int] = {}
    for line in view.lines:
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
