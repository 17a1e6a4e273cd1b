"""Input of detectors: the statistics, names, and words for texts and filters."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property, wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.findings.counting import Occurrences
from kafkascope.analyzer.findings.filters import all_of, api_is, quoted
from kafkascope.analyzer.findings.limits import LIMITS, FindingLimits
from kafkascope.analyzer.findings.model import Finding, Rule, key_of
from kafkascope.analyzer.findings.rules import RULES
from kafkascope.analyzer.findings.words import Spelled, listed, spelled
from kafkascope.analyzer.identity import ClientKey, host_of, labels
from kafkascope.analyzer.merging.measures import Measures
from kafkascope.analyzer.merging.tables import OTHERS, by_key
from kafkascope.analyzer.model import Exchange, Severity
from kafkascope.analyzer.ranks import has_bounded
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.model import topic_id_in, topic_label
from kafkascope.captures.model import Closed, Opened
from kafkascope.dissectors.values import Uuid

if TYPE_CHECKING:
    from kafkascope.analyzer.statistics.clients import Clients
    from kafkascope.analyzer.statistics.cluster.cluster import Cluster
    from kafkascope.analyzer.statistics.connections import Connections
    from kafkascope.analyzer.statistics.delivery.audit import Audit
    from kafkascope.analyzer.statistics.delivery.delivery import Delivery
    from kafkascope.analyzer.statistics.delivery.model import AuditedPartition
    from kafkascope.analyzer.statistics.errors import Errors
    from kafkascope.analyzer.statistics.groups.groups import Groups
    from kafkascope.analyzer.statistics.groups.model import Member, Story
    from kafkascope.analyzer.statistics.journeys.applications import Applications
    from kafkascope.analyzer.statistics.model import Line
    from kafkascope.analyzer.statistics.producers.producers import Producers
    from kafkascope.analyzer.statistics.topics import Topics
    from kafkascope.analyzer.statistics.traffic import Latency, SizesOf, Throughput
    from kafkascope.analyzer.statistics.zookeeper.story import TreeStory
    from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.schemas.decoding import Payloads

_CAPTURE: Final = re.compile(r"\b(this|the|whole) capture\b")
"""In sentences, in place of which a log stands where there is one."""

Made = TypeVar("Made")

__all__ = ["Client", "Counts", "DetectorInput", "Exchange", "Finding", "Row"]


class Client(Spelled):
    """The name of a client, with what selects its exchanges."""

    __slots__ = ("filter", "key")
    filter: str
    key: ClientKey


GapCause = Literal["", "mirror", "damage", "one-way"]
"""Why bytes are missing, where the capture shows it: its packets were cut before they came to the
capturing host, or the file is damaged."""


class StatisticsInput(NamedTuple):
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
    map: Applications


def client_key(line: Line) -> ClientKey:
    """Return the client of a connection: its id, or an empty one, and its host."""
    return line["client_id"] or "", host_of(line["client_address"])


def unreadable(line: Line) -> bool:
    """Return whether a line is of a connection whose TLS cannot be decrypted: gaps in it do not
    matter."""
    return bool(line["tls_error"]) and line["phase"] == "opaque"


class DetectorInput:
    """Input of the detectors at one moment; made anew for each report."""

    def __init__(
        self,
        base: StatisticsInput,
        names: TopicNames | None,
        first_ns: int | None,
        last_ns: int | None,
        release: str = "",
        clients: Clients | None = None,
    ) -> None:
        """`release`: the requested Kafka release; empty for none. `clients`: those of the whole of
        which this is a piece, so that each has one name."""
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
        self.of_logs = False
        """All exchanges come from request logs of brokers."""
        self.kept: dict[Any, Any] = {}
        """Results of functions with `once`."""

    # --- what several detectors read

    @staticmethod
    def once(make: Callable[[DetectorInput], Made]) -> Callable[[DetectorInput], Made]:
        """Decorate a function of the input whose costly result is made once for all detectors."""

        @wraps(make)
        def kept(view: DetectorInput) -> Made:
            if make not in view.kept:
                view.kept[make] = make(view)
            found: Made = view.kept[make]
            return found

        return kept

    @cached_property
    def stories(self) -> list[Story]:
        """Stories of all groups that have one."""
        found = map(self.base.groups.story, self.base.groups.names())
        return [story for story in found if story is not None]

    @cached_property
    def members(self) -> list[Member]:
        """Members of all groups."""
        return [member for story in self.stories for member in story.members]

    @cached_property
    def groups_of(self) -> dict[ClientKey, list[str]]:
        """The groups of each client that fetched as a member."""
        belongs = self.base.delivery.belongs.items()
        return by_key(
            ((str(who[0] or ""), str(who[1])), str(group)) for (group, *who), _ in belongs
        )

    @cached_property
    def audit(self) -> Audit:
        """The delivery audit of all groups."""
        from kafkascope.analyzer.statistics.delivery.audit import Audit

        return Audit(self.base.delivery, self.base.groups, self.base.cluster, self.names)

    @cached_property
    def audited(self) -> list[tuple[str, list[AuditedPartition]]]:
        """The partitions of each group in the audit, in the order of groups."""
        return sorted(by_key((place.group, place) for place in self.audit.found).items())

    @cached_property
    def trees(self) -> list[TreeStory]:
        """History of each ZooKeeper ensemble."""
        return self.base.zookeeper.stories()

    def ensemble_at(self, server: str) -> dict[str, str]:
        """Return the ensemble that findings about a ZooKeeper server name. A server without a
        session belongs to the ensemble of the others, where there is but one."""
        names = {tree.name for tree in self.trees if server in tree.servers}
        names = names or {tree.name for tree in self.trees if tree.servers}
        return {"ensemble": spelled(*names)} if len(names) == 1 else {}

    def is_broker(self, client_id: Any, host: Any) -> bool:
        """Return whether it is a broker that talks to others."""
        return (str(client_id or ""), str(host)) in self._brokers

    @cached_property
    def _brokers(self) -> set[ClientKey]:
        return {
            usage.identity.key
            for usage in self.base.clients.usages()
            if "broker" in usage.total.roles
        }

    @cached_property
    def lines(self) -> list[Line]:
        """The table of connections that are counted one by one: findings are about connections that
        can be named."""
        return [line for line in self._lines if line["connection"] != OTHERS]

    @cached_property
    def _lines(self) -> list[Line]:
        return self.base.connections.rows()

    def gap_bytes(self) -> int:
        """Return bytes that are missing of all connections, also of those that are counted
        together."""
        return sum(line["gap_bytes"] or 0 for line in self._lines if not unreadable(line))

    @cached_property
    def gapped(self) -> set[int]:
        """The connections of which bytes are missing: what was not captured looks like what was not
        sent, and bytes of a message like the head of another."""
        return {line["connection"] for line in self.lines if line["gap_bytes"]}

    def has_gaps(self, group: str) -> bool:
        """Return whether bytes of a group's members are missing from the capture."""
        story = self.base.groups.story(group)
        members = {(each.client_id or "", each.host) for each in story.members} if story else ()
        gapped = self.gapped
        return any(
            line["connection"] in gapped and client_key(line) in members for line in self.lines
        )

    @cached_property
    def lines_of(self) -> dict[ClientKey, list[Line]]:
        """The connections that each client used: a scan of all lines for each client would take
        their product."""
        return by_key((client_key(line), line) for line in self.lines)

    # --- words

    def client(self, client_id: Any, host: Any) -> Client:
        """Return the name of a client, with its filter."""
        key = str(client_id or ""), str(host)
        title = self._titles.get(key)
        client = Client(spelled(title or client_id or host))
        client.key = key
        client.filter = f"client.ip == {host}" if host else ""
        if client_id:
            by_id = f"client == {quoted(key[0])}"
            client.filter = by_id if title == client_id else all_of(by_id, client.filter)
        return client

    def clients(self, keys: Iterable[tuple[Any, Any]]) -> list[Client]:
        """Return the names of some clients, in order."""
        return sorted({self.client(*key) for key in keys})

    def clients_at(self, lines: Iterable[Line]) -> list[Client]:
        """Return the names of the clients of some connections, in order."""
        return self.clients(map(client_key, lines))

    def topic(self, key: Any) -> str:
        """Return the name of a topic."""
        return spelled(topic_label(key, self.names) or "?")

    def topics(self, keys: Iterable[Any]) -> list[str]:
        """Return the names of some topics, in order."""
        return sorted({self.topic(key) for key in keys})

    def about_group(self, group: str, topics: Iterable[str]) -> dict[str, str | Iterable[str]]:
        """Return the entities of a finding about a group in some topics."""
        named = sorted({spelled(topic) for topic in topics})
        return {"group": spelled(group), "topic": named[: LIMITS.topics]}

    # --- filters

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
        name: str,
        text: str,
        where: str = "",
        seen: Occurrences | None = None,
        *,
        client: Client | None = None,
        api: Any = "",
        broker: Any = "",
        topic: Any = "",
        group: str = "",
        count: int | None = None,
        span: tuple[int | None, int | None] = (None, None),
        severity: Severity | None = None,
        advice: str = "",
        case: str = "",
        link: str = "",
        number: int | None = None,
        about: Mapping[str, str | Iterable[str]] = {},
        connects: str = "",
        lines: Collection[Line] = (),
    ) -> Finding:
        """Return a finding of a rule by its name. `client`, `group`, `api`, `broker` and `topic`
        (its key) are entities, and select its exchanges together with `where`. Count and `span` (of
        times) are those of `seen`, or of the connections of `lines`, unless they are given. `case`:
        chooses one of the rule's other fixes. `about`: more entities by their kind."""
        rule = RULES[name]
        usual: tuple[Any, ...] = (1, None, None, None)
        if seen is not None:
            first, first_number = seen.first or (None, None)
            usual = seen.count, first, seen.last_ns, first_number
        elif lines:
            opened = [line["opened"] for line in lines if line["opened"] is not None]
            usual = len(lines), min(opened, default=None), max(opened, default=None), None
        counted, first_ns, last_ns, number = (
            other if own is None else own
            for own, other in zip((count, *span, number), usual, strict=True)
        )
        text = text.removesuffix(".")  # of reasons in the words of clients
        if self.of_logs:
            text = _CAPTURE.sub(r"\1 log", text).replace("were captured", "were logged")
        where = all_of(
            client.filter if client is not None else "",
            f"group == {quoted(group)}" if group else "",
            api_is(api),
            f"broker == {quoted(str(broker))}" if broker else "",
            where,
            self.of_topic(topic),
        )
        if len(where) > LIMITS.filter_chars or has_bounded(where):
            # Names can be as long as 32 KB; the first exchange has to do.
            where = "" if number is None else f"number == {number}"
        named: dict[str, str | Iterable[str]] = {} if client is None else {"client": client}
        named |= {"group": spelled(group)} if group else {}
        named |= {"api": str(api)} if api else {}
        named |= {"broker": spelled(broker)} if broker else {}
        named |= {"topic": self.topic(topic)} if topic != "" else {}
        entities = tuple(
            (kind, name)
            for kind, names in {**named, **about}.items()
            for name in ((names,) if isinstance(names, str) else islice(names, LIMITS.entities))
        )
        return Finding(
            rule.name,
            severity or rule.severity,
            text if len(text) <= LIMITS.text_chars else f"{text[: LIMITS.text_chars - 1]}…",
            counted,
            first_ns,
            last_ns,
            where,
            rule.advices[case] if case else advice or rule.advice,
            link or rule.link,
            entities,
            number,
            key_of(rule, entities),
            _brief(rule, entities),
            connects if len(connects) <= LIMITS.filter_chars and not has_bounded(connects) else "",
        )


class Counts(Measures):
    """Base of what detectors count. It is in declared tables, so that merging, writing down and
    limits are the same for all. `detectors` has its APIs."""

    __slots__ = ("__dict__",)
    payloads: Payloads | None = None
    """Decoder of keys and values, where it is needed; no part of the state."""
    limits: FindingLimits = LIMITS
    """No part of the state, either."""

    def add(self, batch: ExchangeBatch) -> None:
        """Take in exchanges: see `statistics.feed`."""
        for row, exchange in batch:
            self.add_exchange(row, exchange)

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        """Take in an exchange, where each is looked at by itself."""

    def saw(self, event: Opened | Closed) -> None:
        """Take in the beginning or end of a connection."""

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        """Yield the findings."""
        raise NotImplementedError


def _brief(rule: Rule, entities: Iterable[tuple[str, str]]) -> str:
    """Return the text of a finding as a consequence, with the names of its entities."""
    text = rule.brief or rule.title
    for kind in ("client", "group", "topic"):
        names = [name for each, name in entities if each == kind]
        text = text.replace(f"{{{kind}}}", listed(names, 2) if names else "")
    return text


def brokers_in(lines: Iterable[Line]) -> list[str]:
    """Return the addresses of the brokers of some connections, in order."""
    return sorted({spelled(line["broker_address"]) for line in lines})


def hosts_in(lines: Iterable[Line]) -> list[str]:
    """Return the hosts of the clients of some connections, in order."""
    return sorted({host_of(line["client_address"]) for line in lines})


def ended_at(line: Line) -> int:
    """Return when the last packet of a connection came; 0 where unknown."""
    return int(line["opened"] or 0) + int(line["life"] or 0)


def closed_at(line: Line) -> int:
    """Return when either side first closed a connection: the other may close its half much later.
    Of one that was not closed: see `ended_at`."""
    return int(line["ended"] or ended_at(line))
