"""Addresses that brokers hand out and nobody can reach (question 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final

from analyzer.findings.detector import Detector
from analyzer.findings.model import Finding, Rule
from analyzer.findings.view import View, all_of, listed, plural
from analyzer.identity import host_of
from analyzer.text import safe

if TYPE_CHECKING:
    from analyzer.statistics.model import Line

ADVERTISED: Final = (
    "Set advertised.listeners to an address that the clients can reach; with several networks, one "
    "listener for each."
)
TELLING: Final = "api in {Metadata, DescribeCluster, FindCoordinator}"
ONLY_LOOKS: Final = frozenset(
    {
        "ApiVersions",
        "Metadata",
        "SaslHandshake",
        "SaslAuthenticate",
        "FindCoordinator",
        "InitProducerId",
        "GetTelemetrySubscriptions",
    }
)
"""What clients ask a broker that they were started with; all else goes to those they are told."""


class Addresses(Detector):
    """From the statistic of the cluster."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "address-unreachable",
            "error",
            "an address that brokers advertise refuses connections, or does not answer",
            f"{ADVERTISED} Refused: nothing listens there; no answer: a firewall or a wrong "
            "network.",
            brief="{n} answer with its address|{n} answers with its address",
        ),
        Rule(
            "address-loopback",
            "error",
            "a client on another machine was told a loopback address",
            ADVERTISED,
        ),
        Rule(
            "address-private",
            "warning",
            "a client with a public address was told a private one",
            ADVERTISED,
        ),
        Rule(
            "address-unspecified",
            "error",
            "an advertised address is no address (0.0.0.0 or ::)",
            ADVERTISED,
        ),
        Rule(
            "address-never-used",
            "warning",
            "a client asks for metadata again and again, and contacts no address it was told",
            f"{ADVERTISED} See which address the client tries, and whether its name resolves "
            "there; the capture has no connection to it.",
            "BROKER_NOT_AVAILABLE",
            brief="{client} connected to no address that it was told",
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """One finding per address, and per client that got stuck."""
        for line in view.base.cluster.rows(view.names):
            if line["node"] is None:
                continue
            for remark in line["remarks"]:
                found = self._of_remark(remark, line)
                if found is not None:
                    name, text = found
                    yield self._finding(name, text, line, view)
        yield from self._stuck(view)

    def _of_remark(self, remark: str, line: Line) -> tuple[str, str] | None:
        node, address = line["node"], safe(line["address"])
        clients = listed(line["clients"], 2)
        if remark in ("refused", "no answer to SYN"):
            how = "refused" if remark == "refused" else "did not answer"
            tried = plural(line["attempts"] or 1, "attempt to connect", "attempts to connect")
            return "address-unreachable", (
                f"node {node} is advertised as {address} to {clients}, which {how} {tried}"
            )
        if remark.startswith("loopback, told to"):
            return "address-loopback", (
                f"node {node} is advertised as {address} to {clients} at "
                f"{remark.rpartition(' ')[2]}, which will connect to itself"
            )
        if remark.startswith("private, told to"):
            return "address-private", (
                f"node {node} is advertised with the private address {address} to {clients} at "
                f"{remark.rpartition(' ')[2]}"
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
            about=[("broker", safe(line["address"])), ("node", str(line["node"]))],
        )

    def _stuck(self, view: View) -> Iterator[Finding]:
        """Clients whose Metadata told addresses, and who never went there."""
        reached: dict[str, set[tuple[str, str]]] = {}
        for line in view.lines():
            host, _, port = line["broker_address"].rpartition(":")
            place = reached.setdefault(host_of(line["client_address"]), set())
            place.add((host.strip("[]"), port))
        for usage in view.base.clients.usages():
            asked = sum(usage.versions.get("Metadata", {}).values())
            looks = asked + sum(usage.versions.get("FindCoordinator", {}).values())
            if not asked or looks < MANY_LOOKS or not usage.versions.keys() <= ONLY_LOOKS:
                continue
            identity = usage.identity
            addresses = _told_to(identity.client_id, identity.host, view)
            mine = reached.get(identity.host, set())
            ports = {port for _, port in mine}
            missed = sorted(
                f"{host}:{port}"
                for host, port in addresses
                if (host, port) not in mine and port not in ports
            )
            if not missed or len(missed) < len(addresses):
                continue
            who = view.client(identity.client_id, identity.host)
            yield view.finding(
                self.rule("address-never-used"),
                f"{who} asked for metadata {asked} times, was told {listed(missed)}, and connected "
                "to none of them",
                all_of(view.of_client(identity.client_id, identity.host), "api == Metadata"),
                count=asked,
                first_ns=usage.total.first_ns,
                last_ns=usage.total.last_ns,
                about=[("client", who), *(("broker", each) for each in missed[:4])],
            )


MANY_LOOKS: Final = 3
"""A tool that lists metadata asks once or twice."""


def _told_to(client_id: Any, host: str, view: View) -> set[tuple[str, str]]:
    return {
        (str(told_host), str(port))
        for (told_host, port), clients in view.base.cluster.told_to().items()
        if (client_id or "", host) in clients
    }
