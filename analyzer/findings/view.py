"""What detectors see when they tell: the statistics, names, and words for people and filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, wraps
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from kafkascope.analyzer.conversation.pending import SASL_TOKEN
from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.model import Finding, Rule, key_of
from kafkascope.analyzer.identity import host_of, labels
from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.ranks import has_bounded
from kafkascope.analyzer.render.cells import duration, size
from kafkascope.analyzer.statistics.merging.tables import OTHERS
from kafkascope.analyzer.statistics.model import topic_id_in, topic_label
from kafkascope.analyzer.text import Spelled, plural, spelled
from kafkascope.dissectors.values import Uuid
from kafkascope.dissectors.zookeeper.types import UNKNOWN as UNKNOWN_TYPE

if TYPE_CHECKING:
    from kafkascope.analyzer.findings.detector import Seen
    from kafkascope.analyzer.statistics.clients import Clients
    from kafkascope.analyzer.statistics.cluster.cluster import Cluster
    from kafkascope.analyzer.statistics.connections import Connections
    from kafkascope.analyzer.statistics.delivery.audit import Audit
    from kafkascope.analyzer.statistics.delivery.delivery import Delivery
    from kafkascope.analyzer.statistics.delivery.model import AuditedPartition
    from kafkascope.analyzer.statistics.errors import Errors
    from kafkascope.analyzer.statistics.groups.groups import Groups
    from kafkascope.analyzer.statistics.groups.model import Story
    from kafkascope.analyzer.statistics.latency import Latency
    from kafkascope.analyzer.statistics.model import Line
    from kafkascope.analyzer.statistics.producers.producers import Producers
    from kafkascope.analyzer.statistics.sizes import SizesOf
    from kafkascope.analyzer.statistics.throughput import Throughput
    from kafkascope.analyzer.statistics.topics import Topics
    from kafkascope.analyzer.statistics.zookeeper.story import TreeStory
    from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper
    from kafkascope.analyzer.topics import TopicNames

MOST_NAMED: Final = 4
MAX_FILTER: Final = 8_000
MAX_TEXT: Final = 1_000
"""Characters."""

Made = TypeVar("Made")

__all__ = ["Client", "View", "all_of", "duration", "listed", "plural", "size"]


class Client(NamedTuple):
    """Who: a client id and the host that it is used on."""

    id: str | None
    host: str


def api_is(api: Any) -> str:
    """Return the filter for an API, or for a key without a name; empty for what is neither."""
    word = str(api or "").rpartition(" ")[2]
    return f"api == {word}" if word not in ("", SASL_TOKEN, OTHERS, UNKNOWN_TYPE) else ""


GapCause = Literal["", "mirror", "damage"]
"""Why bytes are missing, where the capture itself tells: its packets were cut before they came to
the capturing host, or the file is damaged."""


class Base(NamedTuple):
    """The statistics that detectors read instead of counting the same again."""

    clients: Clients
    connections: Connections
    cluster: Cluster
    latency: Latency
    apis: Throughput
    sizes: SizesOf
    topics: Topics
    groups: Groups
    producers: Producers
    delivery: Delivery
    zookeeper: ZooKeeper
    errors: Errors


def unreadable(line: Line) -> bool:
    """Return whether a line is of a connection whose TLS cannot be read: what the capture lacks of
    it is missed by nobody."""
    return bool(line["tls_error"]) and line["phase"] == "opaque"


class View:
    """Of one moment; made anew for each telling."""

    def __init__(
        self,
        base: Base,
        names: TopicNames | None,
        first_ns: int | None,
        last_ns: int | None,
        release: str = "",
        clients: Clients | None = None,
    ) -> None:
        """`release`: the Kafka release that is asked about; empty for none. `clients`: those of the
        whole of which this is a piece, so that each has one name."""
        self.base = base
        self.release = release
        self.names = names
        self.first_ns = first_ns
        self.last_ns = last_ns
        people = {
            (str(key[0] or ""), str(key[1])) for key, _ in (clients or base.clients).values.items()
        }
        self._titles = labels(people)
        self.gap_cause: GapCause = ""
        self.damaged_places = 0
        self.kept: dict[Any, Any] = {}
        """What was made once, see `once`."""

    def stories(self) -> list[Story]:
        """Return the stories of all groups that have one."""
        found = map(self.base.groups.story, self.base.groups.names())
        return [story for story in found if story is not None]

    def is_broker(self, client_id: Any, host: Any) -> bool:
        """Return whether it is a broker that talks to others."""
        return (str(client_id or ""), str(host)) in self._brokers

    @cached_property
    def _brokers(self) -> set[tuple[str, str]]:
        return {
            (usage.identity.client_id or "", usage.identity.host)
            for usage in self.base.clients.usages()
            if "broker" in usage.total.roles
        }

    def connections(self, client_id: Any, host: Any) -> int:
        """Return how many connections a client used."""
        return self._connections.get((str(client_id or ""), str(host)), 0)

    def lines(self) -> list[Line]:
        """Return the table of connections that are counted one by one: what a finding says is about
        connections that can be named."""
        return self._named

    @cached_property
    def _named(self) -> list[Line]:
        return [line for line in self._lines if line["connection"] != OTHERS]

    def gap_bytes(self) -> int:
        """Return bytes that are missing of all connections, also of those that are counted
        together."""
        return sum(line["gap_bytes"] or 0 for line in self._lines if not unreadable(line))

    @cached_property
    def _lines(self) -> list[Line]:
        return self.base.connections.rows()

    def has_open(self, client_id: Any, host: Any) -> bool:
        """Return whether a client still has a connection when the capture ends."""
        return (str(client_id or ""), str(host)) in self._open

    @cached_property
    def _open(self) -> set[tuple[str, str]]:
        return {
            (line["client_id"] or "", host_of(line["client_address"]))
            for line in self.lines()
            if line["state"] == "open"
        }

    @cached_property
    def _connections(self) -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for line in self.lines():
            who = line["client_id"] or "", host_of(line["client_address"])
            found[who] = found.get(who, 0) + 1
        return found

    # --- words

    def client(self, client_id: Any, host: Any) -> str:
        """Return the name of a client."""
        return spelled(self._titles.get((str(client_id or ""), str(host))) or client_id or host)

    def topic(self, key: Any) -> str:
        """Return the name of a topic."""
        return spelled(topic_label(key, self.names) or "?")

    # --- filters

    def of_client(self, client_id: Any, host: Any) -> str:
        """Return the filter for a client."""
        if not client_id:
            return f"client.ip == {host}" if host else ""
        text = f"client == {quoted(str(client_id))}"
        alone = self._titles.get((str(client_id), str(host))) == client_id
        return text if alone or not host else f"{text} and client.ip == {host}"

    def of_topic(self, key: Any) -> str:
        """Return the filter for a topic. Names and ids are both tried: messages have one or the
        other."""
        topic_id = topic_id_in(key)
        if topic_id is not None:
            by_id = f"topic.id == {quoted(str(Uuid(topic_id)))}"
            name = self.names.get(topic_id) if self.names is not None else None
            return by_id if name is None else f"({by_id} or topic == {quoted(name)})"
        return f"topic == {quoted(str(key))}" if key else ""

    # --- findings

    def finding(
        self,
        rule: Rule,
        text: str,
        where: str,
        seen: Seen | None = None,
        *,
        count: int | None = None,
        first_ns: int | None = None,
        last_ns: int | None = None,
        severity: Severity | None = None,
        advice: str = "",
        link: str = "",
        number: int | None = None,
        about: Iterable[tuple[str, str]] = (),
        connects: str = "",
    ) -> Finding:
        """Return a finding of a rule; times and count of `seen` unless they are given."""
        if seen is not None:
            count = seen.count if count is None else count
            if seen.first is not None:
                first_ns = seen.first[0] if first_ns is None else first_ns
                number = seen.first[1] if number is None else number
            last_ns = seen.last_ns if last_ns is None else last_ns
        text = text.removesuffix(".")  # of reasons in the words of clients
        if len(where) > MAX_FILTER or has_bounded(where):
            # Names can be as long as 32 KB; the first exchange has to do.
            where = "" if number is None else f"number == {number}"
        entities = tuple(about)
        return Finding(
            rule.name,
            severity or rule.severity,
            text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…",
            1 if count is None else count,
            first_ns,
            last_ns,
            where,
            advice or rule.advice,
            link or rule.link,
            entities,
            number,
            key_of(rule, entities),
            _brief(rule, entities),
            connects if len(connects) <= MAX_FILTER and not has_bounded(connects) else "",
        )


def _brief(rule: Rule, entities: Iterable[tuple[str, str]]) -> str:
    """Return what is said of a finding as a consequence, with the names of entities that are named
    once."""
    text = rule.brief or rule.title
    for kind in ("client", "group", "topic"):
        names = [name for each, name in entities if each == kind]
        text = text.replace(f"{{{kind}}}", listed(names, 2) if names else "")
    return text


def once(make: Callable[[View], Made]) -> Callable[[View], Made]:
    """Decorate a function of a view whose costly result is made once for all detectors."""

    @wraps(make)
    def kept(view: View) -> Made:
        if make not in view.kept:
            view.kept[make] = make(view)
        found: Made = view.kept[make]
        return found

    return kept


@once
def trees_of(view: View) -> list[TreeStory]:
    """Return what happened in each ensemble of ZooKeeper."""
    return view.base.zookeeper.stories()


@once
def ensembles_of(view: View) -> dict[str, str]:
    """Return the name of the ensemble that each server of ZooKeeper belongs to."""
    return {server: story.name for story in trees_of(view) for server in story.servers}


def ensemble_at(server: str, view: View) -> list[tuple[str, str]]:
    """Return what findings say they are about where they are of a server of ZooKeeper. One that
    nobody had a session at belongs to the ensemble of the others, where there is but one."""
    known = ensembles_of(view)
    names = {known[server]} if server in known else set(known.values())
    return [("ensemble", spelled(name)) for name in names] if len(names) == 1 else []


@once
def audit_of(view: View) -> Audit:
    """Return the delivery audit of all groups."""
    from kafkascope.analyzer.statistics.delivery.audit import Audit

    base = view.base
    return Audit(base.delivery, base.groups, base.cluster, view.names)


def places_of(view: View) -> list[tuple[str, list[AuditedPartition]]]:
    """Return the partitions of each group in the audit, in the order of groups."""
    found: dict[str, list[AuditedPartition]] = {}
    for place in audit_of(view).found:
        found.setdefault(place.group, []).append(place)
    return sorted(found.items())


MOST_ABOUT: Final = 20
"""Topics that a finding about a group names."""


def about_group(group: str, topics: Iterable[str]) -> list[tuple[str, str]]:
    """Return the entities of a finding about a group in some topics."""
    named = sorted({spelled(topic) for topic in topics})
    return [("group", spelled(group)), *(("topic", topic) for topic in named[:MOST_ABOUT])]


def all_of(*parts: str) -> str:
    """Join filters by `and`; empty ones are left out."""
    return " and ".join(part for part in parts if part)


def among(field: str, numbers: Iterable[int]) -> str:
    """Return a filter for numbers of a field; three and more in a row become a range."""
    parts: list[str] = []
    for _, run in groupby(enumerate(sorted(set(numbers))), lambda each: each[1] - each[0]):
        row = [number for _, number in run]
        parts += [f"{row[0]}..{row[-1]}"] if len(row) > 2 else map(str, row)
    return f"{field} in {{{', '.join(parts)}}}" if parts else ""


def ended_at(line: Line) -> int:
    """Return when the last packet of a connection came; 0 where nobody knows."""
    return int(line["opened"] or 0) + int(line["life"] or 0)


def closed_at(line: Line) -> int:
    """Return when a connection was closed first, by whoever it was: the other side may close its
    half much later. Of one that nobody closed: see `ended_at`."""
    return int(line["ended"] or ended_at(line))


def listed(values: Iterable[Any], most: int = MOST_NAMED, between: str = ", ") -> str:
    """Return the first few of a list, and how many more there are."""
    found = [spelled(value) for value in values]
    rest = len(found) - most
    return Spelled(between.join(found[:most]) + (f" and {rest} more" if rest > 0 else ""))
