"""Findings, their rules, and the commands that show their evidence. Values only."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.statistics.model import Column, Line, columns

RANK: Final[dict[Severity, int]] = {"error": 0, "warning": 1, "note": 2, "chat": 3}
"""Worst first. error: something does not work; warning: degraded, or about to fail; note: worth
knowing; chat: normal, and often mistaken for a problem."""


class Rule(NamedTuple):
    """A kind of finding."""

    name: str
    severity: Severity
    """The usual severity; a finding may be milder."""
    title: str
    """The symptom, for lists of rules: a noun phrase."""
    advice: str
    """The fix in the imperative, with the names of settings; then the cause."""
    link: str = ""
    """The name of an error, for `kafkascope error`."""
    brief: str = ""
    """The text as a consequence, in the line below the cause: `{n} lookup|{n} lookups` for counts
    that add up, or a phrase with entities such as `group {group} rebalanced`."""
    subject: tuple[str, ...] = ()
    """Kinds of entities that identify a finding of this rule in later captures; empty: `STABLE`."""
    limits: tuple[str, ...] = ()
    """Names of the thresholds that the detector uses, see `limits`."""
    errors: frozenset[int] = frozenset()
    """Error codes that the finding is about: its exchanges with one of them are not `expected`."""
    advices: Mapping[str, str] = {}
    """Advice for special cases, by case."""
    standing: bool = False
    """Is about the whole capture, not a time: listed after findings of the same severity."""
    touchable: bool = True
    """Whether faults of our own proxy can cause it: see `tampered`."""
    detector: str = ""
    """Module of the detector."""


@dataclass(slots=True, unsafe_hash=True)  # Not frozen, as `Exchange`, but never changed.
class Finding:
    """An observation about the traffic."""

    name: str
    """Name of its rule."""
    severity: Severity
    text: str
    count: int
    first_ns: int | None
    last_ns: int | None
    filter: str
    """Selects its exchanges; empty if it is about no exchange."""
    advice: str
    link: str = ""
    entities: tuple[tuple[str, str], ...] = ()
    """Its subjects: ("client", "orders-svc"), ("topic", "orders")..."""
    number: int | None = None
    """Number of the first exchange."""
    key: str = ""
    """Rule and subject, without times, ports and counts: the same in later captures."""
    brief: str = ""
    """Its text as a consequence of another finding, see `Rule.brief`."""
    connects: str = ""
    """Selects its connections in `stats connections`, where some have no exchange."""
    because: tuple[str, ...] = ()
    """Ids of the findings that explain it; empty: it is a cause itself."""

    @property
    def id(self) -> str:
        """Equal for equal findings: 12 hexadecimal digits."""
        parts = (self.name, self.text, self.filter, self.count, self.first_ns, self.last_ns)
        return blake2b(repr((parts, self.entities)).encode(), digest_size=6).hexdigest()

    def is_within(self, begin_ns: int | None, end_ns: int | None) -> bool:
        """Return whether it overlaps a time range; without times it overlaps all of them."""
        late = end_ns is not None and self.first_ns is not None and self.first_ns >= end_ns
        early = begin_ns is not None and self.last_ns is not None and self.last_ns < begin_ns
        return not late and not early

    def line(self) -> Line:
        """Return the finding as a line of a table."""
        return {
            "severity": self.severity,
            "rank": RANK[self.severity],
            "name": self.name,
            "text": self.text,
            "count": self.count,
            "first": self.first_ns,
            "last": self.last_ns,
            "filter": self.filter,
            "connects": self.connects,
            "advice": self.advice,
            "link": self.link,
            "entities": [f"{kind}={name}" for kind, name in self.entities],
            "number": self.number,
            "id": self.id,
            "key": self.key,
            "because": list(self.because),
        }


COLUMNS: Final = (
    Column("severity", by="rank"),
    *columns(
        "name count first last number text (filter) (connects) (advice) (link) (entities) (id) "
        "(key) (because)"
    ),
)


STABLE: Final = (
    "client",
    "user",
    "group",
    "topic",
    "node",
    "broker",
    "host",
    "txn",
    "api",
    "error",
)
"""Kinds of entities that identify a finding in later captures. Connections, members and partitions
do not last."""


def key_of(rule: Rule, entities: Iterable[tuple[str, str]]) -> str:
    """Return the rule and its subjects: `unknown-topic client=orders topic=oders`."""
    kinds = rule.subject or STABLE
    subjects = {f"{kind}={_lasting(kind, name)}" for kind, name in entities if kind in kinds}
    return " ".join((rule.name, *sorted(subjects)))


def _lasting(kind: str, name: str) -> str:
    """Return the lasting part of a name: the host of a broker, the id of a client."""
    if kind == "broker":
        return name.rpartition(":")[0] or name
    if kind == "client":
        return name.partition("@")[0] or name
    return name


def order(finding: Finding, severity: Severity | None = None) -> tuple[int, int, int, str, str]:
    """Return a sort key: worst, earliest, and most frequent first. `severity`: the worst of the
    finding's consequences."""
    rank = RANK[severity or finding.severity]
    first = -1 if finding.first_ns is None else finding.first_ns
    return rank, first, -finding.count, finding.name, finding.text


def exchanges_command(finding: Finding, source: str) -> str:
    """Return the command that lists its exchanges. `source`: inputs as words of a shell."""
    return f"kafkascope ls {source} -Y {shlex.quote(finding.filter)}"


def connections_command(finding: Finding, source: str) -> str:
    """Return the command that lists its connections."""
    return f"kafkascope connections {source} -Y {shlex.quote(finding.connects)}"
