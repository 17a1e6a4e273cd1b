"""Exchanges that findings are about: for filters (`finding`, `finding.severity`) and screens.

    evidence = Evidence(found)                   # what `Findings.told` gave
    evidence.of(row, exchange)                   # the findings of one exchange
    evidence.note(known, row, exchange)          # and tell a filter's `Known` of them
    evidence.among(session, begin, end)          # the findings of these rows, by index
    note(known, number, findings)                # tell a filter's `Known` what is known already
    overflowing_rules(findings)                  # the rules of which there may be more
    expected = ExpectedErrors(found)             # which errors no finding is about
    settled(errors, found)                       # the statistic of errors, decided by them

An exchange may be evidence of thousands: of each rule and severity, a few are given
(`FindingLimits`), so that which rules and severities it is about is whole.

Evidence is what the filter of a finding selects; lists of exchanges are not kept. More traffic may
change findings: make a new `Evidence` then, and a new `Known`.

A finding is about an error where its rule names the code (`Rule.errors`) and its filter selects the
exchange. A filter alone is not enough: that of a late rebalance selects all requests of the group.
Chats do not count, but what followed from a finding does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from ipaddress import IPv4Network, IPv6Network
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kafkascope.analyzer.exchanges.expected import CODES, is_expected
from kafkascope.analyzer.exchanges.rows import codes_of
from kafkascope.analyzer.filter.bind import And, Or, Test
from kafkascope.analyzer.filter.fields import field_of
from kafkascope.analyzer.filter.language import Bound, Known, compile_filter, compile_query
from kafkascope.analyzer.filter.values import address_number
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.model import Finding
from kafkascope.analyzer.findings.rules import RULES
from kafkascope.analyzer.findings.words import plural

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.filter.backends.columns import Query
    from kafkascope.analyzer.filter.backends.exchange import Filter
    from kafkascope.analyzer.filter.backends.sources import Numbers, RowRange
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.session.session import Session
    from kafkascope.analyzer.statistics.errors import Errors

KEYS: Final = (
    *("number", "conn", "client.ip", "client", "group", "topic", "broker"),
    *("txn", "producer.id", "zk.session", "path", "partition", "api"),
)
"""Fields by whose values findings are found; of equally rare ones the first."""
PART: Final = "part of path"
"""Not a field: a name between slashes, of a filter for paths that contain it."""
_ORDER: Final = {name: place for place, name in enumerate((*KEYS, PART, ""))}
NO_KEY: Final = ("", None)

Key: TypeAlias = tuple[str, Any]
"""A field and a value that an exchange must have to be evidence at all."""


class Case(NamedTuple):
    """The findings that select the same exchanges."""

    text: str
    wanted: Filter
    places: tuple[int, ...]
    """Indexes of the findings, in order."""
    rooms: tuple[int, ...]
    """Which rooms they take, see `Evidence`."""
    since: int
    """The first exchange that it may be, by number."""


class Evidence:
    """Evidence of a list of findings. One about no exchange has none."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = [each for each in findings if each.filter]
        kinds = Counter((each.name, each.severity) for each in self.findings)
        crowded = [kind for kind, count in kinds.items() if count > LIMITS.findings_of_rule]
        self._rooms = len(crowded) + 1
        """Number of rooms: one for each crowd, and the last for all others."""
        room_of = {kind: which for which, kind in enumerate(crowded)}
        self._room = [room_of.get((each.name, each.severity), -1) for each in self.findings]
        same: dict[str, list[int]] = {}
        for place, finding in enumerate(self.findings):
            same.setdefault(finding.filter, []).append(place)
        self._cases = [self._case(text, places) for text, places in same.items()]
        self._wanted: dict[str, dict[Any, list[int]]] = {}
        """Field -> value -> the cases that are about it."""
        choices = [_choices(case.wanted.bound) for case in self._cases]
        sharing = Counter(key for keys in chain.from_iterable(choices) for key in keys)
        for which, keys in enumerate(choices):
            for name, value in min(keys, key=lambda keys: max(map(sharing.__getitem__, keys))):
                self._wanted.setdefault(name, {}).setdefault(value, []).append(which)
        self._asked: list[Query] = []
        self._for: tuple[Session, int] | None = None

    def of(self, row: Row, exchange: Exchange | None = None) -> tuple[Finding, ...]:
        """Return the findings that an exchange is evidence of, the worst first. Without `exchange`,
        only those whose filters need no message."""
        cases: set[int] = set()
        for name, wanted in self._wanted.items():
            for value in _values(name, row):
                cases.update(wanted.get(value, ()))
        places: list[int] = []
        left = [LIMITS.findings_of_rule] * self._rooms
        left[-1] = len(self.findings)
        for case in map(self._cases.__getitem__, sorted(cases)):
            # There may be thousands; most of them match none of the findings.
            if case.since > row.number or not any(map(left.__getitem__, case.rooms)):
                continue
            if case.wanted(row, exchange):
                self._take(case, places, left)
        return self._findings_at(places)

    def _case(self, text: str, places: list[int]) -> Case:
        taken: dict[int, list[int]] = {}
        for place in places:
            taken.setdefault(self._room[place], []).append(place)
        kept = chain.from_iterable(
            some if room < 0 else some[: LIMITS.findings_of_rule] for room, some in taken.items()
        )
        wanted = _compiled(text)
        return Case(text, wanted, tuple(sorted(kept)), tuple(taken), _since(wanted.bound))

    def _take(self, case: Case, places: list[int], left: Any) -> None:
        for place in case.places:
            room = self._room[place]
            if left[room]:
                left[room] -= 1
                places.append(place)

    def _findings_at(self, places: list[int]) -> tuple[Finding, ...]:
        return tuple(self.findings[place] for place in sorted(places))

    def note(self, known: Known, row: Row, exchange: Exchange) -> None:
        """Pass an exchange's findings to filters, before they judge it."""
        found = self.of(row, exchange)
        if found:
            note(known, row.number, found)

    def among(
        self, session: Session, begin: int = 0, end: int | None = None
    ) -> dict[int, tuple[Finding, ...]]:
        """Return the findings of those rows from `begin` to `end` that have any, by index. Few
        findings need messages: they are read only where the columns leave it open."""
        import numpy as np

        from kafkascope.analyzer.filter.backends.sources import RowRange

        end = len(session) if end is None else min(end, len(session))
        rows = RowRange(session, begin, max(begin, end))
        found: dict[int, list[int]] = {}
        queries = self._queries(session)
        left = np.full((len(rows), self._rooms), LIMITS.findings_of_rule, np.int16)
        left[:, -1] = np.iinfo(np.int16).max
        for which, at in self._concerned(rows):
            case, query = self._cases[which], queries[which]
            if -1 not in case.rooms:
                at = at[left[at][:, case.rooms].any(axis=1)]
            sure, open_ = query.settled(rows.chosen(at))
            for each in (sure | open_).nonzero()[0].tolist():
                row = int(at[each])
                if sure[each] or query.decide(session, begin + row):
                    self._take(case, found.setdefault(begin + row, []), left[row])
        return {index: self._findings_at(places) for index, places in found.items()}

    def _concerned(self, rows: RowRange) -> Iterator[tuple[int, Numbers]]:
        """Yield cases in order, with the rows that they may be about: each is looked up in those
        alone."""
        import numpy as np

        from kafkascope.analyzer.filter.backends.sources import by_value

        found: dict[int, list[Numbers]] = {}
        every = (None,), np.arange(len(rows))
        for name, wanted in self._wanted.items():
            for values, at in by_value(_field(name), rows, wanted) if name else (every,):
                for which in {
                    each for value in _keyed(name, values) for each in wanted.get(value, ())
                }:
                    found.setdefault(which, []).append(at)
        for which, parts in sorted(found.items()):
            # A row may have two values of one case: a request about two topics, say.
            yield which, np.unique(np.concatenate(parts)) if len(parts) > 1 else parts[0]

    def _queries(self, session: Session) -> list[Query]:
        """Return what judges the filters of findings, made once: it keeps what it learned of a
        session's tables until rows are dropped."""
        if self._for is None or self._for[0] is not session or self._for[1] != session.dropped:
            self._for = session, session.dropped
            self._asked = [compile_query(each.text) for each in self._cases]
        return self._asked


def _since(bound: Bound | None) -> int:
    """Return the least number of an exchange that a filter may match."""
    match bound:
        case And(terms):
            return max(map(_since, terms), default=0)
        case Test(field=field, scope="any", relation=">=") if field.name == "number":
            return int(bound.value)
        case _:
            return 0


def _choices(bound: Bound | None) -> list[list[Key]]:
    """Return lists of keys, of each of which an exchange has one when a filter selects it, in the
    order of `KEYS`."""
    return sorted(_keys(bound), key=lambda keys: _ORDER[keys[0][0]]) or [[NO_KEY]]


def _keys(bound: Bound | None) -> list[list[Key]]:
    match bound:
        case And(terms):
            return [keys for term in terms for keys in _keys(term)]
        case Or(terms):
            # Who is wanted by one of them has a key of that one.
            each = [_choices(term)[0] for term in terms]
            one = list(dict.fromkeys(chain.from_iterable(each)))
            return [] if NO_KEY in one else [one]
        case Test(field=field, scope="any", relation="contains") if field.name == _field(PART):
            # Names that a path has between slashes when it contains the text.
            return [[(PART, part)] for part in bound.value.split("/")[1:-1] if part]
        case Test(field=field, scope="any", relation="==" | "in") if field.name in _ORDER:
            values = [(bound.value, None)] if bound.relation == "==" else bound.value
            wanted = _values_in(values)
            found = list(dict.fromkeys((field.name, _one(each)) for each in wanted))
            return [found] if found and None not in {value for _, value in found} else []
        case _:
            return []


def _values_in(values: Iterable[tuple[Any, Any]]) -> list[Any]:
    """Return all values, those in ranges of numbers, too; none where these are many."""
    found: list[Any] = []
    for first, last in values:
        if last is None:
            found.append(first)
            continue
        if not isinstance(first, int) or not isinstance(last, int):
            return []
        if len(found) + last - first >= LIMITS.indexed_values:
            return []
        found += range(first, last + 1)
    return found


def _field(name: str) -> str:
    """Return the field whose values have a key."""
    return "path" if name == PART else name


def _one(wanted: Any) -> Any:
    """Return a value that is compared for equality alone; None when it is not: a network."""
    if not isinstance(wanted, IPv4Network | IPv6Network):
        return wanted
    return address_number(str(wanted[0])) if wanted.num_addresses == 1 else None


def _values(name: str, row: Row) -> Iterable[Any]:
    """Return the values that a row has of a field, as keys have them."""
    if not name:
        return (None,)
    return _keyed(name, _getter(_field(name))(row))


@cache
def _getter(name: str) -> Callable[[Row], tuple[Any, ...]]:
    get = field_of(name).get
    assert get is not None
    return get


def _keyed(name: str, values: Iterable[Any]) -> Iterable[Any]:
    """Return values of a field as keys have them: addresses as `_one` writes them, paths in
    parts."""
    if name == PART:
        return {part for path in values for part in path.split("/") if part}
    return map(address_number, values) if name == "client.ip" else values


def overflowing_rules(found: Iterable[Finding]) -> list[str]:
    """Return rules at their limit of findings: an exchange may be evidence of more."""
    counts = Counter((each.name, each.severity) for each in found)
    full = (kind for kind, count in counts.items() if count >= LIMITS.findings_of_rule)
    return list(dict.fromkeys(name for name, _ in full))


def note(known: Known, number: int, found: tuple[Finding, ...]) -> None:
    """Pass the findings of an exchange to filters."""
    known.findings[number], known.severities[number] = _words(found)


@lru_cache(maxsize=4096)
def _words(found: tuple[Finding, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return (
        tuple(dict.fromkeys(each.name for each in found)),
        tuple(dict.fromkeys(each.severity for each in found)),
    )


_compiled = lru_cache(maxsize=1024)(compile_filter)


class ExpectedErrors:
    """Decides of some findings."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._evidence = Evidence(_citing(list(findings)))

    def __call__(self, row: Row, exchange: Exchange | None = None) -> bool:
        """Return whether the errors of an exchange are expected."""
        codes = codes_of(row)
        if not codes or not is_expected(row.api_key, codes, findings=True):
            return False
        return not _about(self._evidence.of(row, exchange), codes)

    def is_about(self, row: Row) -> bool:
        """Return whether a finding is about the errors of a row."""
        return _about(self._evidence.of(row), codes_of(row))

    def among(self, session: Session, begin: int, end: int) -> dict[int, bool]:
        """Return, by number, whether rows with errors of the classes are expected."""
        lists, numbers = session.tables["errors"].values, session.columns["number"]
        classes = [bool(codes) and CODES.issuperset(codes) for codes in lists]
        errors, keys = session.columns["errors"], session.columns["api_key"]
        rows = [row for row in range(begin, min(end, len(errors))) if classes[errors[row]]]
        found = self._evidence.among(session, begin, end) if rows else {}
        decided = {}
        for row in rows:
            codes = frozenset(lists[errors[row]])
            expected = is_expected(keys[row], codes, findings=True)
            decided[numbers[row]] = expected and not _about(found.get(row, ()), codes)
        return decided


def settled(errors: Errors, findings: Iterable[Finding]) -> Errors:
    """Return a statistic of errors, decided by these findings from now on."""
    errors.is_about = ExpectedErrors(findings).is_about
    return errors


def errors_in_words(errors: Errors) -> str:
    """Return how many errors there are: `116 errors; 35 more expected by the protocol`."""
    count, expected = errors.totals()
    more = f"; {expected:,} more expected by the protocol" if expected else ""
    return (plural(count, "error") if count else "no errors") + more


def _citing(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that count, of rules that are about errors."""
    found = [each for each in findings if RULES[each.name].errors]
    if any(each.severity == "chat" and each.because for each in found):
        worth = {each.id for each in findings if each.severity != "chat"}
        return [e for e in found if e.severity != "chat" or not worth.isdisjoint(e.because)]
    return [each for each in found if each.severity != "chat"]


def _about(found: Iterable[Finding], codes: frozenset[int]) -> bool:
    return any(RULES[each.name].errors & codes for each in found)
