"""Keys and values that do not fit their schemas, and topics that hold something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final, Self

from kafkascope.analyzer.findings.counting import Keyed, table
from kafkascope.analyzer.findings.filters import all_of, among
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.payloads import (
    Change,
    Inspection,
    SampledBatch,
    SamplingBudget,
    SchemaUse,
    SchemaVerdict,
    Uninspected,
    VerdictTally,
    WriterVerdict,
    inspect_batch,
    internal,
    name_in,
    take,
    writer,
)
from kafkascope.analyzer.findings.rules import RULES, limit
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Finding, Row
from kafkascope.analyzer.findings.words import plural, spelled
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch, PartitionColumns
from kafkascope.analyzer.statistics.model import ID_MARK
from kafkascope.dissectors.records.batches import CONTROL

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.analyzer.payloads.model import Schema

NO_NAMES: Final = ID_MARK + "_"
"""What topics begin with that have an id for a name, or are perhaps Kafka's own."""


class Schemas(Counts):
    """By topic, side (key or value), verdict, and writer."""

    judged: Keyed[VerdictTally] = table(VerdictTally, LIMITS.verdicts)
    """By topic, side, verdict (kind, namespace, id, word), way, client id and host."""
    described: Keyed[SchemaUse] = table(SchemaUse, LIMITS.verdicts)
    """By namespace and id."""
    changes: Keyed[Change] = table(Change, LIMITS.few_keys)
    """By topic, side, subject, namespace, old id and new id."""
    left: Keyed[Uninspected] = table(Uninspected, LIMITS.few_keys)
    """By topic."""

    def __init__(self) -> None:
        super().__init__()
        self._met: dict[tuple[Any, str], dict[tuple[str, Any], tuple[Schema, str]]] = {}
        """By topic and side: schemas that were met in this process and what they describe, by
        namespace and id."""

    @cached_property
    def _budget(self) -> SamplingBudget:
        return SamplingBudget(self.limits)

    # --- looking

    def add(self, batch: ExchangeBatch) -> None:
        """Look at some keys and values."""
        payloads = self.payloads
        if payloads is None or payloads.known.empty or batch.way == "replica":
            return  # without any schema nothing is told
        chosen: dict[int, list[SampledBatch]] = {}
        for (topic, partition, _), parts in batch.parts.items():
            if topic is not None and parts.counts:
                self._sample(batch, topic, partition, parts, chosen)
        for number, samples in chosen.items():
            self._look(batch.row_of(number), payloads, samples)

    def _sample(
        self,
        batch: ExchangeBatch,
        topic: str,
        partition: int,
        parts: PartitionColumns,
        chosen: dict[int, list[SampledBatch]],
    ) -> None:
        """Add those record batches of a partition that the budget takes, by exchange."""
        way, name = batch.way, None if topic[0] in NO_NAMES else topic
        for number, offset, blob, batches, counts in parts.by_records():
            if name is None:
                name = name_in(batch.row_of(number), topic)
            if internal(name):
                continue
            for at, (each, count) in enumerate(zip(batches, counts, strict=True)):
                if not each.attributes & CONTROL or not each.control:
                    if self._budget.takes(way, count, topic, each.crc):
                        sample = SampledBatch(topic, name, way, partition, at, offset, blob, each)
                        chosen.setdefault(number, []).append(sample)
                    else:
                        self.left[(topic,)].count += count
                if offset is not None:
                    offset += count

    def _look(self, row: Row, payloads: Payloads, samples: Iterable[SampledBatch]) -> None:
        """Look at record batches of an exchange."""
        found: dict[tuple[Any, ...], tuple[Inspection, int]] = {}
        for each in samples:
            for look, count in inspect_batch(payloads, each):
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

    def _describe(self, topic: Any, look: Inspection) -> None:
        schema, verdict = look.schema, look.verdict
        if schema is None:
            return
        about = verdict.namespace, verdict.id
        described = self.described[about]
        for name, _ in schema.subjects:
            described.subjects.add(name)
        described.sources.add(schema.source)
        if verdict.kind == "good" and len(self._met) < LIMITS.verdicts:
            self._met.setdefault((topic, look.side), {})[about] = schema, look.type

    def _compare(self) -> None:
        from kafkascope.analyzer.payloads.known import breaking_changes

        for (topic, side), met in self._met.items():
            by_subject = by_key(
                ((subject, type_), (version, about, schema))
                for about, (schema, type_) in met.items()
                # Of two nameless types nobody says that they are one.
                if type_ or schema.format != "avro"
                for subject, version in schema.subjects
            )
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
                    for said in breaking_changes(before, after)[: LIMITS.changes]:
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

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        """Yield findings by topic."""
        self._compare()
        topics: dict[tuple[str, str], dict[Any, list[WriterVerdict]]] = {}
        spaces: set[str] = set()
        for (topic, side, *said, way, client, host), judged in self.judged.items():
            told = WriterVerdict(SchemaVerdict(*said), way, (client, host), judged)
            # Old requests name a topic, and others have its id.
            same = topics.setdefault((view.topic(topic), side), {})
            same.setdefault(topic, []).append(told)
            spaces |= {told.verdict.namespace} if told.verdict.kind == "good" else set()
        for (_, side), same in topics.items():
            every = list(chain.from_iterable(same.values()))
            # Of fetched records only what nobody was seen to write the like of: who wrote these is
            # not in the capture.
            produced = {told.verdict for told in every if told.way == "produce"}
            written = [e for e in every if e.way == "produce" or e.verdict not in produced]
            yield from _Topic(self, view, list(same), side, written).findings(spaces)


class _Topic:
    """The keys or the values of a topic."""

    def __init__(
        self,
        detector: Schemas,
        view: DetectorInput,
        topics: list[Any],
        side: str,
        every: list[WriterVerdict],
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
        self.good = self.kind("good")
        self.plain = self.kind("plain")
        framed, plain = self.count("good", "misfit", "unknown"), self.count("plain")
        self.framed = bool(self.good) and (
            100 * framed // (framed + plain) >= limit("schemas.share")
        )
        """Most keys or values name a schema."""

    def kind(self, *kinds: str) -> list[WriterVerdict]:
        """Return what has one of these verdicts."""
        return [told for told in self.every if told.verdict.kind in kinds]

    def count(self, *kinds: str) -> int:
        """Return how many keys or values have one of these verdicts."""
        return sum(told.judged.count for told in self.kind(*kinds))

    def findings(self, spaces: set[str]) -> Iterator[Finding]:
        """Yield all findings; `spaces`: namespaces of which any topic has good ids."""
        if len(self.plain) < len(self.every):
            yield from self.misfits()
            yield from self.unknown(spaces)
            yield from self.mixed()
            yield from self.breaks()
            yield from self.of_keys()

    # --- rules

    def misfits(self) -> Iterator[Finding]:
        """Yield what does not fit."""
        for told in self.kind("misfit"):
            if not (told.judged.certain or self.framed or self.usual in self.subjects(told)):
                continue  # a number may begin like the id of a schema
            *_, path, text = told.judged.record or ("", "")
            why = f"{spelled(path)}: {spelled(text)}" if path else spelled(text)
            formats = {e.verdict.word for e in self.good if e.verdict.schema == told.verdict.schema}
            yield self.of_one(
                "schema-misfit",
                told,
                ("does not match its", "do not match their"),
                f"schema, {self.schema(told)}: {why}",
                milder=formats == {"json"},
            )

    def unknown(self, spaces: set[str]) -> Iterator[Finding]:
        """Yield unknown schema ids."""
        good = {told.verdict.namespace for told in self.good}
        # Schemas of a registry or a folder are all there are. A capture may lack what clients asked
        # for before it began.
        sources = (each.sources for _, each in self.detector.described.items())
        given = any(source != "capture" for each in sources for source in each)
        for told in self.kind("unknown"):
            here = told.verdict.namespace in good
            likely = told.verdict.namespace in spaces and (told.judged.certain or not self.plain)
            if here or likely:
                of = "other ids of the topic are known" if here else "ids of other topics are known"
                text = f"an unknown schema, {self.id(told)}; {of}"
                yield self.of_one("schema-unknown", told, ("uses", "use"), text, milder=not given)

    def mixed(self) -> Iterator[Finding]:
        """Yield what is of another kind than the rest."""
        if self.plain and self.good:
            odd = self.plain
            if not self.framed:
                odd = self.good if any(self.usual in self.subjects(e) for e in self.good) else []
            every = self.count("good", "misfit", "unknown", "plain")
            for told in odd:
                schema = "no schema" if odd is self.plain else f"a schema, {self.schema(told)}"
                text = f"{schema}, unlike others of the {every:,}"
                yield self.of_one("schema-mixed", told, ("has", "have"), text)
        formats: Counter[str] = Counter()
        for told in self.good:
            formats[told.verdict.word] += told.judged.count
        usual = max(formats, key=lambda word: (formats[word], word), default="")
        for told in self.good:
            if told.verdict.word != usual:
                text = f"{told.verdict.word}; the others are {usual}"
                yield self.of_one("schema-mixed", told, ("is", "are"), text)

    def breaks(self) -> Iterator[Finding]:
        """Yield changes that break readers."""
        found = {
            about[2:]: change
            for about, change in self.detector.changes.items()
            if about[0] in self.topics and about[1] == self.side and len(change.said)
        }
        for (subject, space, old, new), change in found.items():
            by = [told for told in self.good if told.verdict.schema == (space, new)]
            if by:
                yield self.finding(
                    "schema-breaks",
                    f"Subject {spelled(subject)} changed incompatibly from {space} {old} to {new}; "
                    f"topic {self.name} has {self.side}s of both: "
                    f"{'; '.join(map(spelled, change.said))}",
                    by,
                    count=1,
                )

    def of_keys(self) -> Iterator[Finding]:
        """Yield values with schemas of keys."""
        for told in self.kind("good", "misfit") if self.side == "value" else ():
            subjects = self.subjects(told)
            if f"{self.name}-key" in subjects and all(each.endswith("-key") for each in subjects):
                text = f"written with the schema of keys, {self.schema(told)}"
                yield self.of_one("schema-of-key", told, ("is", "are"), text)

    # --- words

    def subjects(self, told: WriterVerdict) -> list[str]:
        """Return the subjects of the schema."""
        described = self.detector.described.get(told.verdict.schema)
        return [] if described is None else list(described.subjects)

    def id(self, told: WriterVerdict) -> str:
        """Return the id of the schema."""
        return f"{told.verdict.namespace} {spelled(told.verdict.id)}"

    def schema(self, told: WriterVerdict) -> str:
        """Return the id of the schema and a subject."""
        subjects = self.subjects(told)
        usual = [one for one in (self.usual, f"{self.name}-key") if one in subjects] or subjects
        return self.id(told) + (f" of subject {spelled(usual[0])}" if usual else "")

    def of_one(
        self,
        rule: str,
        told: WriterVerdict,
        verbs: tuple[str, str],
        text: str,
        *,
        milder: bool = False,
    ) -> Finding:
        """Return a finding about keys or values of one verdict: how many they are, their writers,
        where the first one is; `verbs`: for one, and for more."""
        produced, count = told.way == "produce", told.judged.count
        who = f" by {self.view.client(*told.client)}" if produced else ""
        partition, offset = (told.judged.record or ("",) * 8)[4:6]
        at = f"{'first ' if count > 1 else ''}partition {partition}"
        at += f", offset {offset}" if offset != -1 else ""
        at += "" if produced else "; its producer is not in the capture"
        left = any((topic,) in self.detector.left for topic in self.topics)
        at += "; only some records were inspected" if left else ""
        of = f"{plural(count, self.side)} of topic {self.name}{who}"
        text = f"{of} {verbs[count != 1]} {text} ({at})"
        return self.finding(rule, text, [told], milder=milder)

    def finding(
        self,
        rule: str,
        text: str,
        by: list[WriterVerdict],
        *,
        milder: bool = False,
        count: int | None = None,
    ) -> Finding:
        """Return a finding about these."""
        firsts = [told.judged.first for told in by if told.judged.first is not None]
        numbers = {number for _, number in firsts}
        numbers.update(event.number for told in by for event in told.judged.exchanges)
        worse: Severity = "warning" if RULES[rule].severity == "error" else "note"
        writers = (told.client for told in by if told.way == "produce")
        return self.view.finding(
            rule,
            text,
            all_of(self.view.of_topic(self.topic), among("number", numbers)),
            count=sum(told.judged.count for told in by) if count is None else count,
            span=(
                min(firsts)[0] if firsts else None,
                max((told.judged.last_ns or 0 for told in by), default=None),
            ),
            number=min(firsts)[1] if firsts else None,
            severity=worse if milder else None,
            about={
                "client": dict.fromkeys(self.view.client(*each) for each in writers),
                "topic": self.name,
            },
        )
