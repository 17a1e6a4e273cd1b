"""What became of each client: from the statistics, the findings and the group stories. No state.

    outcomes(findings, names)      # Identity -> Outcome, also of hosts that never came to a request

A client is `kept out` when a finding names what refused it and none of its work was ever answered;
`stuck` when its place in a partition stays while there is more to read; `gone` when it left, was
closed, or vanished before the capture ended; `worked` when it closed its connections after answers
without errors that gave it a result: records, or what it asked for; `open` when it is still there
at the end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from kafkascope.analyzer.findings.findings import Findings
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.model import Finding, order
from kafkascope.analyzer.findings.view import (
    View,
    all_of,
    among,
    audit_of,
    duration,
    listed,
    plural,
)
from kafkascope.analyzer.identity import ClientKey, Identity, host_of
from kafkascope.analyzer.statistics.clients import Usage
from kafkascope.analyzer.statistics.connections import FAILED
from kafkascope.analyzer.statistics.delivery.model import AuditedPartition
from kafkascope.analyzer.statistics.groups.model import Member
from kafkascope.analyzer.statistics.model import Column, Line, TopicNames
from kafkascope.analyzer.text import spelled
from kafkascope.dissectors.reference.codes import ERRORS, error_name

OutcomeWord: TypeAlias = Literal["kept out", "stuck", "gone", "worked", "open"]

COLUMNS: Final = (
    Column("outcome"),
    Column("outcome_reason"),
    Column("outcome_filter", wide=True),
    Column("worst_finding"),
)
THRESHOLDS: Final = ("outcome.after", "outcome.still", "outcome.silent")
"""The limits that decide what became of a client."""
KEPT_OUT: Final = frozenset(
    {
        *("version-refused", "sasl-missing", "sasl-mechanism", "sasl-failed", "tls-failed"),
        *("plain-to-tls", "tls-to-plain", "http-to-kafka", "not-kafka", "server-not-kafka"),
        "proxy-protocol",
        *("denied", "unknown-topic"),
        *("address-unreachable", "address-unanswered", "address-unresolved", "address-loopback"),
        *("address-private", "address-unspecified", "request-header", "other-layout"),
        "framing-lost",
        "undecodable",
    }
)
"""Rules that say why somebody cannot work."""
SILENCED: Final = frozenset({"silent-drop"})
"""Rules about connections that are dead and were never closed."""
STUCK: Final = frozenset(
    {"reader-stuck", "fetch-too-small", "fetches-nothing", "response-too-large"}
)
"""Rules about readers that make no progress."""
UNREADABLE: Final = frozenset({"batch-codec", "batch-damaged"})
"""Rules about records that their reader cannot get past."""
DATA: Final = frozenset({"Produce", "Fetch", "ShareFetch"})
"""What producers and consumers work with: a group that forms is no record read."""
LOOKS: Final = frozenset(
    {
        *("ApiVersions", "Metadata", "SaslHandshake", "SaslAuthenticate", "SaslToken"),
        *("FindCoordinator", "InitProducerId", "GetTelemetrySubscriptions", "DescribeCluster"),
    }
)
"""What comes before any work."""


GREETINGS: Final = frozenset(
    {
        *("ApiVersions", "SaslHandshake", "SaslAuthenticate", "SaslToken"),
        *("InitProducerId", "GetTelemetrySubscriptions", "PushTelemetry"),
    }
)
"""What nobody connects for: Metadata may be all that a tool wants."""


class Outcome(NamedTuple):
    """What became of a client."""

    word: OutcomeWord
    reason: str
    filter: str = ""
    """Selects exchanges that show it."""
    worst_finding: str = ""
    """The text of the worst finding about the client."""

    def line(self) -> Line:
        """Return the columns that the outcome adds to a line of clients."""
        return {
            "outcome": self.word,
            "outcome_reason": self.reason,
            "outcome_filter": self.filter,
            "worst_finding": self.worst_finding,
        }


def outcomes(findings: Findings, names: TopicNames | None = None) -> dict[Identity, Outcome]:
    """Return the outcome of each client; of hosts without any request under `Identity(None,
    host)`."""
    judge = _Judge(findings.view(names), findings.told(names))
    found = {usage.identity: judge.of(usage) for usage in judge.usages}
    found.update(judge.strangers())
    return {
        identity: outcome._replace(worst_finding=judge.worst_finding(identity))
        for identity, outcome in found.items()
    }


class _Judge:
    """Everything that is known of clients, by client."""

    def __init__(self, view: View, found: Iterable[Finding]) -> None:
        self.view = view
        self.usages = view.base.clients.usages()
        self.lines: dict[ClientKey, list[Line]] = defaultdict(list)
        for line in view.lines():
            self.lines[line["client_id"] or "", host_of(line["client_address"])].append(line)
        self.named: dict[tuple[str, str], list[Finding]] = defaultdict(list)
        for each in sorted(found, key=order):
            for entity in set(each.entities):
                if entity[0] in ("client", "host"):
                    self.named[entity].append(each)
        self.members = _members(view)
        self.stuck = _stuck(view)
        self.records: Counter[ClientKey] = Counter()
        """That clients fetched."""
        for (_, _, client_id, host), reads in view.base.delivery.reads.items():
            self.records[str(client_id or ""), str(host)] += reads.records
        self.unread = {
            ((str(key["client_id"] or ""), str(key["host"])), str(key["api"]))
            for key, traffic in view.base.apis.grouped(("client_id", "host", "api"))
            if traffic.undecoded
        }
        """Clients with an API of which messages could not be read."""

    def worst_finding(self, identity: Identity) -> str:
        """Return the text of the worst finding about a client; empty for chats."""
        host = identity.host
        label = self.view.client(identity.client_id or "", host)
        named = self.named[("client", label)] or self.named[("host", host)]
        return next((finding.text for finding in named if finding.severity != "chat"), "")

    # --- one client

    def of(self, usage: Usage) -> Outcome:
        """Judge a client that sent requests."""
        who = usage.identity.client_id or "", usage.identity.host
        mine = self.named[("client", self.view.client(*who))]
        where = self.view.of_client(*who)
        if not _did_work(usage):
            for each in mine:
                if each.name in KEPT_OUT:
                    return Outcome("kept out", each.text, each.filter or where)
        if who in self.stuck:
            reason, partition = self.stuck[who]
            return Outcome("stuck", reason, all_of(where, self.view.of_topic(partition.topic)))
        for each in mine:
            if each.name in STUCK or (each.name == "batch-format" and each.severity == "error"):
                return Outcome("stuck", each.text, each.filter or where)
            if each.name in UNREADABLE and usage.total.roles and not self._reads_on(who):
                return Outcome("stuck", each.text, each.filter or where)
        return self._end(usage, who, mine, where)

    def _reads_on(self, who: ClientKey) -> bool:
        """Return whether a client fetched until it left, or until the capture ended."""
        polls = self.view.base.delivery.polls.get(who)
        last_ns = None if polls is None else polls.periods.last_ns
        end = max((_closed(line) for line in self.lines[who]), default=self.view.last_ns or 0)
        return last_ns is not None and end - last_ns < limit("outcome.still")

    def _end(self, usage: Usage, who: ClientKey, mine: Sequence[Finding], where: str) -> Outcome:
        """Judge a client by how its connections ended."""
        lines = [line for line in self.lines[who] if line["phase"] not in FAILED]
        member = self.members.get(who)
        after = _after(usage, member)
        here = [line for line in lines if not line["end"]]
        if here or not lines:
            for each in mine:
                if each.name in SILENCED:
                    return Outcome("gone", f"vanished without a FIN: {each.text}", each.filter)
            last_ns = usage.total.last_ns or 0
            silent = (self.view.last_ns or last_ns) - last_ns
            if member is not None and member.state == "expired":
                if silent >= limit("outcome.still"):
                    reason = f"vanished without a FIN, {after}: its group removed it"
                    return Outcome("gone", reason, where)
            elif silent >= limit("outcome.silent"):
                reason = f"vanished without a FIN, {after}: no traffic for {duration(silent)}"
                return Outcome("gone", reason, where)
            return Outcome("open", _open(member), where)
        last = max(lines, key=_closed)
        side, _, how = last["end"].rpartition(" ")
        where = all_of(where, among("conn", [last["connection"]]))
        lost = sum(line["stranded"] for line in lines if _closed(line) == _closed(last))
        more = f", with {plural(lost, 'request')} without response" if lost else ""
        failed = _failure(usage)
        if not side:
            return Outcome("gone", f"vanished without a FIN, {after}", where)
        if side == "broker":
            verb = "reset" if how == "rst" else "closed"
            refused = sum(line["phase"] in FAILED for line in self.lines.get(("", who[1]), ()))
            tried = plural(refused, "connection attempt")
            more += f"; {tried} from its host failed" if refused else ""
            return Outcome("gone", f"the broker {verb} its last connection, {after}{more}", where)
        verb = "reset its connections" if how == "rst" else "closed its connections"
        left = member is not None and member.state == "left"
        if left:
            more = ""  # its last requests: nobody waits for the answers
        alone = member is not None and not left and _is_near(usage, member)
        if alone:
            verb += " without leaving its group"
        nothing = "" if member is not None or failed else self._nothing(usage, who)
        more = more or nothing
        unclean = failed or lost or nothing or how == "rst" or member is not None
        return Outcome("gone" if unclean else "worked", f"{verb} {after}{more}", where)

    def _nothing(self, usage: Usage, who: ClientKey) -> str:
        """Say why a client that left without an error has no result; empty where it has one."""
        api = usage.last[1] if usage.last is not None else ""
        if usage.last is not None and (who, api) in self.unread:
            done_ns = usage.answered[api].succeeded_ns if api in usage.answered else None
            if done_ns is None or done_ns < usage.last[0]:
                return ", whose response could not be read"
        roles = set(usage.total.roles)
        if roles == {"consumes"} and "Fetch" in usage.answered and not self.records[who]:
            return ", without having read a record"
        done = {name for name, each in usage.answered.items() if each.succeeded}
        result = _did_work(usage) or (not roles and bool(done - GREETINGS))
        return "" if result else ", without a result"

    # --- those who never came to a request

    def strangers(self) -> Iterator[tuple[Identity, Outcome]]:
        """Yield the outcomes of hosts that no request is known of, and that were kept out."""
        known = {usage.identity.host for usage in self.usages}
        brokers = {line["address"] for line in self.view.base.cluster.rows(self.view.names)}
        for (client_id, host), lines in sorted(self.lines.items()):
            if client_id or host in known:
                continue
            named = self.named[("host", host)] + self.named[("client", host)]
            reason = next((each for each in named if each.name in KEPT_OUT), None)
            identity = Identity(None, host, "", "")
            failed = [
                line
                for line in lines
                if line["phase"] in FAILED and line["broker_address"] in brokers
            ]
            if reason is not None:
                where = reason.filter or f"client.ip == {host}"
                yield identity, Outcome("kept out", reason.text, where)
            elif failed and len(failed) == len(lines):
                addresses = sorted({spelled(line["broker_address"]) for line in failed})
                refused = any(line["phase"] == "refused" for line in failed)
                how = "refused" if refused else "did not answer"
                tried = plural(len(failed), "connection attempt")
                yield identity, Outcome("kept out", f"{listed(addresses)} {how} {tried}")


# --- what clients did -------------------------------------------------------------------------


def _did_work(usage: Usage) -> bool:
    """Return whether anything that a client came for was answered without an error."""
    done = {api for api, each in usage.answered.items() if each.succeeded} - LOOKS
    if {"produces", "consumes", "transactions", "streams"} & set(usage.total.roles):
        return bool(done & DATA)
    return bool(done)


def _failure(usage: Usage) -> str:
    """Return the error that a client left right after; empty for none. One that asks for another
    try counts when no other one went well."""
    last_ns, found = usage.total.last_ns or 0, (0, 0)
    for each in usage.answered.values():
        if each.last_failed is None or last_ns - each.last_failed[0] > limit("outcome.after"):
            continue
        time_ns, code = each.last_failed
        final = code not in ERRORS or not ERRORS[code].retriable
        if final or (each.succeeded_ns or 0) < time_ns:
            found = max(found, (time_ns, code))
    return error_name(found[1]) if found[1] else ""


def _after(usage: Usage, member: Member | None) -> str:
    """Say what a client did last before it ended."""
    failed = _failure(usage)
    api = usage.last[1] if usage.last is not None else ""
    if member is not None and member.state == "left" and _is_near(usage, member):
        text = "after LeaveGroup" + spelled(member.text).removeprefix("left").replace(": ", " (", 1)
        text += ")" if "(" in text else ""
        return f"{text}, right after {failed}" if failed else text
    if failed:
        return f"right after {failed}"
    return f"after {api}" if api else "before any request"


def _is_near(usage: Usage, member: Member) -> bool:
    """Return whether a member was there until its client ended."""
    return (usage.total.last_ns or 0) - (member.last_ns or 0) <= limit("outcome.still")


def _open(member: Member | None) -> str:
    if member is not None and member.state in ("left", "fenced"):
        text = spelled(member.text)
        return f"still connected at the end of the capture, but not in its group: {text}"
    return "still active at the end of the capture"


def _closed(line: Line) -> int:
    return int(line["opened"] or 0) + int(line["life"] or 0)


def _members(view: View) -> dict[ClientKey, Member]:
    """Return the last life of each client in a group."""
    found: dict[ClientKey, Member] = {}
    for story in view.stories():
        for member in story.members:
            who = member.client_id or "", member.host
            before = found.get(who)
            if before is None or (before.last_ns or 0) <= (member.last_ns or 0):
                found[who] = member
    return found


def _stuck(view: View) -> dict[ClientKey, tuple[str, AuditedPartition]]:
    """Return readers that wait at a last stable offset that does not move, with a sentence."""
    found: dict[ClientKey, tuple[str, AuditedPartition]] = {}
    for place in audit_of(view).found:
        reason = _stands(place)
        for reader in place.readers if reason else ():
            client_id, _, host = reader.rpartition("@")
            found.setdefault((client_id, host), (reason, place))
    return found


def _stands(place: AuditedPartition) -> str:
    """Say why a partition does not go on for its readers; empty when it does."""
    since, until = place.waits_since_ns, place.waits_until_ns
    if since is None or until is None or until - since < limit("outcome.still"):
        return ""
    return (
        f"reads nothing of {spelled(place.topic)}-{place.number} past offset {place.stable:,} for "
        f"{duration(until - since)}: an open transaction blocks the records up to {place.end:,}"
    )
