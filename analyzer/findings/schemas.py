"""Keys and values that do not fit their schemas, and topics that hold something else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.payloads import (
    Described,
    Judged,
    Left,
    Look,
    LookBudget,
    Sort,
    internal,
    looks,
    name_in,
    take,
    writer,
)
from kafkascope.analyzer.findings.view import View, all_of, among, plural
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import Measures, measured, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import ID_MARK
from kafkascope.analyzer.statistics.moved import Moved, Place, moved
from kafkascope.analyzer.text import spelled
from kafkascope.dissectors.records.batches import CONTROL

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.analyzer.payloads.model import Schema
    from kafkascope.dissectors.records.records import Batch

MOST_KEPT: Final = 5_000
NO_NAMES: Final = ID_MARK + "_"
"""What topics begin with that have an id for a name, or are perhaps Kafka's own."""
MOST_SAID: Final = 8
"""Sentences about one change."""


@measured
class Change(Measures):
    """A change of a subject that breaks readers."""

    said: Names = whole(Names)


class Written(NamedTuple):
    """Keys or values of one topic of which the same is said, by who wrote them."""

    verdict: Sort
    way: str
    client: tuple[str, str]
    judged: Judged


class Schemas(Detector):
    """By topic, side (key or value), verdict, and who wrote it."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "schema-misfit",
            "error",
            "keys or values that do not match their schema",
            "Skip or repair the record (`kafkascope records` shows it), and check the producer's "
            "serializer. Consumers fail on the record; a value that violates a JSON Schema may "
            "still be readable.",
            brief="{n} record that does not match its schema|{n} records that do not match their "
            "schema",
            limits=("schemas.share",),
        ),
        Rule(
            "schema-unknown",
            "warning",
            "schema ids that the registry does not have",
            "Check the producer's schema.registry.url: it probably points to another environment. "
            "Schema ids are valid in one registry only, so these records can be read only there.",
            brief="{n} record with an unknown schema id|{n} records with unknown schema ids",
        ),
        Rule(
            "schema-mixed",
            "warning",
            "topic with records of several formats",
            "Configure the same serializer in all producers of the topic, and skip the records "
            "that are already there. Consumers fail on a record that their deserializer does not "
            "expect.",
            brief="{n} record of another format|{n} records of another format",
            limits=("schemas.share",),
        ),
        Rule(
            "schema-breaks",
            "warning",
            "incompatible schema change of a subject",
            "Set a compatibility level for the subject in the registry, and change the schema "
            "within it; or move to a new topic. Readers with the new schema cannot read the old "
            "records.",
            brief="{n} incompatible schema change|{n} incompatible schema changes",
        ),
        Rule(
            "schema-of-key",
            "warning",
            "values written with the schema of the keys",
            "Check value.serializer and the subject settings of the producer: its value "
            "serializer uses the schema or the subject of the keys.",
            brief="{n} value with the schema of the keys|{n} values with the schema of the keys",
        ),
    )
    KEYS = frozenset({0, 1, 78})

    judged: Keyed[Judged] = table(Judged, MOST_KEPT)
    """By topic, side, verdict (kind, namespace, id, word), way, client id and host."""
    described: Keyed[Described] = table(Described, MOST_KEPT)
    """By namespace and id."""
    changes: Keyed[Change] = table(Change, 1_000)
    """By topic, side, subject, namespace, old id and new id."""
    left: Keyed[Left] = table(Left, 1_000)
    """By topic."""

    def __init__(self, limit: int | None = None) -> None:
        super().__init__(limit)
        self._budget = LookBudget()
        self._met: dict[tuple[Any, str], dict[tuple[str, Any], tuple[Schema, str]]] = {}
        """By topic and side: schemas that were met in this process and what they describe, by
        namespace and id."""

    # --- looking

    def add(self, row: Row, exchange: Exchange) -> None:
        """Look at keys and values."""
        payloads = self.payloads
        if payloads is None or payloads.known.empty:
            return  # without any schema nothing is told
        self._look(row, payloads, self._chosen(row, exchange))

    def _chosen(self, row: Row, exchange: Exchange) -> Iterator[tuple[Moved, int, str | None]]:
        """Yield the batches that are to be looked at: see `_look`."""
        for each in moved(exchange):
            if not each.counts or each.way == "replica" or each.topic is None:
                continue
            name: str | None = each.topic
            if each.topic[0] in NO_NAMES:
                name = name_in(row, each.topic)
                if internal(name):
                    continue
            for at, batch in enumerate(each.batches):
                if batch.attributes & CONTROL and batch.control:
                    continue
                place = row.id, each.topic, each.partition, at
                if self._budget.takes(each.way, each.counts[at], place):
                    yield each, at, name
                else:
                    self.left[(each.topic,)].count += each.counts[at]

    def add_lone(self, row: Row, exchange: Exchange, way: str, place: Place, batch: Batch) -> None:
        """Look at the keys and values of a batch that is all that a usual exchange is about."""
        payloads = self.payloads
        if payloads is None or payloads.known.empty:
            return
        topic, partition = place
        if way == "replica" or topic is None or topic[0] in NO_NAMES or batch.attributes & CONTROL:
            self.add(row, exchange)
            return
        records = max(0, batch.record_count or 0)
        if self._budget.takes(way, records, (row.id, topic, partition, 0)):
            self._look(row, payloads, [(moved(exchange)[0], 0, topic)])
        else:
            self.left[(topic,)].count += records

    def _look(
        self, row: Row, payloads: Payloads, chosen: Iterable[tuple[Moved, int, str | None]]
    ) -> None:
        """Look at batches: what was moved of their partition, their place there, and the topic's
        name."""
        found: dict[tuple[Any, ...], tuple[Look, int]] = {}
        for each, at, name in chosen:
            for look, count in looks(payloads, each, at, name):
                if look.verdict.kind != "plain":
                    self._budget.framed(each.topic, each.way)
                key = (each.topic, look.side, *look.verdict, each.way)
                known = found.get(key)
                if known is None:
                    found[key] = look, count
                    self._describe(each.topic, look)
                else:
                    first = min(known[0], look, key=lambda one: one.record)
                    certain = known[0].certain or look.certain
                    found[key] = first._replace(certain=certain), known[1] + count
        for key, (look, count) in found.items():
            take(self.judged[(*key, *writer(row, key[-1]))], row, look, count)

    def _describe(self, topic: Any, look: Look) -> None:
        """Take note of the schema of a key or value."""
        schema, verdict = look.schema, look.verdict
        if schema is None:
            return
        about = verdict.namespace, verdict.id
        described = self.described[about]
        for name, _ in schema.subjects:
            described.subjects.add(name)
        described.sources.add(schema.source)
        if verdict.kind == "good" and len(self._met) < MOST_KEPT:
            self._met.setdefault((topic, look.side), {})[about] = schema, look.type

    def _compare(self) -> None:
        """Compare the schemas of a subject that a topic's records were written with."""
        from kafkascope.analyzer.payloads.changes import breaking

        for (topic, side), met in self._met.items():
            by_subject: dict[tuple[str, str], list[tuple[int, tuple[str, Any], Schema]]] = {}
            for about, (schema, type_) in met.items():
                if not type_ and schema.format == "avro":
                    continue  # of two nameless types nobody says that they are one
                for subject, version in schema.subjects:
                    found = by_subject.setdefault((subject, type_), [])
                    found.append((version, about, schema))
            for (subject, _), versions in by_subject.items():
                if all(version for version, _, _ in versions):
                    versions.sort(key=lambda each: (each[0], str(each[1])))
                elif all(isinstance(about[1], int) for _, about, _ in versions):
                    # Registries that do not tell the version of what they take count ids up.
                    versions.sort(key=lambda each: (each[1][0], int(each[1][1])))
                else:
                    continue
                for (_, old, before), (_, new, after) in pairwise(versions):
                    if old[0] != new[0] or before.text == after.text:
                        continue
                    key = (topic, side, subject, old[0], old[1], new[1])
                    if key in self.changes:
                        continue
                    for said in breaking(before, after)[:MOST_SAID]:
                        self.changes[key].said.add(said)

    # --- state

    def merge(self, other: Self) -> None:
        """Take in what the other one has."""
        super().merge(other)
        for about, met in other._met.items():
            self._met.setdefault(about, {}).update(met)

    def dump(self) -> Any:
        """Return the state as JSON."""
        self._compare()
        return super().dump()

    # --- telling

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by topic."""
        self._compare()
        topics: dict[tuple[str, str], dict[Any, list[Written]]] = {}
        for key, judged in self.judged.items():
            topic, side, *said, way, client, host = key
            told = Written(Sort(*said), str(way), (str(client), str(host)), judged)
            # Old requests name a topic, and others have its id.
            same = topics.setdefault((view.topic(topic), str(side)), {})
            same.setdefault(topic, []).append(told)
        spaces = {
            told.verdict.namespace
            for same in topics.values()
            for every in same.values()
            for told in every
            if told.verdict.kind == "good"
        }
        for (_, side), same in topics.items():
            every = [told for each in same.values() for told in each]
            yield from _Topic(self, view, list(same), side, _written(every)).findings(spaces)


def _written(every: list[Written]) -> list[Written]:
    """Return what was said of produced records, and of fetched ones where nobody was seen to write
    the like: who wrote these is not in the capture."""
    produced = {told.verdict for told in every if told.way == "produce"}
    return [told for told in every if told.way == "produce" or told.verdict not in produced]


class _Topic:
    """The keys or the values of a topic."""

    def __init__(
        self, detector: Schemas, view: View, topics: list[Any], side: str, every: list[Written]
    ) -> None:
        """`topics`: its keys, one or two."""
        self.detector = detector
        self.view = view
        self.topics = topics
        # A filter by id tries the name, too.
        self.topic = min(topics, key=lambda key: not str(key).startswith(ID_MARK))
        self.side = side
        self.every = every
        self.name = view.topic(self.topic)
        self.usual = f"{self.name}-{side}"

    def kind(self, *kinds: str) -> list[Written]:
        """Return what has one of these verdicts."""
        return [told for told in self.every if told.verdict.kind in kinds]

    def findings(self, spaces: set[str]) -> Iterator[Finding]:
        """Yield all findings; `spaces`: namespaces of which any topic has good ids."""
        if self.every and all(told.verdict.kind == "plain" for told in self.every):
            return
        yield from self.misfits()
        yield from self.unknown(spaces)
        yield from self.mixed()
        yield from self.breaks()
        yield from self.of_keys()

    # --- rules

    def misfits(self) -> Iterator[Finding]:
        """Yield what does not fit."""
        good = self.share() >= limit("schemas.share")
        for told in self.kind("misfit"):
            if not (told.judged.certain or good or self.usual in self.subjects(told)):
                continue  # a number may begin like the id of a schema
            fits = "does not match its" if told.judged.count == 1 else "do not match their"
            *_, path, text = told.judged.record or ("", "")
            why = f"{spelled(path)}: {spelled(text)}" if path else spelled(text)
            yield self.finding(
                "schema-misfit",
                f"{self.of(told)} {fits} schema, {self.schema(told)}: {why} ({self.first(told)})",
                [told],
                milder=self.formats(told) == {"json"},
            )

    def unknown(self, spaces: set[str]) -> Iterator[Finding]:
        """Yield ids that nobody knows."""
        good = {told.verdict.namespace for told in self.kind("good")}
        for told in self.kind("unknown"):
            here = told.verdict.namespace in good
            alone = told.verdict.namespace in spaces and not self.kind("plain")
            if not (here or alone or (told.judged.certain and told.verdict.namespace in spaces)):
                continue
            uses = "uses" if told.judged.count == 1 else "use"
            others = "other ids of the topic are known" if here else "ids of other topics are known"
            yield self.finding(
                "schema-unknown",
                f"{self.of(told)} {uses} an unknown schema, {self.id(told)}; {others} "
                f"({self.first(told)})",
                [told],
                # A capture may lack what clients asked for before it began.
                milder=not self.given(),
            )

    def mixed(self) -> Iterator[Finding]:
        """Yield what is of another kind than the rest."""
        framed, plain = self.kind("good", "misfit", "unknown"), self.kind("plain")
        good = self.kind("good")
        formats: dict[str, int] = {}
        for told in good:
            formats[told.verdict.word] = formats.get(told.verdict.word, 0) + told.judged.count
        all_ = sum(told.judged.count for told in (*framed, *plain))
        if plain and good:
            enough = self.share() >= limit("schemas.share")
            if enough:
                for told in plain:
                    has = "has" if told.judged.count == 1 else "have"
                    yield self.finding(
                        "schema-mixed",
                        f"{self.of(told)} {has} no schema, unlike others of the {all_:,} "
                        f"({self.first(told)})",
                        [told],
                    )
            elif any(self.usual in self.subjects(told) for told in good):
                for told in good:
                    has = "has" if told.judged.count == 1 else "have"
                    yield self.finding(
                        "schema-mixed",
                        f"{self.of(told)} {has} a schema, {self.schema(told)}, unlike others of "
                        f"the {all_:,} ({self.first(told)})",
                        [told],
                    )
        if len(formats) > 1:
            usual = max(formats, key=lambda word: (formats[word], word))
            for told in good:
                if told.verdict.word != usual:
                    is_ = "is" if told.judged.count == 1 else "are"
                    yield self.finding(
                        "schema-mixed",
                        f"{self.of(told)} {is_} {told.verdict.word}; the others are {usual} "
                        f"({self.first(told)})",
                        [told],
                    )

    def breaks(self) -> Iterator[Finding]:
        """Yield changes that break readers."""
        found: dict[tuple[Any, ...], Change] = {}
        for (topic, side, *about), change in self.detector.changes.items():
            if topic in self.topics and side == self.side and len(change.said):
                found[tuple(about)] = change
        for (subject, space, old, new), change in found.items():
            by = [told for told in self.kind("good") if told.verdict.schema == (space, new)]
            if not by:
                continue
            ids = f"{space} {old} to {new}"
            yield self.finding(
                "schema-breaks",
                f"Subject {spelled(subject)} changed incompatibly from {ids}; topic {self.name} "
                f"has {self.side}s of both: {'; '.join(map(spelled, change.said))}",
                by,
                count=1,
            )

    def of_keys(self) -> Iterator[Finding]:
        """Yield values with schemas of keys."""
        if self.side != "value":
            return
        for told in self.kind("good", "misfit"):
            subjects = self.subjects(told)
            if f"{self.name}-key" in subjects and all(each.endswith("-key") for each in subjects):
                is_ = "is" if told.judged.count == 1 else "are"
                yield self.finding(
                    "schema-of-key",
                    f"{self.of(told)} {is_} written with the schema of keys, {self.schema(told)} "
                    f"({self.first(told)})",
                    [told],
                )

    # --- words

    def share(self) -> int:
        """Percent of the keys or values that name a schema."""
        framed = sum(told.judged.count for told in self.kind("good", "misfit", "unknown"))
        plain = sum(told.judged.count for told in self.kind("plain"))
        good = sum(told.judged.count for told in self.kind("good"))
        return 100 * framed // (framed + plain) if good else 0

    def described(self, told: Written) -> Described | None:
        """Return what is known of the schema."""
        return self.detector.described.get((told.verdict.namespace, told.verdict.id))

    def subjects(self, told: Written) -> list[str]:
        """Return the subjects of the schema."""
        described = self.described(told)
        return [] if described is None else list(described.subjects)

    def given(self) -> bool:
        """Whether schemas come from a registry or a folder, which has them all."""
        every = (described.sources for described in self.detector.described.values())
        return any(source != "capture" for sources in every for source in sources)

    def formats(self, told: Written) -> set[str]:
        """Return the formats of what fits the same schema."""
        return {
            each.verdict.word
            for each in self.kind("good")
            if each.verdict.schema == told.verdict.schema
        }

    def id(self, told: Written) -> str:
        """Return the id of the schema."""
        space, id_ = told.verdict.namespace, told.verdict.id
        return f"{space} {spelled(id_)}"

    def schema(self, told: Written) -> str:
        """Return the id of the schema and a subject."""
        subjects = self.subjects(told)
        usual = [one for one in (self.usual, f"{self.name}-key") if one in subjects] or subjects
        return self.id(told) + (f" of subject {spelled(usual[0])}" if usual else "")

    def of(self, told: Written) -> str:
        """Return how many they are and who wrote them."""
        who = f" by {self.who(told)}" if told.way == "produce" else ""
        return f"{plural(told.judged.count, self.side)} of topic {self.name}{who}"

    def who(self, told: Written) -> str:
        """Return who wrote them."""
        return self.view.client(*told.client)

    def first(self, told: Written) -> str:
        """Return where the first one is."""
        record = told.judged.record or ("",) * 8
        partition, offset = record[4], record[5]
        at = f"partition {partition}" + (f", offset {offset}" if offset != -1 else "")
        first = "first " if told.judged.count > 1 else ""
        unseen = "" if told.way == "produce" else "; its producer is not in the capture"
        left = any((topic,) in self.detector.left for topic in self.topics)
        some = "; only some records were inspected" if left else ""
        return f"{first}{at}{unseen}{some}"

    def finding(
        self,
        rule: str,
        text: str,
        by: list[Written],
        *,
        milder: bool = False,
        count: int | None = None,
    ) -> Finding:
        """Return a finding about these."""
        firsts = [told.judged.first for told in by if told.judged.first is not None]
        numbers = {number for _, number in firsts}
        numbers.update(event.number for told in by for event in told.judged.exchanges)
        found = self.detector.rule(rule)
        worse = "warning" if found.severity == "error" else "note"
        return self.view.finding(
            found,
            text,
            all_of(self.view.of_topic(self.topic), among("number", numbers)),
            count=sum(told.judged.count for told in by) if count is None else count,
            first_ns=min(firsts)[0] if firsts else None,
            last_ns=max((told.judged.last_ns or 0 for told in by), default=None),
            number=min(firsts)[1] if firsts else None,
            severity=worse if milder else None,  # type: ignore[arg-type]
            about=list(self.about(by)),
        )

    def about(self, by: Iterable[Written]) -> Iterator[tuple[str, str]]:
        """Yield the entities."""
        for who in dict.fromkeys(self.who(told) for told in by if told.way == "produce"):
            yield "client", who
        yield "topic", self.name
