"""Brokers that went away, connections that went dead, connections closed for being idle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafkascope.analyzer.conversation.detect import KAFKA_PORTS
from kafkascope.analyzer.findings.addresses import (
    advertised_places,
    advertised_to,
    gone_addresses,
    node_at,
)
from kafkascope.analyzer.findings.filters import (
    ADDRESS_REQUESTS,
    among,
    connections_in,
    with_requests,
)
from kafkascope.analyzer.findings.forgotten import DEFAULT_IDLE, device_near, forgotten, idle_advice
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.outage_times import (
    AnsweredHosts,
    AtBroker,
    Outage,
    by_broker,
    of_zookeeper,
    outages_of,
    works,
)
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import (
    DetectorInput,
    Finding,
    client_key,
    closed_at,
    ended_at,
    hosts_in,
)
from kafkascope.analyzer.findings.words import duration, listed, plural, spelled
from kafkascope.analyzer.identity import ClientKey
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.statistics.connections import FAILED
from kafkascope.analyzer.statistics.model import Line

# Requests of brokers to the active controller, and of controllers to each other (KIP-631, KIP-595).
HEARTBEATS: Final = frozenset({"BrokerHeartbeat", "BrokerRegistration", "Vote", "BeginQuorumEpoch"})


def findings(view: DetectorInput) -> Iterator[Finding]:
    """Yield findings by address of a broker."""
    gone = gone_addresses(view)
    for broker, lines in sorted(by_broker(view).items()):
        lines.sort(key=lambda line: (line["opened"], line["connection"]))
        dead = [line for line in lines if _is_dead(line)]
        if dead:
            yield _dropped(broker, dead, lines, view)
        absent = broker in gone or _is_absent(broker, lines, view)
        there = AtBroker(broker, lines)
        for outage in outages_of(lines, gone=absent):
            if not (dead and outage.silent):
                yield _down(there, outage, view)
        closed = [
            line
            for line in lines
            if line["end"] in ("broker fin", "broker rst")
            and line["idle"] is not None
            and line["idle"] >= limit("idle.rest")
        ]
        idle = _equally_idle(closed)
        if idle:
            yield _idle(broker, idle, view)
    yield from forgotten(view)


# --- broker-down


def _is_absent(broker: str, lines: list[Line], view: DetectorInput) -> bool:
    """Return whether clients call an address on a port of Kafka's that was not advertised, and that
    accepted no connection in the whole capture: one of bootstrap.servers."""
    port = int(broker.rpartition(":")[2])
    return (
        len(lines) >= limit("outage.unseen")
        and lines[-1]["opened"] - lines[0]["opened"] >= limit("outage.unseen-span")
        and all(line["phase"] in FAILED for line in lines)
        and (port in KAFKA_PORTS or port in _ports(view))
        and broker not in advertised_places(view)
    )


def _down(there: AtBroker, outage: Outage, view: DetectorInput) -> Finding:
    broker = there.address
    end = outage.end_ns if outage.end_ns is not None else view.last_ns or outage.begin_ns
    tried_ns = outage.failed[-1]["opened"]
    rest = end - tried_ns
    unknown = outage.seen and outage.end_ns is None and rest >= limit("outage.before")
    end = max(end, tried_ns)
    lasted = duration((tried_ns if unknown else end) - outage.begin_ns)
    hosts = hosts_in(outage.failed)
    # If no client reached it in the capture: clients to which it was advertised, and that tried.
    clients = {each for each in advertised_to(broker, view) if each[0] and each[1] in hosts}
    users = there.users(outage) or clients
    hit = view.clients(users)
    groups = {group for client in hit for group in _groups_of(view).get(client, ())}
    node = node_at(broker, view)
    controls = broker in _controllers(view)
    kind, case = ("Controller", "controller") if controls else ("Broker", "")
    if there.zookeeper:
        kind, case = "ZooKeeper", "zookeeper"
    name = f"{kind} {spelled(broker)}"
    name += f" (node {node})" if node is not None else ""
    absent = not outage.seen and broker not in gone_addresses(view)
    if absent:
        when = f"accepted no connection for {lasted}, the whole capture"
        severity: Severity = "note" if _served(outage, broker, view) else "warning"
    else:
        severity = _severity(outage, end - outage.begin_ns, users, broker, view)
        when = f"went down and was still down {lasted} later, at the end of the capture"
        if not outage.seen:
            when = f"was down for {lasted}, and out of its cluster"
        elif outage.end_ns is not None:
            when = f"was down for {lasted} and came back"
        elif unknown:
            # Clients that know another leader have no reason to come back. It may be down still.
            when = f"was down for {lasted} at least (no client tried again in {duration(rest)})"
    closed = f"closed {plural(len(outage.ended), 'connection')} and " if outage.ended else ""
    how = "did not answer" if outage.silent else "refused"
    tried = plural(len(outage.failed), "connection attempt")
    where = "protocol == zookeeper" if there.zookeeper else ADDRESS_REQUESTS
    connects = among("conn", [line["connection"] for line in (*outage.ended, *outage.failed)])
    return view.finding(
        "broker-down",
        f"{name} {when}: it {closed}{how} {tried} from {listed(hit or hosts)}",
        # Of connections that carried no more than a word there are no exchanges.
        connections_in(with_requests(outage.ended))
        or (f'broker == "{broker}"' if there.asked else where),
        count=len(outage.failed),
        span=(outage.begin_ns, end),
        severity=severity,
        case="absent" if absent and not there.zookeeper else case,
        connects=connects if len(connects) <= LIMITS.copied_chars else f'broker == "{broker}"',
        about={
            "node": () if node is None else str(node),
            "broker": spelled(broker),
            **(view.ensemble_at(broker) if there.zookeeper else {}),
            "client": hit,
            "group": sorted(groups),
        },
    )


def _severity(
    outage: Outage, lasted: int, users: set[ClientKey], broker: str, view: DetectorInput
) -> Severity:
    """Return how severe an outage is. A restart that all clients survive is a note: it is over
    soon, or other brokers served, and no request was lost but long polls. So is one that only other
    brokers noticed, and one of a controller while there are others."""
    controls = broker in _controllers(view)
    if users and not controls and all(view.is_broker(*each) for each in users):
        return "note"
    # Brokers send again what they tell each other: no client waits for it.
    # franz-go and sarama find out that a connection is closed when they send something on it.
    lost = any(
        line["stranded"]
        and (line["waiting"] or 0) <= outage.begin_ns
        and not view.is_broker(*client_key(line))
        for line in outage.ended
    )
    soon = lasted <= limit("outage.short")
    over = controls or outage.end_ns is not None
    survived = soon or (over and _served(outage, broker, view))
    return "note" if survived and not lost else "warning"


def _served(outage: Outage, broker: str, view: DetectorInput) -> bool:
    """Return whether other brokers, or other controllers, answered the same hosts meanwhile."""
    served, end = _answers(view), outage.end_ns or outage.begin_ns
    if broker in _controllers(view):
        served, end = _controllers_answers(view), outage.end_ns or view.last_ns or 0
    hosts = hosts_in(outage.failed)
    return all(served.meanwhile(host, broker, outage.begin_ns, end) for host in hosts)


@DetectorInput.once
def _controllers(view: DetectorInput) -> set[str]:
    """Return the addresses that served brokers as the listeners of KRaft controllers do."""
    served = by_key(
        (str(key["broker"]), str(key["api"]))
        for key, traffic in view.base.apis.grouped(("broker", "api"))
        if traffic.answered
    )
    return {broker for broker, apis in served.items() if HEARTBEATS & set(apis)}


@DetectorInput.once
def _answers(view: DetectorInput) -> AnsweredHosts:
    return AnsweredHosts(view.lines)


@DetectorInput.once
def _controllers_answers(view: DetectorInput) -> AnsweredHosts:
    controllers = _controllers(view)
    return AnsweredHosts(line for line in view.lines if line["broker_address"] in controllers)


@DetectorInput.once
def _ports(view: DetectorInput) -> set[int]:
    served = (line for line in view.lines if works(line) and not of_zookeeper(line))
    return {int(line["broker_address"].rpartition(":")[2]) for line in served}


@DetectorInput.once
def _groups_of(view: DetectorInput) -> dict[str, list[str]]:
    return by_key(
        (view.client(*who), spelled(story.group))
        for story in view.stories
        for who in {(member.client_id, member.host) for member in story.members}
    )


# --- silent-drop


def _is_dead(line: Line) -> bool:
    """Return whether it worked, rested, and then only sent segments again."""
    answered, waiting = line["answered"], line["waiting"]
    if answered is None or waiting is None or line["end"].startswith("broker"):
        return False
    return bool(
        (line["retransmissions"] or 0) >= limit("drop.retransmissions")
        and waiting - answered >= limit("drop.rest")
        and ended_at(line) - waiting >= limit("drop.span")
    )


def _dropped(broker: str, dead: list[Line], lines: list[Line], view: DetectorInput) -> Finding:
    first = min(dead, key=lambda line: line["waiting"])
    who = view.clients_at(dead)
    later = [
        line
        for line in lines
        if line["phase"] == "no answer" and line["opened"] >= first["waiting"]
    ]
    again = sum(line["retransmissions"] or 0 for line in dead)
    more = f"; {plural(len(later), 'new connection')} got no answer either" if later else ""
    return view.finding(
        "silent-drop",
        f"{plural(len(dead), 'connection')} from {listed(who)} to {spelled(broker)} went dead "
        f"after {duration(first['waiting'] - first['answered'])} of inactivity: "
        f"{plural(again, 'retransmission')} without an acknowledgement{more}",
        f"{connections_in(dead)} and not answered",
        count=len(dead),
        span=(first["waiting"], max(map(ended_at, dead))),
        connects=connections_in((*dead, *later)),
        about={"client": who, "broker": spelled(broker)},
    )


# --- idle-close


def _idle(broker: str, closed: list[Line], view: DetectorInput) -> Finding:
    rest = min(line["idle"] for line in closed)
    times = [closed_at(line) for line in closed]
    lost = sum(line["unanswered"] for line in closed)
    who, many = view.clients_at(closed), plural(len(closed), "connection")
    text = f"Broker {spelled(broker)} closed {many} from {listed(who)} after {duration(rest)} "
    text += "without traffic"
    # Brokers close idle connections with a FIN: a reset is of a device in between.
    reset = all(line["end"] == "broker rst" for line in closed)
    if reset:
        text = (
            f"{many} from {listed(who)} to {spelled(broker)} "
            f"{'was' if len(closed) == 1 else 'were'} reset after {duration(rest)} without "
            f"traffic, from the broker's side{device_near(rest)}"
        )
    if lost:
        text += f"; {plural(lost, 'request')} {'was' if lost == 1 else 'were'} lost"
    return view.finding(
        "idle-close",
        text,
        connections_in(closed),
        count=len(closed),
        span=(min(times), max(times)),
        severity="warning" if lost else None,
        advice=idle_advice(rest) if reset else "",
        about={"client": who, "broker": spelled(broker)},
    )


def _equally_idle(closed: list[Line]) -> list[Line]:
    """Return the most connections that rested equally long before they were closed, at several
    times."""
    best: list[Line] = []
    ordered = sorted(closed, key=lambda line: line["idle"])
    begin = 0
    for end, line in enumerate(ordered):
        while line["idle"] - ordered[begin]["idle"] > max(
            limit("idle.same"), ordered[begin]["idle"] * limit("idle.same-share") // 100
        ):
            begin += 1
        if end - begin + 1 > len(best):
            best = ordered[begin : end + 1]
    if len(best) == 1 and abs(best[0]["idle"] - DEFAULT_IDLE) <= limit("idle.default"):
        return best
    times = [closed_at(line) for line in best]
    return best if times and max(times) - min(times) >= limit("idle.apart") else []
