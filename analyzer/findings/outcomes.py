"""What became of each client: from the statistics, the findings and the group stories; the table of
clients. No state.

    outcomes(findings, names)      # Identity -> Outcome, also of hosts that never came to a request

A client is `kept out` when a finding names what refused it and none of its work was ever answered;
`stuck` when its place in a partition stays while there is more to read; `gone` when it left, was
closed, or vanished before the capture ended; `worked` when it closed its connections after answers
without errors that gave it a result: records, a group that it joined and left, or what it asked
for; `open` when it is still there at the end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from kafkascope.analyzer.findings.filters import all_of, among
from kafkascope.analyzer.findings.findings import Findings
from kafkascope.analyzer.findings.model import Finding, order
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import (
    Client,
    DetectorInput,
    brokers_in,
    client_key,
    ended_at,
)
from kafkascope.analyzer.findings.words import duration, listed, plural, spelled
from kafkascope.analyzer.identity import ClientKey, Identity
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.clients import Clients, Usage, line_of
from kafkascope.analyzer.statistics.connections import FAILED
from kafkascope.analyzer.statistics.delivery.model import AuditedPartition
from kafkascope.analyzer.statistics.groups.model import Member
from kafkascope.analyzer.statistics.model import Column, Line, TopicNames, columns
from kafkascope.analyzer.statistics.verdict import RANK, breaks_at, verdict_of
from kafkascope.dissectors.reference.codes import ERRORS, error_name

OutcomeWord: TypeAlias = Literal["kept out", "stuck", "gone", "worked", "open"]

COLUMNS: Final = columns("outcome outcome_reason (outcome_filter) worst_finding")
THRESHOLDS: Final = ("outcome.after", "outcome.still", "outcome.silent")
"""The limits that decide what became of a client: docs/findings.md prints them."""
KEPT_OUT: Final = frozenset(
    {
        *("version-refused", "likely-refused", "sasl-missing", "sasl-mechanism", "sasl-failed"),
        "tls-failed",
        *("plain-to-tls", "tls-to-plain", "http-to-kafka", "not-kafka", "server-not-kafka"),
        "proxy-protocol",
        *("denied", "unknown-topic"),
        *("address-unreachable", "address-unanswered", "address-unresolved", "address-loopback"),
        *("address-private", "address-unspecified", "request-header", "other-layout"),
        "framing-lost",
        "undecodable",
    }
)
"""Rules for clients that cannot work."""
SILENCED: Final = frozenset({"silent-drop"})
"""Rules about connections that are dead and were never closed."""
STUCK: Final = frozenset(
    {"reader-stuck", "fetch-too-small", "fetches-nothing", "response-too-large"}
)
"""Rules about readers that make no progress."""
UNREADABLE: Final = frozenset({"batch-codec", "batch-damaged"})
"""Rules about records that their reader cannot get past."""
# In the reason of a LeaveGroup (KIP-800): the application did not come back to poll().
POLL_TIMEOUT: Final = "poll timeout"
DATA: Final = frozenset({"Produce", "Fetch", "ShareFetch"})
"""APIs of the work of producers and consumers: a group that forms has read no record."""
LOOKS: Final = frozenset(
    {
        *("ApiVersions", "Metadata", "SaslHandshake", "SaslAuthenticate", "SaslToken"),
        *("FindCoordinator", "InitProducerId", "GetTelemetrySubscriptions", "DescribeCluster"),
    }
)
"""APIs before any work."""


GREETINGS: Final = frozenset(
    {
        *("ApiVersions", "SaslHandshake", "SaslAuthenticate", "SaslToken"),
        *("InitProducerId", "GetTelemetrySubscriptions", "PushTelemetry"),
    }
)
"""No purpose of a connection: Metadata may be all that a tool needs."""


class Outcome(NamedTuple):
    """The outcome of a client."""

    word: OutcomeWord
    reason: str
    filter: str = ""
    """Selects exchanges that show it."""
    worst_finding: str = ""

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
    judge = _Judge(findings.view(names), findings.reported(names))
    found = {usage.identity: judge.of(usage) for usage in judge.usages}
    found.update(judge.strangers())
    return {
        identity: outcome._replace(worst_finding=judge.worst_finding(identity))
        for identity, outcome in found.items()
    }


class _Judge:
    """Everything that is known of clients, by client."""

    def __init__(self, view: DetectorInput, found: Iterable[Finding]) -> None:
        self.view = view
        self.usages = view.base.clients.usages()
        self.lines = by_key((client_key(line), line) for line in view.lines)
        self.named: dict[tuple[str, str], list[Finding]] = defaultdict(list)
        for each in sorted(found, key=order):
            for entity in set(each.entities):
                self.named[entity].append(each)
        self.members: dict[ClientKey, Member] = {}
        """The last life of each client in a group."""
        members = view.members
        for member in sorted(members, key=lambda each: each.last_ns or 0):
            self.members[member.client_id or "", member.host] = member
        self.stuck = _stuck(view)
        self.records: Counter[ClientKey] = Counter()
        """That clients fetched."""
        for (_, _, *who), reads in view.base.delivery.reads.items():
            self.records[view.client(*who).key] += reads.records
        self.unread = {
            (view.client(key["client_id"], key["host"]).key, str(key["api"]))
            for key, traffic in view.base.apis.grouped(("client_id", "host", "api"))
            if traffic.undecoded
        }
        """Clients with an API of which messages could not be read."""

    def worst_finding(self, identity: Identity) -> str:
        """Return the text of the worst finding about a client, its cause rather than what followed
        from it; empty for chats."""
        client = self.view.client(identity.client_id, identity.host)
        named = self.named[("client", client)] or self.named[("host", identity.host)]
        bad = [finding for finding in named if finding.severity != "chat"]
        bad.sort(key=lambda finding: (order(finding)[0], bool(finding.because)))
        return bad[0].text if bad else ""

    # --- one client

    def of(self, usage: Usage) -> Outcome:
        """Judge a client that sent requests."""
        client = self.view.client(usage.identity.client_id, usage.identity.host)
        mine = self.named[("client", client)]
        why = None
        if not _did_work(usage):
            why = next((each for each in mine if each.name in KEPT_OUT), None)
        if why is not None:
            return Outcome("kept out", why.text, why.filter or client.filter)
        if client.key in self.stuck:
            reason, partition = self.stuck[client.key]
            topic = self.view.of_topic(partition.topic)
            return Outcome("stuck", reason, all_of(client.filter, topic))
        for each in mine:
            old = each.name == "batch-format" and each.severity == "error"
            unreadable = each.name in UNREADABLE and usage.total.roles
            stands = each.name in STUCK and each.severity != "note"
            if stands or old or (unreadable and not self._reads_on(client.key)):
                return Outcome("stuck", each.text, each.filter or client.filter)
        return self._end(usage, client, mine)

    def _reads_on(self, who: ClientKey) -> bool:
        """Return whether a client fetched until it left, or until the capture ended."""
        polls = self.view.base.delivery.polls.get(who)
        last_ns = None if polls is None else polls.last_ns
        end = max(map(ended_at, self.lines.get(who, ())), default=self.view.last_ns or 0)
        return last_ns is not None and end - last_ns < limit("outcome.still")

    def _end(self, usage: Usage, client: Client, mine: Sequence[Finding]) -> Outcome:
        lines = [line for line in self.lines.get(client.key, ()) if line["phase"] not in FAILED]
        member = self.members.get(client.key)
        after = _after(usage, member)
        if not lines or not all(line["end"] for line in lines):
            return self._still(usage, client, mine, after, member)
        last = max(lines, key=ended_at)
        side, _, how = last["end"].rpartition(" ")
        where = all_of(client.filter, among("conn", [last["connection"]]))
        lost = sum(line["stranded"] for line in lines if ended_at(line) == ended_at(last))
        more = f", with {plural(lost, 'request')} without response" if lost else ""
        if not side:
            return Outcome("gone", f"vanished without a FIN, {after}", where)
        if side == "broker":
            verb = "reset" if how == "rst" else "closed"
            nameless = self.lines.get(("", client.key[1]), ())
            refused = sum(line["phase"] in FAILED for line in nameless)
            tried = plural(refused, "connection attempt")
            more += f"; {tried} from its host failed" if refused else ""
            return Outcome("gone", f"the broker {verb} its last connection, {after}{more}", where)
        verb = "reset its connections" if how == "rst" else "closed its connections"
        left = member is not None and member.state == "left"
        if left:
            lost, more = 0, ""  # its last requests: nobody waits for the answers
        if member is not None and not left and _is_near(usage, member):
            static = " (static member)" if member.instance is not None else ""
            verb += f" without leaving its group{static}"
        failed = _failure(usage)
        joined = member is not None and bool(member.epochs)
        nothing = "" if joined or failed else self._nothing(usage, client.key)
        if not (failed or nothing) and any(each.name in UNREADABLE for each in mine):
            nothing = ", with records that it could not read"
        unclean = failed or lost or nothing or how == "rst" or not _is_settled(member)
        return Outcome("gone" if unclean else "worked", f"{verb} {after}{more or nothing}", where)

    def _still(
        self,
        usage: Usage,
        client: Client,
        mine: Sequence[Finding],
        after: str,
        member: Member | None,
    ) -> Outcome:
        for each in mine:
            if each.name in SILENCED:
                return Outcome("gone", f"vanished without a FIN: {each.text}", each.filter)
        last_ns = usage.total.last_ns or 0
        silent = (self.view.last_ns or last_ns) - last_ns
        expired = member is not None and member.state == "expired"
        if silent >= limit("outcome.still" if expired else "outcome.silent"):
            why = "its group removed it" if expired else f"no traffic for {duration(silent)}"
            how = "" if self.view.of_logs else "vanished without a FIN, "
            return Outcome("gone", f"{how}{after}: {why}", client.filter)
        reason, outside = "still active at the end of the capture", ""
        if member is not None and member.state in ("left", "fenced"):
            reason = "still connected at the end of the capture"
            outside = f", but not in its group: {spelled(member.text)}"
        if self.view.of_logs:
            # No line shows when a connection was closed.
            reason = f"last request {duration(silent)} before the end of the log"
        return Outcome("open", f"{reason}{outside}", client.filter)

    def _nothing(self, usage: Usage, who: ClientKey) -> str:
        """Return why a client that left without an error has no result; empty where it has one."""
        if usage.last is not None and (who, usage.last[1]) in self.unread:
            answered = usage.answered.get(usage.last[1])
            done_ns = answered.succeeded_ns if answered is not None else None
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
            failed = all(e["phase"] in FAILED and e["broker_address"] in brokers for e in lines)
            identity = Identity(None, host, "", "")
            if reason is not None:
                where = reason.filter or f"client.ip == {host}"
                yield identity, Outcome("kept out", reason.text, where)
            elif failed:
                refused = any(line["phase"] == "refused" for line in lines)
                how = "refused" if refused else "did not answer"
                tried = plural(len(lines), "connection attempt")
                yield identity, Outcome("kept out", f"{listed(brokers_in(lines))} {how} {tried}")


# --- what clients did -------------------------------------------------------------------------


def _did_work(usage: Usage) -> bool:
    """Return whether anything that a client came for was answered without an error."""
    done = {api for api, each in usage.answered.items() if each.succeeded} - LOOKS
    if {"produces", "consumes", "transactions", "streams"} & set(usage.total.roles):
        return bool(done & DATA)
    return bool(done)


def _failure(usage: Usage) -> str:
    """Return the error that a client left right after; empty for none. A retriable one counts when
    no other one went well."""
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
    """Return a client's last action before its end."""
    failed = _failure(usage)
    api = usage.last[1] if usage.last is not None else ""
    if member is not None and member.state == "left" and _is_near(usage, member):
        text = "after LeaveGroup" + spelled(member.text).removeprefix("left").replace(": ", " (", 1)
        text += ")" if "(" in text else ""
        return f"{text}, right after {failed}" if failed else text
    if failed:
        return f"right after {failed}"
    return f"after {api}" if api else "before any request"


def _is_settled(member: Member | None) -> bool:
    """Return whether no group waits for a client that ended: it left, or is a static member, which
    keeps its partitions until it comes back (KIP-345) and sends no LeaveGroup."""
    if member is None or (member.state == "active" and member.instance is not None):
        return True
    return member.state == "left" and POLL_TIMEOUT not in member.text


def _is_near(usage: Usage, member: Member) -> bool:
    return (usage.total.last_ns or 0) - (member.last_ns or 0) <= limit("outcome.still")


def _stuck(view: DetectorInput) -> dict[ClientKey, tuple[str, AuditedPartition]]:
    """Return readers that wait at a last stable offset that does not move, with a sentence."""
    found: dict[ClientKey, tuple[str, AuditedPartition]] = {}
    for place in view.audit.found:
        reason = _stands(place)
        for reader in place.readers if reason else ():
            client_id, _, host = reader.rpartition("@")
            found.setdefault((client_id, host), (reason, place))
    return found


def _stands(place: AuditedPartition) -> str:
    """Return why a partition does not go on for its readers; empty when it does."""
    wait = place.wait if place.waits else None
    if wait is None or wait.end_ns - wait.begin_ns < limit("outcome.still"):
        return ""
    return (
        f"reads nothing of {spelled(place.topic)}-{place.number} past offset {wait.offset:,} for "
        f"{duration(wait.end_ns - wait.begin_ns)}: an open transaction blocks the records "
        f"up to {place.end:,}"
    )


BREAKS: Final = Column("breaks_at")
VERDICT: Final = (Column("verdict"), BREAKS, Column("why", "list"))


def judged(
    found: Clients, release: str | None, ends: Mapping[Identity, Outcome] | None = None
) -> list[Line]:
    """Return the clients with where they break, and what became of them; those that break on the
    given release come first, hosts that never came to a request last."""
    ends = dict(ends or {})
    lines = []
    for usage in found.usages():
        line = {**line_of(usage), "breaks_at": breaks_at(usage)}
        if release is not None:
            verdict = verdict_of(usage, release)
            line["verdict"] = verdict.word
            line["why"] = [reason.text for reason in verdict.reasons]
        end = ends.pop(usage.identity, None)
        lines.append(line if end is None else {**line, **end.line()})
    if release is not None:
        lines.sort(key=lambda line: RANK[line["verdict"]])
    strangers = [{**line_of(Usage(each)), **end.line()} for each, end in ends.items()]
    return lines + found.rows()[len(lines) :] + strangers


def of_selection(
    found: Clients, ends: Mapping[Identity, Outcome], whole: Clients
) -> dict[Identity, Outcome]:
    """Return what became of the clients of a selection. There a client's library or user may be
    missing, which the whole capture has."""
    target = whole.targets()
    clients = [usage.identity for usage in found.usages()]
    pairs = [(each, target.get(each, each)) for each in clients]
    return {each: ends[whole_one] for each, whole_one in pairs if whole_one in ends}
