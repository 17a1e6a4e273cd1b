"""Holds a filter against frames: first against the head alone, then, where that is not enough,
against the whole frame. The language is the display filter's (analyzer.filter).

A rule sees one frame while it passes: a request, or a response with its request. What only a
whole capture tells (numbers, findings, marks) it never knows, and of bodies it knows what the
declarations have. A filter that can match no frame is refused when the rule is made (`refusal`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product
from math import prod
from typing import Any, Final, Literal, TypeAlias

from kafkascope.analyzer.bodies.facts import attributes
from kafkascope.analyzer.filter.backends.exchange import scoped
from kafkascope.analyzer.filter.bind import And, Bound, Not, Or, Search, Test, fields_of, leaves
from kafkascope.analyzer.filter.fields import COLUMNS, DECODED, FIELDS, Teller, fields_from
from kafkascope.analyzer.filter.known import NOTHING, Known
from kafkascope.analyzer.filter.language import Filter, bind
from kafkascope.analyzer.filter.message import OFFSETS
from kafkascope.analyzer.filter.paths import of_message
from kafkascope.analyzer.filter.saved import spelled
from kafkascope.dissectors.registry import APIS, layout_of
from kafkascope.proxy.limits import LIMITS
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT

Kind: TypeAlias = Literal["request", "response"]
# Of an API's key, a version and a side: whether something can be done to such frames.
CanHarm: TypeAlias = Callable[[int, int, int], bool]
# Of the same: why nothing can be done; empty where nobody knows more.
Unable: TypeAlias = Callable[[int, int, int], str]

KINDS: Final[tuple[Kind, Kind]] = ("request", "response")

API_FIELDS: Final = frozenset({"api", "version", "flexible", "removed_in", "deprecated"})
# What settles a rule before the frame is whole: head and connection, the same again and again.
HEAD_FIELDS: Final = API_FIELDS | fields_from("connection") | {"client"}

# What nobody knows before the response is there.
RESPONSE_FIELDS: Final = fields_from("response size", "response", "response records")

# What every frame tells, responses some more.
ALWAYS: Final = fields_from("connection", "head", "frames", "response size") | {"summary"}

_NEVER: Final[dict[Teller, str]] = {
    "notes": "marks exist only in the terminal UI",
    "findings": "findings are complete only at the end of a capture",
    "ending": "the state of an exchange is known only when it has ended",
    "order": "only a capture has an order and packets",
    "tls": "the proxy terminates TLS, and rules see the plaintext",
    "login": "the proxy does not store exchanges of a connection",
    "zookeeper": "the proxy handles Kafka only",
    "request log": "only the request logs of brokers have it",
    "decoding": "a frame that cannot be decoded is forwarded unchanged",
}
# Fields that no frame tells while it passes -> why.
NEVER: Final = {
    **{field.name: _NEVER[field.told_by] for field in FIELDS if field.told_by in _NEVER},
    "expected": _NEVER["findings"],  # an exchange that a finding cites is not expected
}

RECORDS: Final = frozenset({"blobs"})
# Fields that bodies tell -> what of `bodies.facts.BodyFacts` they are read from, any of it.
FACTS: Final[dict[str, frozenset[str]]] = {
    **{
        asked: frozenset({name})
        for asked, (name, column) in COLUMNS.items()
        if column.told_by == "body"
    },
    "topic": frozenset({"topics", "topic_ids"}),
    "producer.id": frozenset({"producer_ids"}) | RECORDS,
    "producer.epoch": frozenset({"producer_epochs"}) | RECORDS,
    **dict.fromkeys(("error", "error.top", "failed", "retriable"), frozenset({"errors"})),
    **dict.fromkeys(fields_from("records", "response records"), RECORDS),
}

# Fields that bodies tell -> the names of the fields of messages, any of them.
NAMED: Final[dict[str, frozenset[str]]] = {
    "offset": OFFSETS,
    "high_watermark": frozenset({"high_watermark"}),
    "lag": frozenset({"high_watermark"}),
}

PRODUCE: Final = 0
ACKS: Final = (("request", "acks"), ("body", "acks"))

# Fields of which a frame has one value at most, so that two tests may exclude each other.
LONE: Final = frozenset(
    asked
    for asked, (_, column) in COLUMNS.items()
    if not column.kind.many and asked not in API_FIELDS
)
EQUAL: Final = frozenset({"==", "!=", "in"})
# Relations of texts, and of numbers, for which a few values tell all that a test may give.
EXACT: Final = EQUAL | {"<", "<=", ">", ">="}

# Values of a frame, by the names of `LONE` fields; None: it has none.
Sample: TypeAlias = dict[str, Any]


class Matcher:
    """One filter."""

    def __init__(self, text: str) -> None:
        """`FilterError` for a filter that is wrong; a blank one matches everything."""
        self.text = text
        self.bound = bind(spelled(text))
        self.decodes = bool(fields_of(self.bound) & DECODED)
        """Whether it asks for keys and values that are decoded by schema: then `decided` tells."""
        self._whole: Filter | None = None
        self._known: dict[tuple[object, ...], bool | None] = {}

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(_demanded(self.bound, "topic"))

    def by_head(self, frame: InterceptedFrame) -> bool | None:
        """Whether a frame matches by its head alone. None: only the whole frame can tell."""
        if self.bound is None:
            return True
        key = (frame.key, frame.version, frame.client_id, frame.context.number)
        if key in self._known:
            return self._known[key]
        settled = settle(self.bound, lambda test: _by_head(test, frame))
        limits = frame.context.hub.limits
        if len(frame.client_id or "") <= limits.matcher_client_id_chars:
            if len(self._known) >= limits.matcher_heads:
                self._known.clear()
            self._known[key] = settled
        return settled

    def __call__(self, frame: InterceptedFrame) -> bool:
        return self._filter(NOTHING)(frame.row, frame.exchange)

    async def decided(self, frame: InterceptedFrame) -> bool:
        """Whether a whole frame matches, with its keys and values decoded."""
        matches = frame.context.hub.matches
        if matches is None:
            return self(frame)
        return await matches(self._filter, frame.row, frame.exchange)

    def _filter(self, known: Known) -> Filter:
        """Return the filter, made when frames come: only their proxy knows schemas."""
        if self._whole is None:
            self._whole = Filter(self.bound, known)
        return self._whole


def _demanded(bound: Bound | None, name: str) -> set[str]:
    """Return the values one of which a field must have; nothing where others may do."""
    match bound:
        case And(terms):
            found = [_demanded(term, name) for term in terms]
            return next(filter(None, found), set())
        case Or(terms):
            found = [_demanded(term, name) for term in terms]
            return set().union(*found) if all(found) else set()
        case Test() if bound.field.name == name and bound.scope != "none":
            if bound.relation == "==" and isinstance(bound.value, str):
                return {bound.value}
            if bound.relation == "in" and all(last is None for _, last in bound.value):
                return {first for first, _ in bound.value}
    return set()


def settle(bound: Bound, decide: Callable[[Search | Test], bool | None]) -> bool | None:
    """Return whether a filter holds, by what `decide` says of its tests; None: it may or not."""
    match bound:
        case And(terms) | Or(terms):
            settled = [settle(term, decide) for term in terms]
            enough = isinstance(bound, Or)  # one such term is
            return enough if enough in settled else None if None in settled else not enough
        case Not(term):
            inner = settle(term, decide)
            return None if inner is None else not inner
        case _:
            return decide(bound)


def _by_head(test: Search | Test, frame: InterceptedFrame) -> bool | None:
    if isinstance(test, Test) and not test.path and test.field.name in HEAD_FIELDS:
        return Filter(test)(frame.head_row)
    return None


def refusal(
    bound: Bound | None, side: int, can_harm: CanHarm | None = None, unable: Unable | None = None
) -> str | None:
    """Why a filter can match no request (or no response); None when it can match some. `can_harm`:
    only frames of such APIs count; `unable` says why one does not, as far as that is known."""
    named = fields_of(bound)
    kind = KINDS[side]
    for name in sorted(named & NEVER.keys()):
        return f"{name.rstrip('.')} is not available to rules about {kind}s: {NEVER[name]}"
    early = sorted(named & RESPONSE_FIELDS | {name for name in named if name == "response."})
    if side == CLIENT and early:
        names = ", ".join(f"{name}*" if name.endswith(".") else name for name in early)
        return f"it acts on requests, but only the response contains {names}"

    def may_match(key: int, version: int, side: int | None, sample: Sample) -> bool:
        return bound is None or (
            settle(bound, lambda test: _decide(test, key, version, side, sample)) is not False
        )

    able = [each for each in _versions() if can_harm is None or can_harm(*each, side)]
    if can_harm is None and bound is not None and not named - ALWAYS:
        able += _unknown(bound)  # such frames pass, and have a head
    if fitting := [each for each in able if may_match(*each, side, {})]:
        samples = _samples(bound, side)
        if any(may_match(*each, side, sample) for sample in samples for each in fitting):
            return None
        names = ", ".join(samples[0])
        return f"it can match no {kind}: its conditions on {names} contradict each other"
    if (newest := next((e for e in _versions() if may_match(*e, side, {})), None)) is not None:
        why = unable(*newest, side) if unable is not None else ""
        return f"it cannot change the matching {kind}s" + (f": {why}" if why else "")
    what = ", ".join(sorted(name.rstrip(".") for name in named - HEAD_FIELDS))
    if not what:
        return f"it can match no {kind}: no version of an API matches"
    apis = [
        api.name
        for key, api in APIS.items()
        if "api" in named and may_match(key, api.versions.high, None, {})
    ]
    whose = ", ".join(apis) if 0 < len(apis) < 5 else "API"
    return f"it can match no {kind}: no {whose} {kind} satisfies its conditions on {what}"


@cache
def _versions() -> tuple[tuple[int, int], ...]:
    return tuple(
        (key, version)
        for key, api in APIS.items()
        for version in range(api.versions.high, api.versions.low - 1, -1)
    )


def _unknown(bound: Bound) -> list[tuple[int, int]]:
    """APIs and versions that a filter names, and those beside, that only a newer Kafka has."""
    named: dict[str, set[int]] = {"api": set(), "version": set()}
    for test in _tests(bound):
        if test.field.name in named:
            named[test.field.name] |= {number for number in _beside(test) if number >= 0}
    keys, versions = map(sorted, named.values())
    return [
        (key, version)
        for key in (*keys, *APIS)
        for version in (*versions, *([APIS[key].versions.high] if key in APIS else [0]))
        if key not in APIS or version not in APIS[key].versions
    ]


def _samples(bound: Bound | None, side: int) -> list[Sample]:
    """Return sampled frames: all combinations of the values that make a difference to a filter, of
    the fields that it tests more than once. Numbers: those that it names, and those beside; texts:
    those, and another. One frame without values where that is too many."""
    tests: dict[str, list[Test]] = {}
    for test in _tests(bound):
        if test.field.name in LONE and not test.path:
            tests.setdefault(test.field.name, []).append(test)
    values: dict[str, list[Any]] = {}
    for name, found in tests.items():
        relations = {test.relation for test in found if test.scope != "has"}
        ends = [end for test in found for end in _ends(test)]
        if len(found) < 2:
            continue
        if relations <= EXACT and all(isinstance(end, int) for end in ends):
            # Whether there is one, or one that counts, is asked of fields without any number.
            values[name] = [None, *sorted({0, 1}.union(*map(_beside, found)))]
        elif relations <= EQUAL and all(isinstance(end, str) for end in ends):
            values[name] = [None, *dict.fromkeys(ends), "".join(ends) + "?"]
    if side == BROKER and "acks" in values:
        values["acks"] = [value for value in values["acks"] if value]
    if prod(map(len, values.values())) > LIMITS.filter_samples:
        return [{}]
    return [dict(zip(values, each, strict=True)) for each in product(*values.values())]


def _tests(bound: Bound | None) -> Iterator[Test]:
    found = () if bound is None else leaves(bound)
    return (each for each in found if isinstance(each, Test))


def _ends(test: Test) -> list[Any]:
    if test.scope == "has":
        return []
    pairs = test.value if isinstance(test.value, tuple) else ((test.value, None),)
    return [end for pair in pairs for end in pair if end is not None]


def _beside(test: Test) -> set[int]:
    ends = (end for end in _ends(test) if isinstance(end, int))
    return {near for end in ends for near in (end - 1, end, end + 1)}


def _decide(
    test: Search | Test, key: int, version: int, side: int | None, sample: Sample
) -> bool | None:
    """Return what a test gives for frames of a version of an API that have the values of a sample;
    None: either. `side` None: bodies may have anything. Tests of other fields are taken as if they
    had nothing to do with each other."""
    if isinstance(test, Search):
        return None
    name = "" if test.path else test.field.name
    values: Iterable[tuple[Any, ...]]
    if name in API_FIELDS:
        head = {"api_key": key, "api_version": version}
        values = [test.field.of(*map(head.__getitem__, test.field.reads))]
    elif side is not None and not _may_have(test, key, version, side):
        values = [()]
    elif name in sample:
        values = [() if sample[name] is None else (sample[name],)]
    elif side == BROKER and key == PRODUCE and (name == "acks" or test.path in ACKS):
        # Brokers do not answer a Produce with acks 0.
        values = [(acks,) for acks in ({-1, 1} | _beside(test)) - {0}]
    else:
        return None
    found = {scoped(test)(each) for each in values}
    return found.pop() if len(found) == 1 else None


def _may_have(test: Test, key: int, version: int, side: int) -> bool:
    name, path = test.field.name, test.path
    if not path and name in ALWAYS:
        return True
    api, kinds = APIS[key].name, KINDS[: 1 + (side == BROKER)]
    if name in NAMED or (path and path[0] in (*KINDS, "body")):
        paths = [path] if path else [("body", each) for each in NAMED[name]]
        return any(_has(api, kind, each) for each in paths for kind in kinds)
    facts = RECORDS if test.field.told_by == "schemas" else FACTS[name]
    layouts = (layout_of(f"{api}{kind.capitalize()}", version) for kind in kinds)
    return any(facts & attributes(layout) for layout in layouts)


@cache
def _has(api: str, kind: Kind, path: tuple[str | int, ...]) -> bool:
    names = of_message(kind, api) or ()
    if path[0] == "body":
        return any(each.rpartition(".")[2] == path[1] for each in names)
    return path[0] == kind and ".".join(s for s in path[1:] if isinstance(s, str)) in names
