"""What rules can know of a frame, and so whether a filter can ever match. Stateless.

A rule sees one frame while it passes: a request, or a response with its request. What only a
whole capture tells (numbers, findings, marks) it never knows, and of bodies it knows what the
declarations have. A filter that can match no frame is refused when the rule is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product
from math import prod
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.bodies.facts import attributes
from kafkascope.analyzer.exchanges.rows import is_flexible
from kafkascope.analyzer.filter.backends.exchange import scoped
from kafkascope.analyzer.filter.bind import Bound, Every, Find, Some, Test, Unless, fields_of
from kafkascope.analyzer.filter.fields import COLUMNS, FIELDS, Teller, told_by
from kafkascope.analyzer.filter.getters import removals
from kafkascope.analyzer.filter.message import OFFSETS
from kafkascope.analyzer.filter.paths import of_message
from kafkascope.dissectors.registry import APIS, layout_of
from kafkascope.proxy.rules.actions import BROKER, CLIENT

CanHarm: TypeAlias = Callable[[int, int, int], bool]
"""Of an API's key, a version and a side: whether something can be done to such frames."""
Unable: TypeAlias = Callable[[int, int, int], str]
"""Of the same: why nothing can be done; empty where nobody knows more."""
Outcomes: TypeAlias = frozenset[bool]
"""What a test may give: one of the two, or either."""

API_FIELDS: Final = frozenset({"api", "version", "flexible", "removed_in", "deprecated"})
HEAD_FIELDS: Final = API_FIELDS | told_by("connection") | {"client"}
"""What settles a rule before the frame is whole: head and connection, the same again and again."""

RESPONSE_FIELDS: Final = told_by("response size", "response", "response records")
"""What nobody knows before the response is there."""

ALWAYS: Final = told_by("connection", "head", "frames", "response size") | {"summary"}
"""What every frame tells, responses some more."""

_NEVER: Final[dict[Teller, str]] = {
    "notes": "marks exist only in the terminal UI",
    "findings": "findings are complete only at the end of a capture",
    "ending": "the state of an exchange is known only when it has ended",
    "order": "only a capture has an order and packets",
    "tls": "the proxy terminates TLS, and rules see the plaintext",
    "login": "the proxy does not store exchanges of a connection",
    "zookeeper": "the proxy handles Kafka only",
    "decoding": "a frame that cannot be decoded is forwarded unchanged",
}
NEVER: Final = {
    **{field.name: _NEVER[field.told_by] for field in FIELDS if field.told_by in _NEVER},
    "expected": _NEVER["findings"],  # an exchange that a finding cites is not expected
}
"""Fields that no frame tells while it passes -> why."""

RECORDS: Final = frozenset({"blobs"})
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
    **dict.fromkeys(told_by("records", "response records"), RECORDS),
}
"""Fields that bodies tell -> what of `analyzer.facts.Facts` they are read from, any of it."""

NAMED: Final[dict[str, frozenset[str]]] = {
    "offset": OFFSETS,
    "high_watermark": frozenset({"high_watermark"}),
    "lag": frozenset({"high_watermark"}),
}
"""Fields that bodies tell -> the names of the fields of messages, any of them."""

PRODUCE: Final = 0
ACKS: Final = (("request", "acks"), ("body", "acks"))

LONE: Final = frozenset(
    asked
    for asked, (_, column) in COLUMNS.items()
    if not column.kind.many and asked not in API_FIELDS
)
"""Fields of which a frame has one value at most, so that two tests may exclude each other."""
EQUAL: Final = frozenset({"==", "!=", "in"})
EXACT: Final = EQUAL | {"<", "<=", ">", ">="}
"""Relations of texts, and of numbers, for which a few values tell all that a test may give."""
MOST_GUESSES: Final = 64
"""Tests of more fields and numbers than that are taken as if they had nothing to do with each
other."""

_EITHER: Final = frozenset({True, False})

Guess: TypeAlias = dict[str, Any]
"""Values that a frame may have, by the names of `LONE` fields; None: it has none."""
NO_GUESS: Final[Guess] = {}


def refusal(
    bound: Bound | None, side: int, can_harm: CanHarm | None = None, unable: Unable | None = None
) -> str | None:
    """Why a filter can match no request (or no response); None when it can match some. `can_harm`:
    only frames of such APIs count; `unable` says why one does not, as far as that is known."""
    named = fields_of(bound)
    kind = "requests" if side == CLIENT else "responses"
    for name in sorted(named & NEVER.keys()):
        return f"{name.rstrip('.')} is not available to rules about {kind}: {NEVER[name]}"
    early = sorted(named & RESPONSE_FIELDS | {name for name in named if name == "response."})
    if side == CLIENT and early:
        names = ", ".join(f"{name}*" if name.endswith(".") else name for name in early)
        return f"it acts on requests, but only the response contains {names}"
    able = [each for each in _versions() if can_harm is None or can_harm(*each, side)]
    if can_harm is None and bound is not None and not named - ALWAYS:
        able += _unknown(bound)  # such frames pass, and have a head
    fitting = [each for each in able if bound is None or True in _outcomes(bound, *each, side)]
    if fitting:
        if bound is None:
            return None
        guesses = _guesses(bound)
        if any(True in _outcomes(bound, *e, side, guess) for guess in guesses for e in fitting):
            return None
        names = ", ".join(guesses[0])
        return f"it can match no {kind[:-1]}: its conditions on {names} contradict each other"
    matching = (e for e in _versions() if bound is None or True in _outcomes(bound, *e, side))
    if (newest := next(matching, None)) is not None:
        why = unable(*newest, side) if unable is not None else ""
        return f"it cannot change the matching {kind}" + (f": {why}" if why else "")
    assert bound is not None  # it would match
    apis = ", ".join(dict.fromkeys(APIS[key].name for key, _ in _versions() if _about(bound, key)))
    what = ", ".join(sorted(name.rstrip(".") for name in named - HEAD_FIELDS))
    if not what:
        return f"it can match no {kind[:-1]}: no version of an API matches"
    whose = apis if apis and apis.count(",") < 4 else "API"
    return f"it can match no {kind[:-1]}: no {whose} {kind[:-1]} satisfies its conditions on {what}"


@cache
def _versions() -> tuple[tuple[int, int], ...]:
    """All APIs with all versions that are known, the newest first."""
    return tuple(
        (key, version)
        for key, api in APIS.items()
        for version in range(api.versions.high, api.versions.low - 1, -1)
    )


def _unknown(bound: Bound) -> list[tuple[int, int]]:
    """APIs and versions that a filter names, and those beside, that only a newer Kafka has."""
    keys, versions = (sorted(_numbers(bound, name)) for name in ("api", "version"))
    return [
        (key, version)
        for key in (*keys, *APIS)
        for version in (*versions, *([APIS[key].versions.high] if key in APIS else [0]))
        if key not in APIS or version not in APIS[key].versions
    ]


def _numbers(bound: Bound, name: str) -> set[int]:
    match bound:
        case Every(terms) | Some(terms):
            return set().union(*(_numbers(term, name) for term in terms))
        case Unless(term):
            return _numbers(term, name)
        case Test() if bound.field.name == name:
            return {number for number in _beside(_ends(bound)) if number >= 0}
        case _:
            return set()


def _about(bound: Bound, key: int) -> bool:
    """Whether a filter may be about an API, bodies left aside."""
    version = APIS[key].versions.high
    return "api" in fields_of(bound) and True in _outcomes(bound, key, version, None)


def _guesses(bound: Bound) -> list[Guess]:
    """Values that make a difference to a filter, of the fields that it tests more than once, in
    all combinations. Numbers: those that it names, and those beside; texts: those, and another."""
    tests: dict[str, list[Test]] = {}
    for test in _tests(bound):
        if test.field.name in LONE and not test.path:
            tests.setdefault(test.field.name, []).append(test)
    values: dict[str, list[Any]] = {}
    for name, found in tests.items():
        relations = {test.relation for test in found if test.scope != "has"}
        named = [end for test in found for end in _ends(test)]
        if len(found) < 2:
            continue
        if relations <= EXACT and all(isinstance(end, int) for end in named):
            # Whether there is one, or one that counts, is asked of fields without any number.
            values[name] = [None, *sorted(_beside(named) | {0, 1})]
        elif relations <= EQUAL and all(isinstance(end, str) for end in named):
            values[name] = [None, *dict.fromkeys(named), "".join(named) + "?"]
    if prod(map(len, values.values())) > MOST_GUESSES:
        return [{}]
    return [dict(zip(values, each, strict=True)) for each in product(*values.values())]


def _tests(bound: Bound) -> Iterator[Test]:
    match bound:
        case Every(terms) | Some(terms):
            for term in terms:
                yield from _tests(term)
        case Unless(term):
            yield from _tests(term)
        case Test():
            yield bound


def _ends(test: Test) -> list[Any]:
    """Return the values that a test names, and the ends of its ranges."""
    if test.scope == "has":
        return []
    pairs = test.value if isinstance(test.value, tuple) else ((test.value, None),)
    return [end for pair in pairs for end in pair if end is not None]


def _beside(ends: Iterable[Any]) -> set[int]:
    """Return the numbers among these values, and those beside."""
    return {near for end in ends if isinstance(end, int) for near in (end - 1, end, end + 1)}


def _outcomes(
    bound: Bound, key: int, version: int, side: int | None, guess: Guess = NO_GUESS
) -> Outcomes:
    """What a filter may give for frames of a version of an API that have the values of a guess.
    `side` None: bodies may have anything. Tests of other fields are taken as if they had nothing
    to do with each other."""
    match bound:
        case Every(terms) | Some(terms):
            each = [_outcomes(term, key, version, side, guess) for term in terms]
            decides = isinstance(bound, Some)  # one such term is enough
            found = {decides} if any(decides in one for one in each) else set()
            if all((not decides) in one for one in each):
                found.add(not decides)
            return frozenset(found)
        case Unless(term):
            return frozenset(not one for one in _outcomes(term, key, version, side, guess))
        case Find():
            return _EITHER
        case Test():
            return _of_test(bound, key, version, side, guess)


def _of_test(test: Test, key: int, version: int, side: int | None, guess: Guess) -> Outcomes:
    name = test.field.name
    if name in API_FIELDS and not test.path:
        values = {
            "api": (key,),
            "version": (version,),
            "flexible": (is_flexible(key, version),),
            "removed_in": removals(key, version),
            "deprecated": (bool(removals(key, version)),),
        }[name]
        return frozenset({scoped(test)(values)})
    if side is None or _tells(test, key, version, side):
        told: Iterable[Any] | None = (guess[name],) if name in guess and not test.path else None
        if side == BROKER and key == PRODUCE and (name == "acks" or test.path in ACKS):
            told = [value for value in told or _answered(test) if value]
        if told is None:
            return _EITHER
        return frozenset(scoped(test)(() if each is None else (each,)) for each in told)
    return frozenset({scoped(test)(())})


def _answered(test: Test) -> set[int]:
    """Values of acks that make a difference to a test: but for 0, which brokers do not answer."""
    return ({-1, 1} | _beside(_ends(test))) - {0}


def _tells(test: Test, key: int, version: int, side: int) -> bool:
    """Whether the bodies that are seen can have a value for a test."""
    name, path = test.field.name, test.path
    if path and path[0] in ("request", "response", "body"):
        return any(_has(api, kind, path) for api, kind in _seen(key, side))
    if name in ALWAYS:
        return True
    if name in NAMED:
        paths = (("body", each) for each in NAMED[name])
        return any(_has(api, kind, each) for each in paths for api, kind in _seen(key, side))
    facts = RECORDS if test.field.told_by == "schemas" else FACTS[name]
    return any(
        facts & attributes(layout_of(f"{api}{kind.capitalize()}", version))
        for api, kind in _seen(key, side)
    )


def _seen(key: int, side: int) -> Iterator[tuple[str, str]]:
    yield APIS[key].name, "request"
    if side == BROKER:
        yield APIS[key].name, "response"


def _has(api: str, kind: str, path: tuple[str | int, ...]) -> bool:
    names = _paths(api, kind)
    if path[0] == "body":
        return any(each.rpartition(".")[2] == path[1] for each in names)
    return path[0] == kind and ".".join(s for s in path[1:] if isinstance(s, str)) in names


@cache
def _paths(api: str, kind: str) -> frozenset[str]:
    found = of_message("request" if kind == "request" else "response", api)
    return frozenset(found or ())


__all__ = ["HEAD_FIELDS", "NEVER", "RESPONSE_FIELDS", "refusal"]
