"""Addresses that brokers hand out and nobody can reach (question 3)."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import ClassVar, Final

from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.gone import gone_addresses, node_at
from kafkascope.analyzer.findings.view import MOST_NAMED, View, all_of, listed, plural
from kafkascope.analyzer.statistics.cluster.addresses import address_text, is_address, is_loopback
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import spelled

ADVERTISED: Final = (
    "Set advertised.listeners to an address that the clients can reach; with several networks, one "
    "listener for each."
)
FAILED: Final = {
    "refused": ("address-unreachable", "refused"),
    "no answer to SYN": ("address-unanswered", "did not answer"),
}
"""Remark of an address -> rule, and what became of connects."""
CONNECTS: Final = frozenset(name for name, _ in FAILED.values())
"""Rules about connects."""
MOST_CLIENTS: Final = 100
"""Clients that a finding names for those that it explains."""
TELLING: Final = "api in {Metadata, DescribeCluster, FindCoordinator}"


class Addresses(Detector):
    """From the statistic of the cluster."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "address-unreachable",
            "error",
            "an address that brokers advertise refuses connections",
            f"Nothing listens there: the host is right and the port is wrong, or the broker is "
            f"down. {ADVERTISED}",
            brief="{n} answer with its address|{n} answers with its address",
            subject=("node", "broker"),
        ),
        Rule(
            "address-unanswered",
            "error",
            "connects to an address that brokers advertise get no answer",
            "A firewall drops them, or the address lies in a network that has no such host: try "
            f"it from the client's machine (nc -vz HOST PORT). {ADVERTISED}",
            brief="{n} answer with its address|{n} answers with its address",
            subject=("node", "broker"),
            limits=("connects.answer",),
        ),
        Rule(
            "address-loopback",
            "error",
            "a client on another machine was told a loopback address",
            ADVERTISED,
        ),
        Rule(
            "address-private",
            "error",
            "a client with a public address was told a private one, and does not get there",
            ADVERTISED,
        ),
        Rule(
            "address-unspecified",
            "error",
            "an advertised address is no address (0.0.0.0 or ::)",
            ADVERTISED,
        ),
        Rule(
            "address-unresolved",
            "error",
            "a client needs addresses that it was told, never connects there, and asks again and "
            "again",
            "The names do not resolve for this client, or lie in a network that it has no route "
            f"to: look one up on its machine. {ADVERTISED}",
            "BROKER_NOT_AVAILABLE",
            brief="{client} did not connect to an address that it needs",
            limits=(
                "addresses.looks",
                "addresses.pace",
                "addresses.needed",
                "addresses.needed-pace",
            ),
        ),
        Rule(
            "address-differs",
            "note",
            "clients are told another address than the broker registered in ZooKeeper",
            "Right where a proxy stands between; else the broker registered anew with other "
            "advertised.listeners and clients have the old ones, or two brokers share a number.",
            brief="{n} answer with its address|{n} answers with its address",
            subject=("node", "broker"),
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield one finding per address, and per client that got stuck."""
        gone = gone_addresses(view)
        for line in view.base.cluster.rows(view.names):
            if line["node"] is None:
                continue
            for remark in line["remarks"]:
                found = self._of_remark(remark, line)
                # The address of a broker that its cluster counts as gone was right: see `outages`.
                down = remark in FAILED and any(_stands_for(each, line, view) for each in gone)
                if found is not None and not down:
                    name, text = found
                    yield self._finding(name, text, line, view)
        yield from self._stuck(view)

    def _of_remark(self, remark: str, line: Line) -> tuple[str, str] | None:
        node, address = line["node"], spelled(line["address"])
        clients = listed(line["clients"], 2)
        if remark in FAILED:
            name, how = FAILED[remark]
            tried = plural(line["attempts"] or 1, "attempt to connect", "attempts to connect")
            return name, f"node {node} is advertised as {address} to {clients}, which {how} {tried}"
        if remark.startswith("loopback, told to"):
            return "address-loopback", (
                f"node {node} is advertised as {address} to {clients} at "
                f"{remark.rpartition(' ')[2]}, which will connect to itself"
            )
        if remark.startswith("private, told to"):
            return "address-private", (
                f"node {node} is advertised with the private address {address} to {clients} at "
                f"{remark.rpartition(' ')[2]}, which does not get there"
            )
        if remark.startswith("registered as "):
            return "address-differs", (
                f"node {node} is advertised as {address} to {clients}, and {spelled(remark)} in "
                "ZooKeeper"
            )
        if remark == "no address that can be reached":
            return "address-unspecified", f"node {node} is advertised as {address} to {clients}"
        return None

    def _finding(self, name: str, text: str, line: Line, view: View) -> Finding:
        return view.finding(
            self.rule(name),
            text,
            all_of(f"number == {line['number']}" if line["number"] else TELLING),
            count=line["told"],
            first_ns=line["first"],
            last_ns=line["last"],
            number=line["number"],
            connects=_connects(line) if name in CONNECTS else "",
            about=[
                ("broker", spelled(line["address"])),
                ("node", str(line["node"])),
                *(("client", each) for each in _clients(name, line, view)),
            ],
        )

    def _stuck(self, view: View) -> Iterator[Finding]:
        """Yield clients that go on asking those who told them addresses, and never go there."""
        for stuck in view.base.cluster.judged(view.names).stuck():
            client_id, host = stuck.client
            # What is wrong with these is told of the address itself.
            missed = [each for each in stuck.missed if not _is_wrong(each[2], host)]
            if not missed:
                continue
            who = view.client(client_id, host)
            nodes = list(dict.fromkeys(str(number) for _, number, _, _ in missed))
            addresses = list(dict.fromkeys(address_text(*each[2:]) for each in missed))
            asked = [address_text(*each) for each in stuck.asked]
            one = len(nodes) == 1
            node, is_, has = ("node", "is", "has") if one else ("nodes", "are", "have")
            if stuck.works:
                text = (
                    f"{who} was told {stuck.looks} times that {node} {listed(nodes)}, which {has} "
                    f"what it asked for, {is_} at {listed(addresses)}, and never connected there, "
                    f"as it did to {listed(asked)}"
                )
            else:
                text = (
                    f"{who} was told that {node} {listed(nodes)} {is_} at {listed(addresses)}, "
                    f"never connected there, and asked {listed(asked, 2)} {stuck.looks} times"
                )
            yield view.finding(
                self.rule("address-unresolved"),
                text,
                all_of(view.of_client(client_id, host), TELLING),
                count=stuck.looks,
                first_ns=stuck.first_ns,
                last_ns=stuck.last_ns,
                severity="warning" if stuck.works else None,
                about=[
                    ("client", who),
                    *(("broker", spelled(each)) for each in addresses[:MOST_NAMED]),
                    *(("node", each) for each in nodes[:MOST_NAMED]),
                ],
            )


def _stands_for(address: str, line: Line, view: View) -> bool:
    """Return whether an address of packets is that of a node, which may be told by name."""
    port = line["address"].rpartition(":")[2]
    return address.endswith(f":{port}") and node_at(address, view) == line["node"]


def _connects(line: Line) -> str:
    """Return the connections to an address, by its port where nothing tells what its name stands
    for."""
    host, _, port = line["address"].rpartition(":")
    if is_address(host.strip("[]")):
        return f'broker == "{line["address"]}"'
    clients = sorted({host for _, host in line["told_to"]})
    found = " or ".join(f"client.ip == {each}" for each in clients[:MOST_NAMED] if each)
    return all_of(f"broker.port == {port}", f"({found})" if found else "")


def _clients(name: str, line: Line, view: View) -> list[str]:
    """Return the clients that were told an address that is of no use to them."""
    told = line["told_to"]
    if name == "address-loopback":
        told = [each for each in told if not is_loopback(each[1])]
    return sorted({view.client(*each) for each in told})[:MOST_CLIENTS]


def _is_wrong(told: str, client_host: str) -> bool:
    """Return whether an address can be nobody's but the client's own."""
    if is_loopback(told):
        return not is_loopback(client_host)
    return is_address(told) and ip_address(told.partition("%")[0]).is_unspecified
