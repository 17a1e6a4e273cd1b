"""Names of applications: which client ids are one application, and why.

People give an application one name and its clients ids that differ by a number (`billing-1`), by a
random part (a pod, a UUID), or by a role (`enrich-consumer`, `enrich-producer`). Libraries make ids
up where people give none (`rdkafka`, `producer-1`, `consumer-GROUP-1`): these name no application,
so the group, the transactional id, the user or the host does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.identity import Identity
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.journeys.model import By

Stem: TypeAlias = tuple[str, ...]
"""Parts of a name without what differs between the clients of one application."""

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ADDRESS: Final = re.compile(
    r"\bip(?:-\d{1,3}){4}(?:\.ec2\.internal|\.[a-z]+-[a-z]+-\d\.compute\.internal)?"
)
"""A host of AWS, by its address."""
# StreamThread, StateUpdater and GlobalStreamThread of org.apache.kafka.streams.processor.internals;
# before them stands `client.id`, by default `application.id` and a UUID.
_STREAMS: Final = re.compile(
    r"(.+?)(?:-" + _UUID.pattern + r")?"
    r"-(?:StreamThread-\d+|StateUpdater-\d+|GlobalStreamThread|CleanupThread)\b.*"
)
_STREAMS_ADMIN: Final = re.compile(r"(.+?)-" + _UUID.pattern + r"-(?:admin|global-consumer)")
# ConnectUtils and Worker of org.apache.kafka.connect.runtime: clients of a worker begin with its
# `group.id`. MirrorMaker 2 is three connectors, whose clients have the flow in front since 3.5, in
# workers of the group `SOURCE-mm2`.
_CONNECTOR: Final = re.compile(
    r"connector-(?:consumer|producer|dlq-producer|adminclient|admin)-(.+)-\d+"
)
_WORKER: Final = re.compile(r"(connect-.+)-(?:configs|offsets|status|statuses|shared-admin)")
STORES: Final = frozenset(("configs", "offsets", "status", "statuses"))
_MIRROR: Final = re.compile(
    r".+->.+\|Mirror.*|connector-.+-Mirror(?:Source|Checkpoint|Heartbeat)Connector-\d+"
    r"|connect-.+-mm2-.+|.+-mm2-.+->.+"
)
MIRROR_MAKER: Final = "MirrorMaker"
# Without a group the name is "null" (ConsumerConfig.maybeOverrideClientId).
_JAVA_CONSUMER: Final = re.compile(r"consumer-(?!\d+$|null-\d+$)(.+)-\d+")
_DEFAULT: Final = re.compile(
    r"(?:rdkafka|librdkafka|sarama|kgo|kafkajs|rskafka|pykafka|kafka-rust|ruby-kafka|waterdrop"
    r"|kafka-node-client|no-kafka-client|faust|goka|watermill|kafka_ex|brod|(?:confluent-)?kafka-(?:python|go|dotnet|net)"
    r"|aiokafka|(?:node|ruby|php)-rdkafka|karafka|adminclient)"
    r"(?:[-_ ](?:producer|consumer|admin|client|v?[\d.]+(?:\.?(?:dev|rc|post|b)\d*)?))*"
    r"|(?:consumer|consumer-null|producer|adminclient|client|kafka|default)(?:[-_]?\d+)?",
    re.IGNORECASE,
)
_LIBRARY: Final = re.compile(r"aiokafka|kafka-python|sarama|kgo|kafkajs|rdkafka|ruby-kafka")
_PROGRAM: Final = re.compile(r"(.+?)(?:@\S+)? \(github\.com/.*\)")
"""Client id of segmentio's kafka-go: program and host."""

_BETWEEN: Final = "-_.:@/|#+ \t"
_SEPARATORS: Final = re.compile(r"([-_.:@/|#+\s]+)")
_STARS: Final = re.compile(r"\*(?:[-_.:@/|#+\s]*\*)+")
_WORD_AND_NUMBER: Final = re.compile(r"([A-Za-z]+)(\d{1,6})")
_NUMBER: Final = re.compile(r"(?<!\d)\d{1,3}(?!\d)")
_RELEASE: Final = re.compile(r"[vV]\d+")
_HEX: Final = re.compile(r"[0-9a-fA-F]+")
_POD: Final = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{4,10}")
"""Kubernetes makes its suffixes of these letters (`rand.SafeEncodeString`)."""
POD: Final = 5
_CAPITALS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MIXED: Final = re.compile(r"[A-Za-z]+|\d+")
VARIABLE: Final = "*"
ROLES: Final = frozenset(
    (
        *("consumer", "producer", "reader", "writer", "source", "sink", "input", "output"),
        *("in", "out", "admin", "adminclient", "client", "subscriber", "publisher", "listener"),
        *("sender", "receiver", "pub", "sub", "cons", "prod", "rx", "tx", "src", "dst", "dest"),
        *("read", "write", "fetcher", "poller", "ingress", "egress"),
    )
)

ONE: Final = "one client ID"
NUMBERED: Final = "client IDs that differ by a number or a random part"
ROLE: Final = "client IDs that differ by their role"
LETTER: Final = "client IDs that differ by a letter, with the same topics and group"
STREAMS: Final = "threads of one Kafka Streams application"
CONNECT: Final = "tasks of one connector"
WORKER: Final = "clients of Kafka Connect workers"
MIRROR: Final = "connectors and workers of MirrorMaker"
GROUP: Final = "default client IDs, same group"
TRANSACTIONAL: Final = "default client IDs, same transactional ID"
USER: Final = "default client IDs, same user"
HOST: Final = "default client IDs, same host and library"
MADE_UP: Final = frozenset((GROUP, TRANSACTIONAL, USER, HOST))
_FRAMEWORKS: Final = (
    *((_MIRROR, MIRROR), (_STREAMS, STREAMS), (_STREAMS_ADMIN, STREAMS)),
    *((_CONNECTOR, CONNECT), (_WORKER, WORKER)),
)
"""Patterns of client ids, of which the first group is the name, with their rules."""
TOOLS: Final = frozenset((("console",), ("kafka", "console"), ("perf", "client")))
"""Kafka's own `console-consumer` and `console-producer` are two programs."""


@dataclass(slots=True)
class ClientUse:
    """What a client was seen to do."""

    identity: Identity
    groups: set[str] = field(default_factory=set)
    """Whose member it was, or for which it committed offsets in transactions."""
    transactional_ids: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)

    @property
    def client_id(self) -> str:
        return self.identity.client_id or ""

    @property
    def library(self) -> str:
        """The library; aiokafka and others do not name themselves but in their client ids."""
        match = None if self.identity.software else _LIBRARY.match(self.client_id)
        return match[0] if match else self.identity.software

    @property
    def program(self) -> tuple[str, str, str]:
        return self.identity.host, self.library, self.identity.user


def _all(name: str) -> Any:
    """Return the property of what all clients of an application have together."""
    return property(lambda self: {each for use in self.uses for each in getattr(use, name)})


@dataclass(slots=True)
class NamedClients:
    """Clients that are one application."""

    stem: Stem
    rule: str
    uses: list[ClientUse] = field(default_factory=list)

    groups, transactional_ids = _all("groups"), _all("transactional_ids")
    writes, reads = _all("writes"), _all("reads")

    @property
    def client_ids(self) -> set[str]:
        return {use.client_id for use in self.uses}

    @property
    def users(self) -> set[str]:
        return {use.identity.user for use in self.uses} - {""}


def applications(uses: Iterable[ClientUse], by: By = "application") -> dict[str, NamedClients]:
    """Return the applications that clients are, by name. `by`: what else of them is a name."""
    if by == "application":
        return _applications(uses)
    named: dict[str, NamedClients] = {}
    for use in uses:
        who = use.identity
        own = min(use.groups, default=who.client_id) if by == "group" else getattr(who, by)
        name = own or who.host
        one = named.setdefault(name, NamedClients((name,), f"same {by.replace('_', ' ')}"))
        one.uses.append(use)
    return dict(sorted(named.items()))


def _applications(uses: Iterable[ClientUse]) -> dict[str, NamedClients]:
    found: dict[tuple[Stem, bool], NamedClients] = {}
    for use in sorted(uses, key=lambda each: (each.client_id, *each.identity[1:])):
        stem, rule = stem_of(use)
        named = found.setdefault((stem, rule in MADE_UP), NamedClients(stem, rule))
        named.uses.append(use)
    joined = [part for named in found.values() for part in _stages(named)]
    _join_streams(joined)
    joined = _adopted(joined)
    for rule, shorter, agree in (
        (WORKER, _without_store, _is_one_worker),
        (ROLE, _without_role, _is_one_program),
        (LETTER, _without_letter, _same_use),
    ):
        joined = _joined(joined, rule, shorter, agree)
    stems = Counter(named.stem for named in joined)
    names: dict[str, NamedClients] = {}
    for named in joined:
        if named.rule == ONE and len(named.client_ids) > 1:
            named.rule = NUMBERED
        elif named.rule == ONE and stems[named.stem] > 1:
            named.stem = (next(iter(named.client_ids)),)
        names[_free(_name(named), named, names)] = named
    return names


def stem_of(use: ClientUse) -> tuple[Stem, str]:
    """Return what the clients of an application have in common, and by which rule."""
    client_id = use.client_id.strip()
    for pattern, rule in _FRAMEWORKS:
        if match := pattern.fullmatch(client_id):
            return (match[1] if match.lastindex else MIRROR_MAKER,), rule
    if match := _PROGRAM.fullmatch(client_id):
        client_id = match[1]
    if match := _JAVA_CONSUMER.fullmatch(client_id):
        return _stem(match[1]), GROUP
    made_up = any(client_id == f"producer-{each}" for each in use.transactional_ids)
    if not (made_up or _DEFAULT.fullmatch(client_id)) and (parts := parts_of(client_id)):
        return parts, ONE
    if len(use.groups) == 1:
        return _stem(*use.groups), GROUP
    if use.transactional_ids:
        return _stem(min(use.transactional_ids)), TRANSACTIONAL
    if use.identity.user:
        return (use.identity.user,), USER
    return ("", use.identity.host, use.library), HOST


def _stem(name: str) -> Stem:
    return parts_of(name) or (name,)


def parts_of(name: str) -> Stem:
    """Return a name's parts without numbers and random ones at its ends; inside, there is a mark
    in their place. Empty where nothing else is left."""
    parts = [part for _, part in _constants(name)]
    constant = [place for place, part in enumerate(parts) if part != VARIABLE]
    return tuple(parts[constant[0] : constant[-1] + 1]) if constant else ()


def _constants(name: str) -> list[tuple[str, str]]:
    """Return a name's parts, each with the separator before it; a mark is in place of numbers and
    random parts."""
    found: list[tuple[str, str]] = []
    before = ""
    name = _ADDRESS.sub(VARIABLE, _UUID.sub(VARIABLE, name))
    for place, word in enumerate(_SEPARATORS.split(name)):
        if place % 2:
            before = word
            continue
        for part in _CAPITALS.split(word) if word.isalpha() else (word,):
            # The last part of a pod's name has no digits as often as not.
            random = found and found[-1][1] == VARIABLE
            pod = random and len(part) == POD and _POD.fullmatch(part)
            if part:
                found.append((before, VARIABLE if pod else _constant(part)))
                before = ""
    return found


def _constant(part: str) -> str:
    """Return what all clients of an application have in common of a part of their ids."""
    if part == VARIABLE or part.isdigit() or is_random(part):
        return VARIABLE
    match = _WORD_AND_NUMBER.fullmatch(part)
    if match is None or _RELEASE.fullmatch(part):
        return part
    # Of "consumer2" there may be a "consumer", too; "s3" is no second "s".
    return match[1] if len(match[1]) > 2 else match[1] + VARIABLE


def is_random(part: str) -> bool:
    """Return whether nobody would call something so: hexadecimal, or letters and digits mixed."""
    digits = sum(map(str.isdigit, part))
    if _HEX.fullmatch(part) and len(part) >= 4 and (digits or len(part) >= 8):
        return not _WORD_AND_NUMBER.fullmatch(part) or len(part) >= 6
    if _POD.fullmatch(part) and digits:
        return not _WORD_AND_NUMBER.fullmatch(part)
    runs = len(_MIXED.findall(part))
    return len(part) >= 4 and ((runs >= 3 and digits >= 2) or runs >= 5)


# --- joining what stems keep apart


def _stages(named: NamedClients) -> list[NamedClients]:
    """Return clients whose ids differ by a number as several applications where one reads what
    another writes: stages of a chain. Clients that have a topic in common stay together. Groups
    that differ by a number (etl1, etl2) are several where no topic is in two of them."""
    groups = named.rule == GROUP and len({_NUMBER.sub("", each) for each in named.groups}) == 1
    if named.rule != ONE and not groups:
        return [named]
    uses = ((max(use.groups) if groups else use.client_id, use) for use in named.uses)
    stages: list[NamedClients] = []
    for own, those in by_key(uses).items():
        whole = NamedClients((own,) if groups else named.stem, named.rule, those)
        for stage in list(stages):
            if stage.writes & whole.writes or stage.reads & whole.reads:
                stages.remove(stage)
                whole.uses = stage.uses + whole.uses
        stages.append(whole)
    return [named] if len(stages) == 1 or (not groups and _apart(stages)) else stages


def _join_streams(found: list[NamedClients]) -> None:
    """Give instances of Kafka Streams, which may have a `client.id` each, the name of their group:
    that is the `application.id`. The first one has the clients of all."""
    instances: dict[Stem, NamedClients] = {}
    for named in found:
        if named.rule == STREAMS and len(named.groups) == 1:
            named.stem = tuple(named.groups)
            first = instances.setdefault(named.stem, named)
            if first is not named:
                first.uses, named.uses = first.uses + named.uses, []


def _adopted(found: list[NamedClients]) -> list[NamedClients]:
    """Give producers with default client ids to the one application of the same host, library and
    user whose consumers have default ids, too. One that reads what they write is another."""
    owners = by_key(
        (use.program, named)
        for named in found
        if named.rule == GROUP
        for use in named.uses
        if use.reads
    )
    for named in found:
        if named.rule in (HOST, USER):
            uses, named.uses = named.uses, []
            for use in uses:
                first, *others = owners.get(use.program, [named])
                only = all(each is first for each in others) and use.writes and not use.reads
                (first if only and _apart((first, use)) else named).uses.append(use)
    return [named for named in found if named.uses]


def _apart(those: Iterable[NamedClients | ClientUse]) -> bool:
    """Return whether none reads what another writes."""
    all_ = list(those)
    return not any(one.writes & other.reads for one in all_ for other in all_ if one is not other)


def _joined(
    found: list[NamedClients],
    rule: str,
    shorter: Callable[[Stem], Stem],
    agree: Callable[[list[NamedClients]], bool],
) -> list[NamedClients]:
    """Join applications whose stems are the same once shortened, where they agree."""
    out = []
    pairs = ((shorter(named.stem) or named.stem, named) for named in found)
    for stem, those in by_key(pairs).items():
        if len(those) == 1 or not agree(those):
            out += those
            continue
        uses = [use for named in those for use in named.uses]
        out.append(NamedClients(stem[:-1] if stem[-1] == VARIABLE else stem, rule, uses))
    return out


def _without_store(stem: Stem) -> Stem:
    return stem[:-1] if stem[-1] in STORES else stem


def _without_role(stem: Stem) -> Stem:
    shorter = tuple(part for part in stem if part.lower() not in ROLES)
    return shorter if len(shorter) == len(stem) - 1 and shorter not in TOOLS else stem


def _without_letter(stem: Stem) -> Stem:
    return (*stem[:-1], VARIABLE) if len(stem) > 1 and len(stem[-1]) == 1 else stem


def _is_one_program(those: list[NamedClients]) -> bool:
    libraries = {use.library.partition(" ")[0] for named in those for use in named.uses} - {""}
    users = {user for named in those for user in named.users}
    return len(libraries) < 2 and len(users) < 2 and _apart(those)


def _is_one_worker(those: list[NamedClients]) -> bool:
    """Return whether each keeps what it knows in a topic of its own, as a worker does."""
    return all(each.writes == each.reads and not each.groups for each in those) and _apart(those)


def _same_use(those: list[NamedClients]) -> bool:
    uses = [(named.groups, named.writes, named.reads) for named in those]
    return all(each == uses[0] for each in uses)


# --- what to call them


def _name(named: NamedClients) -> str:
    """Return what the client ids have in common, as it is written in them."""
    ids = sorted(named.client_ids)
    if len(named.stem) == 1 and named.rule in (STREAMS, CONNECT, WORKER, MIRROR, USER):
        return named.stem[0]
    if named.rule == HOST:
        host, library = named.stem[1], named.stem[2].partition(" ")[0]
        return ids[0] if len(ids) == 1 and ids[0] else f"{library or 'clients'}@{host}"
    source = ids[0]
    if named.rule in (GROUP, TRANSACTIONAL):
        source, *others = sorted(named.groups) or sorted(named.transactional_ids) or ids
        if named.rule == GROUP and not others:
            return source
    # From the first to the last of its words, with what stands between them.
    words = [part.strip(VARIABLE) for part in named.stem if part != VARIABLE]
    begin = source.find(words[0])
    end = source.rfind(words[-1]) + len(words[-1])
    inner = source[begin:end] if 0 <= begin < end else "-".join(words)
    if VARIABLE not in named.stem or len(ids) == 1:
        return inner
    text = "".join(chain.from_iterable(_constants(source)))
    return _STARS.sub(VARIABLE, text).strip(_BETWEEN + VARIABLE)


def _free(name: str, named: NamedClients, names: dict[str, NamedClients]) -> str:
    """Return the name, with what sets it apart where another application has it."""
    more = (*sorted(named.users), *sorted({use.identity.host for use in named.uses}))
    forms = chain([name], (f"{name} ({word})" for word in chain(more, count(2))))
    return next(each for each in forms if each not in names)
