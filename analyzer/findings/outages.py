"""Brokers that went away, connections that went dead, connections closed for being idle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.conversation.detect import KAFKA_PORTS
from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.gone import (
    advertised_places,
    advertised_to,
    gone_addresses,
    node_at,
)
from kafkascope.analyzer.findings.idle_resets import (
    advice_text,
    device_text,
    idle_resets,
    rests_text,
)
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.outage_times import (
    AnsweredHosts,
    AtBroker,
    Outage,
    by_broker,
    of_zookeeper,
    outages_of,
    works,
)
from kafkascope.analyzer.findings.view import (
    View,
    among,
    closed_at,
    duration,
    ended_at,
    ensemble_at,
    listed,
    once,
    plural,
)
from kafkascope.analyzer.identity import ClientKey, host_of
from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.statistics.connections import FAILED
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import spelled

MOST_NAMED: Final = 100
"""Clients and groups that a finding names for those that it explains."""
MOST_WORDS: Final = 1_000
"""Characters of a filter that people copy."""
TELLING: Final = "api in {Metadata, DescribeCluster, FindCoordinator}"
"""Exchanges that tell addresses."""
ZOOKEEPER_DOWN: Final = (
    "Check the log of that ZooKeeper server at that time. Sessions continue at other servers of "
    "the ensemble. Without a majority, or with a single server, no controller is elected and no "
    "topic changes; sessions that expire lose their ephemeral nodes."
)
ABSENT: Final = (
    "Start the broker, correct host and port in bootstrap.servers, or open the firewall; test with "
    "nc -vz HOST PORT on the client's machine. Nothing listens at this address, or no "
    "packet reaches it."
)
DEFAULT_IDLE: Final = 600 * 1_000_000_000
"""connections.max.idle.ms of brokers."""


class Outages(Detector):
    """From the statistic of connections."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "broker-down",
            "warning",
            "broker that accepted no connections",
            "Check the broker's log at that time: a restart, a crash, a stopped machine. With "
            "replicas on other brokers and acks=all no records are lost; clients reconnect by "
            "themselves.",
            "BROKER_NOT_AVAILABLE",
            subject=("node", "broker"),
            limits=(
                "outage.before",
                "outage.short",
                "outage.unseen",
                "outage.unseen-span",
                "connects.answer",
            ),
        ),
        Rule(
            "silent-drop",
            "error",
            "idle connections that went dead, or were reset at their next request",
            "Set connections.max.idle.ms of the clients below the idle timeout of the firewall, "
            "NAT or load balancer in between, raise that timeout, or enable TCP keep-alive. Such "
            "a device drops idle connections without closing them.",
            "NETWORK_EXCEPTION",
            limits=(
                "drop.rest",
                "drop.retransmissions",
                "drop.span",
                "reset.rest",
                "reset.count",
                "reset.single",
                "lost.age",
            ),
        ),
        Rule(
            "idle-close",
            "note",
            "idle connections closed by the broker",
            "Set connections.max.idle.ms of the client below the broker's, so that the client "
            "closes first. A request sent at that moment is lost and must be sent again.",
            "NETWORK_EXCEPTION",
            limits=(
                "idle.rest",
                "idle.same",
                "idle.same-share",
                "idle.default",
                "idle.apart",
            ),
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by address of a broker."""
        gone = gone_addresses(view)
        for broker, lines in sorted(by_broker(view).items()):
            lines.sort(key=lambda line: (line["opened"], line["connection"]))
            dead = [line for line in lines if _is_dead(line)]
            if dead:
                yield self._dropped(broker, dead, lines, view)
            absent = broker in gone or self._is_absent(broker, lines, view)
            there = AtBroker(broker, lines)
            for outage in outages_of(lines, gone=absent):
                if not (dead and outage.silent):
                    yield self._down(there, outage, view)
            yield from self._idle(broker, lines, view)
        forgotten = idle_resets(view)
        if forgotten:
            yield self._forgotten(forgotten, view)

    # --- broker-down

    def _is_absent(self, broker: str, lines: list[Line], view: View) -> bool:
        """Return whether clients call an address on a port of Kafka's that nobody advertised, and
        that took no connection in the whole capture: one that they were started with."""
        port = int(broker.rpartition(":")[2])
        return (
            len(lines) >= limit("outage.unseen")
            and lines[-1]["opened"] - lines[0]["opened"] >= limit("outage.unseen-span")
            and all(line["phase"] in FAILED for line in lines)
            and (port in KAFKA_PORTS or port in _ports(view))
            and broker not in advertised_places(view)
        )

    def _down(self, there: AtBroker, outage: Outage, view: View) -> Finding:
        broker = there.address
        end = outage.end_ns if outage.end_ns is not None else view.last_ns or outage.begin_ns
        end = max(end, outage.failed[-1]["opened"])
        lasted = end - outage.begin_ns
        back = outage.end_ns is not None
        users = there.users(outage) or _told(broker, outage, view)
        hit = sorted({view.client(*each) for each in users})
        node = node_at(broker, view)
        kind = "ZooKeeper" if there.zookeeper else "Broker"
        name = f"{kind} {spelled(broker)}" + (f" (node {node})" if node is not None else "")
        how = "did not answer" if outage.silent else "refused"
        tried = plural(len(outage.failed), "connection attempt")
        closed = f"closed {plural(len(outage.ended), 'connection')} and " if outage.ended else ""
        hosts = sorted({host_of(line["client_address"]) for line in outage.failed})
        of = f" from {listed(hit or hosts)}"
        when = (
            f"was down for {duration(lasted)} and came back"
            if back
            else f"went down and was still down {duration(lasted)} later, at the end of the capture"
        )
        absent = not outage.seen and broker not in gone_addresses(view)
        if absent:
            when = f"accepted no connection for {duration(lasted)}, the whole capture"
        elif not outage.seen:
            when = f"was down for {duration(lasted)}, and out of its cluster"
        severity = _severity(outage, lasted, users, broker, view)
        if absent:
            severity = "note" if _served(outage, broker, view) else "warning"
        # Of connections that carried no more than a word there are no exchanges.
        numbers = [line["connection"] for line in outage.ended if line["requests"]][:MOST_NAMED]
        groups = [("group", each) for each in _groups(hit, view)]
        return view.finding(
            self.rule("broker-down"),
            f"{name} {when}: it {closed}{how} {tried}{of}",
            among("conn", numbers) or _where(there),
            count=len(outage.failed),
            first_ns=outage.begin_ns,
            last_ns=end,
            severity=severity,
            advice=ZOOKEEPER_DOWN if kind == "ZooKeeper" else ABSENT if absent else "",
            connects=_connects(broker, [*outage.ended, *outage.failed]),
            about=[
                *([] if node is None else [("node", str(node))]),
                ("broker", spelled(broker)),
                *(ensemble_at(broker, view) if kind == "ZooKeeper" else ()),
                *(("client", each) for each in hit[:MOST_NAMED]),
                *groups[:MOST_NAMED],
            ],
        )

    # --- silent-drop

    def _dropped(self, broker: str, dead: list[Line], lines: list[Line], view: View) -> Finding:
        first = min(dead, key=lambda line: line["waiting"])
        rest = first["waiting"] - first["answered"]
        who = sorted({_who(line, view) for line in dead})
        later = [
            line
            for line in lines
            if line["phase"] == "no answer" and line["opened"] >= first["waiting"]
        ]
        again = sum(line["retransmissions"] or 0 for line in dead)
        more = f"; {plural(len(later), 'new connection')} got no answer either" if later else ""
        return view.finding(
            self.rule("silent-drop"),
            f"{plural(len(dead), 'connection')} from {listed(who)} to {spelled(broker)} went dead "
            f"after {duration(rest)} of inactivity: {plural(again, 'retransmission')} without an "
            f"acknowledgement{more}",
            f"{among('conn', [line['connection'] for line in dead][:MOST_NAMED])} and not answered",
            count=len(dead),
            first_ns=first["waiting"],
            last_ns=max(line["opened"] + (line["life"] or 0) for line in dead),
            connects=among("conn", [line["connection"] for line in (*dead, *later)][:MOST_NAMED]),
            about=[*(("client", each) for each in who[:MOST_NAMED]), ("broker", spelled(broker))],
        )

    def _forgotten(self, forgotten: list[tuple[int, Line]], view: View) -> Finding:
        """Return the finding about connections that were reset at the first request after a rest:
        one, for the device is the same."""
        lines = [line for _, line in forgotten]
        rests = [rest for rest, _ in forgotten]
        who = sorted({_who(line, view) for line in lines})
        brokers = sorted({spelled(line["broker_address"]) for line in lines})
        lost = sum(line["unanswered"] for line in lines)
        were = "was" if len(lines) == 1 else "were"
        numbers = [line["connection"] for line in lines][:MOST_NAMED]
        return view.finding(
            self.rule("silent-drop"),
            f"{plural(len(lines), 'connection')} from {listed(who)} to {listed(brokers)} {were} "
            f"reset at the first request after {rests_text(rests)} of inactivity; "
            f"{plural(lost, 'request')} lost{device_text(rests[0])}",
            f"{among('conn', numbers)} and not answered",
            count=len(lines),
            first_ns=min(line["waiting"] for line in lines),
            last_ns=max(line["waiting"] for line in lines),
            advice=advice_text(rests[0]),
            connects=among("conn", numbers),
            about=[
                *(("client", each) for each in who[:MOST_NAMED]),
                *(("broker", each) for each in brokers[:MOST_NAMED]),
            ],
        )

    # --- idle-close

    def _idle(self, broker: str, lines: list[Line], view: View) -> Iterator[Finding]:
        closed = [
            line
            for line in lines
            if line["end"] in ("broker fin", "broker rst")
            and line["idle"] is not None
            and line["idle"] >= limit("idle.rest")
        ]
        alike = _alike(closed)
        if not alike:
            return
        rest = min(line["idle"] for line in alike)
        lost = [line for line in alike if line["unanswered"]]
        who = sorted({_who(line, view) for line in alike})
        # Brokers close idle connections with a FIN: a reset is of a device in between.
        reset = all(line["end"] == "broker rst" for line in alike)
        text = (
            f"Broker {spelled(broker)} closed {plural(len(alike), 'connection')} from "
            f"{listed(who)} after {duration(rest)} without traffic"
        )
        if reset:
            text = (
                f"{plural(len(alike), 'connection')} from {listed(who)} to {spelled(broker)} "
                f"{'was' if len(alike) == 1 else 'were'} reset after {duration(rest)} without "
                f"traffic, from the broker's side{device_text(rest)}"
            )
        if lost:
            count = sum(each["unanswered"] for each in lost)
            text += f"; {plural(count, 'request')} {'was' if count == 1 else 'were'} lost"
        yield view.finding(
            self.rule("idle-close"),
            text,
            among("conn", [line["connection"] for line in alike][:MOST_NAMED]),
            count=len(alike),
            first_ns=min(closed_at(line) for line in alike),
            last_ns=max(closed_at(line) for line in alike),
            severity="warning" if lost else None,
            advice=advice_text(rest) if reset else "",
            about=[*(("client", each) for each in who[:MOST_NAMED]), ("broker", spelled(broker))],
        )


# --- what connections tell --------------------------------------------------------------------


@once
def _ports(view: View) -> set[int]:
    """Return the ports at which brokers answered."""
    served = (line for line in view.lines() if works(line) and not of_zookeeper(line))
    return {int(line["broker_address"].rpartition(":")[2]) for line in served}


def _connects(broker: str, lines: Iterable[Line]) -> str:
    """Return the filter for the connections of an outage; for those of the broker where their
    numbers would be too long."""
    found = among("conn", [line["connection"] for line in lines])
    return found if len(found) <= MOST_WORDS else f'broker == "{broker}"'


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


def _severity(
    outage: Outage, lasted: int, users: set[ClientKey], broker: str, view: View
) -> Severity:
    """Return how severe an outage is. A restart that all clients survive is a note: it is over
    soon, or other brokers served, and no request was lost but long polls. So is one that only other
    brokers noticed."""
    if users and all(view.is_broker(*each) for each in users):
        return "note"
    # Brokers send again what they tell each other: no client waits for it.
    lost = any(
        line["stranded"] and not view.is_broker(line["client_id"], host_of(line["client_address"]))
        for line in outage.ended
    )
    soon = lasted <= limit("outage.short")
    if soon and not lost:
        return "note"
    if outage.end_ns is not None and not lost and _served(outage, broker, view):
        return "note"
    return "warning"


def _served(outage: Outage, broker: str, view: View) -> bool:
    """Return whether other brokers answered the same hosts meanwhile."""
    end = outage.end_ns or outage.begin_ns
    served = _answers(view)
    hosts = {host_of(line["client_address"]) for line in outage.failed}
    return all(served.meanwhile(host, broker, outage.begin_ns, end) for host in hosts)


@once
def _answers(view: View) -> AnsweredHosts:
    return AnsweredHosts(view.lines())


def _alike(closed: list[Line]) -> list[Line]:
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
    apart = bool(times) and max(times) - min(times) >= limit("idle.apart")
    return best if apart else []


def _who(line: Line, view: View) -> str:
    return view.client(line["client_id"], host_of(line["client_address"]))


def _told(broker: str, outage: Outage, view: View) -> set[ClientKey]:
    """Return who was told of the broker, among the hosts that tried to connect: the capture shows
    nobody who reached it."""
    hosts = {host_of(line["client_address"]) for line in outage.failed}
    return {each for each in advertised_to(broker, view) if each[0] and each[1] in hosts}


def _where(there: AtBroker) -> str:
    """Return the filter for exchanges with a broker, or for those that tell its address."""
    if there.asked:
        return f'broker == "{there.address}"'
    return "protocol == zookeeper" if there.zookeeper else TELLING


def _groups(clients: Iterable[str], view: View) -> list[str]:
    """Return the groups that these clients are members of."""
    known = _by_client(view)
    return sorted({group for client in clients for group in known.get(client, ())})


@once
def _by_client(view: View) -> dict[str, list[str]]:
    """Return the groups of each client."""
    found: dict[str, list[str]] = defaultdict(list)
    for story in view.stories():
        for client_id, host in {(m.client_id, m.host) for m in story.members}:
            found[view.client(client_id, host)].append(spelled(story.group))
    return found
