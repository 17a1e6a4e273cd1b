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
    "Set advertised.listeners to an address that the clients can reach; with several networks, "
    "configure one listener for each."
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
            "advertised address that refuses connections",
            "Check the port of the listener, and whether the broker is running: nothing listens at "
            f"this address. {ADVERTISED}",
            brief="{n} response with its address|{n} responses with its address",
            subject=("node", "broker"),
        ),
        Rule(
            "address-unanswered",
            "error",
            "advertised address that does not answer connection attempts",
            "Test the connection from the client's machine (nc -vz HOST PORT): a firewall drops "
            f"it, or the network has no such host. {ADVERTISED}",
            brief="{n} response with its address|{n} responses with its address",
            subject=("node", "broker"),
            limits=("connects.answer",),
        ),
        Rule(
            "address-loopback",
            "error",
            "loopback address advertised to a client on another machine",
            ADVERTISED,
        ),
        Rule(
            "address-private",
            "error",
            "private address advertised to a client outside that network",
            ADVERTISED,
        ),
        Rule(
            "address-unspecified",
            "error",
            "unspecified address advertised (0.0.0.0 or ::)",
            ADVERTISED,
        ),
        Rule(
            "address-unresolved",
            "error",
            "advertised address that a client needs and never connects to",
            "Resolve the host name on the client's machine, and check the route: the name does not "
            f"resolve there, or the client has no route to the address. {ADVERTISED}",
            "BROKER_NOT_AVAILABLE",
            brief="{client} never connected to an address that it needs",
            limits=(
                "addresses.looks",
                "addresses.pace",
                "addresses.starts",
                "addresses.needed",
                "addresses.needed-pace",
            ),
        ),
        Rule(
            "address-differs",
            "note",
            "advertised address that differs from the registration in ZooKeeper",
            "No action is needed if clients connect through a proxy. Otherwise compare "
            "advertised.listeners with the registration: the broker registered again with other "
            "listeners and clients hold the old ones, or two brokers share a broker.id.",
            brief="{n} response with its address|{n} responses with its address",
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
            tried = plural(line["attempts"] or 1, "connection attempt")
            return name, f"Broker {node} advertises {address} to {clients}; {address} {how} {tried}"
        if remark.startswith("loopback, advertised to"):
            return "address-loopback", (
                f"Broker {node} advertises the loopback address {address} to {clients} at "
                f"{remark.rpartition(' ')[2]}, where it is the client's own machine"
            )
        if remark.startswith("private, advertised to"):
            return "address-private", (
                f"Broker {node} advertises the private address {address} to {clients} at "
                f"{remark.rpartition(' ')[2]}, and is not reachable from there"
            )
        if remark.startswith("registered as "):
            return "address-differs", (
                f"Broker {node} advertises {address} to {clients}, but {spelled(remark)} in "
                "ZooKeeper"
            )
        if remark == "unspecified address":
            return "address-unspecified", (
                f"Broker {node} advertises the unspecified address {address} to {clients}"
            )
        return None

    def _finding(self, name: str, text: str, line: Line, view: View) -> Finding:
        return view.finding(
            self.rule(name),
            text,
            all_of(f"number == {line['number']}" if line["number"] else TELLING),
            count=line["advertised"],
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
            broker = "broker" if len(nodes) == 1 else "brokers"
            text = f"{who} never connected to {broker} {listed(nodes)} at {listed(addresses)}"
            looks = plural(stuck.looks, "response")
            if stuck.works:
                text += (
                    f", although {looks} named it as the one that it needs; it is connected to "
                    f"{listed(asked)}"
                )
            else:
                text += f" and looked up addresses {stuck.looks} times at {listed(asked, 2)}"
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
