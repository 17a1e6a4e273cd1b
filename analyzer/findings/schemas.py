"""Findings about keys and values: misfits, unknown schemas, mixed topics, incompatible changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final, Self

from kafkascope.analyzer.findings.filters import all_of, among
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.payloads import (
    Change,
    Inspection,
    Place,
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
)
from kafkascope.analyzer.findings.rules import RULES, limit
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Finding
from kafkascope.analyzer.findings.words import plural, spelled
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch, PartitionColumns
from kafkascope.analyzer.statistics.model import ID_MARK
from kafkascope.dissectors.records.batches import CONTROL

if TYPE_CHECKING:
    from kafkascope.schemas.decoding import Payloads
    from kafkascope.schemas.model import Schema

NO_NAMES: Final = ID_MARK + "_"
"""First characters of topics that are given by id, and of names that may be internal topics."""


class Schemas(Counts):
    """By topic, side (key or value), verdict, and writer."""

    judged = VerdictTally.table(LIMITS.verdicts)
    """Tallies by topic, side, verdict (kind, namespace, id, word), way, client id and host."""
    described = SchemaUse.table(LIMITS.verdicts)
    """By namespace and id."""
    changes = Change.table(LIMITS.few_keys)
    """By topic, side, subject, namespace, old id and new id."""
    left = Uninspected.table(LIMITS.few_keys)
    """By topic."""

    def __init__(self) -> None:
        super().__init__()
        self._in_use: dict[tuple[Any, str], dict[tuple[str, Any], tuple[Schema, str]]] = {}
        """By topic and side: the schemas of good keys or values in this process, with the name of
        the type, by namespace and id. `_compare` turns them into `changes`, which are stored."""

    @cached_property
    def _budget(self) -> SamplingBudget:
        return SamplingBudget(self.limits)

    # --- inspection

    def add(self, batch: ExchangeBatch) -> None:
        payloads = self.payloads
        if payloads is None or payloads.known.empty or batch.way == "replica":
            return  # without any schema there are no findings
        # The writers of fetched records are unknown.
        client = batch.client if batch.way == "produce" else ("", "")
        chosen: dict[Place, list[SampledBatch]] = {}
        for (topic, partition, _), parts in batch.parts.items():
            if topic is not None and parts.counts:
                self._sample(batch, topic, partition, parts, chosen)
        seen: dict[tuple[Any, ...], list[tuple[Place, Inspection, int]]] = {}
        for place, samples in chosen.items():
            for key, (inspection, count) in self._inspect(payloads, samples).items():
                seen.setdefault(key, []).append((place, inspection, count))
        for key, inspections in seen.items():
            self.judged[(*key, *client)].see_all(inspections)

    def _sample(
        self,
        batch: ExchangeBatch,
        topic: str,
        partition: int,
        parts: PartitionColumns,
        chosen: dict[Place, list[SampledBatch]],
    ) -> None:
        """Add the record batches of a partition that the budget takes to `chosen`, keyed by the
        place of their exchange."""
        way, name = batch.way, None if topic[0] in NO_NAMES else topic
        if internal(name):
            return
        budget, left = self._budget.of(topic, way), 0
        begins, numbers = parts.by_batch(parts.begins), parts.by_batch(parts.numbers)
        ids, within, before = parts.by_batch(parts.ids), parts.within, parts.before
        bases, blobs = parts.by_batch(parts.base_offsets), parts.by_batch(parts.blobs)
        for at, (record_batch, count) in enumerate(zip(parts.batches, parts.counts, strict=True)):
            base, named = bases[at], name
            if named is None and internal(named := name_in(batch.row_of(numbers[at]), topic)):
                continue
            if record_batch.attributes & CONTROL and record_batch.control:
                continue
            if budget is None or not budget.takes(count, record_batch.crc):
                left += count
                continue
            offset = None if base is None else base + before[at]
            position = partition, within[at], offset
            sample = SampledBatch(topic, budget, named, way, *position, blobs[at], record_batch)
            chosen.setdefault((begins[at], ids[at], numbers[at]), []).append(sample)
        if left:
            self.left[(topic,)].count += left

    def _inspect(
        self, payloads: Payloads, samples: Iterable[SampledBatch]
    ) -> dict[tuple[Any, ...], tuple[Inspection, int]]:
        """Inspect record batches of an exchange; return one inspection and a count by verdict."""
        verdicts: dict[tuple[Any, ...], tuple[Inspection, int]] = {}
        for sample in samples:
            for inspection, count in inspect_batch(payloads, sample):
                if inspection.verdict.kind != "plain":
                    sample.budget.framed = True
                key = (sample.topic, inspection.side, *inspection.verdict, sample.way)
                earlier = verdicts.get(key)
                if earlier is None:
                    verdicts[key] = inspection, count
                    self._describe(sample.topic, inspection)
                else:
                    first = min(earlier[0], inspection, key=lambda one: one.record)
                    certain = earlier[0].certain or inspection.certain
                    verdicts[key] = first._replace(certain=certain), earlier[1] + count
        return verdicts

    def _describe(self, topic: Any, inspection: Inspection) -> None:
        """Note subjects and sources of the schema of a key or value."""
        schema, verdict = inspection.schema, inspection.verdict
        if schema is None:
            return
        described = self.described[verdict.schema]
        for name, _ in schema.subjects:
            described.subjects.add(name)
        described.sources.add(schema.source)
        if verdict.kind == "good" and len(self._in_use) < LIMITS.verdicts:
            in_use = self._in_use.setdefault((topic, inspection.side), {})
            in_use[verdict.schema] = schema, inspection.type

    def _compare(self) -> None:
        """Compare each schema in use with the next version of its subject, if the same keys or
        values use both: only then a reader has to read both."""
        from kafkascope.schemas.known import breaking_changes

        for (topic, side), in_use in self._in_use.items():
            by_subject = by_key(
                ((subject, type_), (version, key, schema))
                for key, (schema, type_) in in_use.items()
                # Two Avro schemas without a name (unions) need not be versions of one type.
                if type_ or schema.format != "avro"
                for subject, version in schema.subjects
            )
            for (subject, _), versions in by_subject.items():
                if all(version for version, _, _ in versions):
                    versions.sort(key=lambda version: (version[0], str(version[1])))
                elif all(isinstance(key[1], int) for _, key, _ in versions):
                    # A response to a registration has no version number. Then ids give the order:
                    # registries count them upward.
                    versions.sort(key=lambda version: (version[1][0], int(version[1][1])))
                else:
                    continue
                for (_, old, before), (_, new, after) in pairwise(versions):
                    if old[0] != new[0] or before.text == after.text:
                        continue
                    key = (topic, side, subject, old[0], old[1], new[1])
                    if key in self.changes:
                        continue
                    for change in breaking_changes(before, after)[: LIMITS.changes]:
                        self.changes[key].said.add(change)

    # --- state

    def merge(self, other: Self) -> None:
        """Take in what the other one has."""
        super().merge(other)
        for key, in_use in other._in_use.items():
            self._in_use.setdefault(key, {}).update(in_use)

    def dump(self) -> Any:
        """Return the state as JSON."""
        self._compare()
        return super().dump()

    # --- findings

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        self._compare()
        topics: dict[tuple[str, str], dict[Any, list[WriterVerdict]]] = {}
        namespaces: set[str] = set()
        for (topic, side, *verdict, way, client, host), tally in self.judged.items():
            entry = WriterVerdict(SchemaVerdict(*verdict), way, (client, host), tally)
            # One topic may have two keys: old requests have its name, newer ones its id.
            same = topics.setdefault((view.topic(topic), side), {})
            same.setdefault(topic, []).append(entry)
            namespaces |= {entry.verdict.namespace} if entry.verdict.kind == "good" else set()
        for (_, side), same in topics.items():
            entries = list(chain.from_iterable(same.values()))
            # Verdicts on fetched records, whose writers are unknown, count only if no Produce has
            # the same verdict.
            produced = {entry.verdict for entry in entries if entry.way == "produce"}
            written = [
                entry
                for entry in entries
                if entry.way == "produce" or entry.verdict not in produced
            ]
            yield from _Topic(self, view, list(same), side, written).findings(namespaces)


class _Topic:
    """The rules on the keys, or the values, of one topic."""

    def __init__(
        self,
        detector: Schemas,
        view: DetectorInput,
        topics: list[Any],
        side: str,
        entries: list[WriterVerdict],
    ) -> None:
        """`topics`: the topic's keys in `Schemas`, its name or id or both. `entries`: verdicts."""
        self.detector = detector
        self.view = view
        self.topics = topics
        # The id if there is one: a filter by id also matches the name.
        self.topic = min(topics, key=lambda key: not str(key).startswith(ID_MARK))
        self.side = side
        self.entries = entries
        self.name = view.topic(self.topic)
        self.default_subject = f"{self.name}-{side}"
        self.good = self.kind("good")
        self.plain = self.kind("plain")
        framed, plain = self.count("good", "misfit", "unknown"), self.count("plain")
        self.framed = bool(self.good) and (
            100 * framed // (framed + plain) >= limit("schemas.share")
        )
        """Most keys or values name a schema."""

    def kind(self, *kinds: str) -> list[WriterVerdict]:
        """Return the verdicts of these kinds."""
        return [entry for entry in self.entries if entry.verdict.kind in kinds]

    def count(self, *kinds: str) -> int:
        """Return the count of keys or values with verdicts of these kinds."""
        return sum(entry.judged.count for entry in self.kind(*kinds))

    def findings(self, namespaces: set[str]) -> Iterator[Finding]:
        """Yield all findings; `namespaces`: of good ids in any topic."""
        if len(self.plain) < len(self.entries):
            yield from self.misfits()
            yield from self.unknown(namespaces)
            yield from self.mixed()
            yield from self.breaks()
            yield from self.of_keys()

    # --- rules

    def misfits(self) -> Iterator[Finding]:
        """Yield keys or values that do not match their schema."""
        for entry in self.kind("misfit"):
            named = entry.judged.certain or self.default_subject in self.subjects(entry)
            if not (named or self.framed):
                continue  # by chance: a number may begin like the id of a schema
            *_, path, text = entry.judged.record or ("", "")
            why = f"{spelled(path)}: {spelled(text)}" if path else spelled(text)
            key = entry.verdict.schema
            formats = {good.verdict.word for good in self.good if good.verdict.schema == key}
            yield self.of_one(
                "schema-misfit",
                entry,
                ("does not match its", "do not match their"),
                f"schema, {self.schema(entry)}: {why}",
                milder=formats == {"json"},
            )

    def unknown(self, namespaces: set[str]) -> Iterator[Finding]:
        """Yield unknown schema ids."""
        good = {entry.verdict.namespace for entry in self.good}
        # A registry or a folder has all schemas; a capture lacks the ones that clients looked up
        # before it began. So without registry and folder the severity is lower.
        sources = (each.sources for _, each in self.detector.described.items())
        given = any(source != "capture" for each in sources for source in each)
        for entry in self.kind("unknown"):
            here = entry.verdict.namespace in good
            certain = entry.judged.certain or not self.plain
            if here or (certain and entry.verdict.namespace in namespaces):
                of = "other ids of the topic are known" if here else "ids of other topics are known"
                text = f"an unknown schema, {self.id(entry)}; {of}"
                yield self.of_one("schema-unknown", entry, ("uses", "use"), text, milder=not given)

    def mixed(self) -> Iterator[Finding]:
        """Yield keys or values of another format than most in the topic."""
        if self.plain and self.good:
            exceptions = self.plain
            if not self.framed:
                by_default = (self.default_subject in self.subjects(entry) for entry in self.good)
                exceptions = self.good if any(by_default) else []
            total = self.count("good", "misfit", "unknown", "plain")
            for entry in exceptions:
                plain = exceptions is self.plain
                schema = "no schema" if plain else f"a schema, {self.schema(entry)}"
                text = f"{schema}, unlike others of the {total:,}"
                yield self.of_one("schema-mixed", entry, ("has", "have"), text)
        formats: Counter[str] = Counter()
        for entry in self.good:
            formats[entry.verdict.word] += entry.judged.count
        usual = max(formats, key=lambda word: (formats[word], word), default="")
        for entry in self.good:
            if entry.verdict.word != usual:
                text = f"{entry.verdict.word}; the others are {usual}"
                yield self.of_one("schema-mixed", entry, ("is", "are"), text)

    def breaks(self) -> Iterator[Finding]:
        """Yield changes that break readers."""
        found = {
            about[2:]: change
            for about, change in self.detector.changes.items()
            if about[0] in self.topics and about[1] == self.side and len(change.said)
        }
        for (subject, space, old, new), change in found.items():
            by = [entry for entry in self.good if entry.verdict.schema == (space, new)]
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
        for entry in self.kind("good", "misfit") if self.side == "value" else ():
            subjects = self.subjects(entry)
            if f"{self.name}-key" in subjects and all(each.endswith("-key") for each in subjects):
                text = f"written with the schema of keys, {self.schema(entry)}"
                yield self.of_one("schema-of-key", entry, ("is", "are"), text)

    # --- words

    def subjects(self, entry: WriterVerdict) -> list[str]:
        """Return the subjects of the schema."""
        described = self.detector.described.get(entry.verdict.schema)
        return [] if described is None else list(described.subjects)

    def id(self, entry: WriterVerdict) -> str:
        """Return the id of the schema."""
        return f"{entry.verdict.namespace} {spelled(entry.verdict.id)}"

    def schema(self, entry: WriterVerdict) -> str:
        """Return the id of the schema and a subject, preferably one of this topic."""
        subjects = self.subjects(entry)
        names = (self.default_subject, f"{self.name}-key", *subjects)
        subject = next((name for name in names if name in subjects), None)
        return self.id(entry) + ("" if subject is None else f" of subject {spelled(subject)}")

    def of_one(
        self,
        rule: str,
        entry: WriterVerdict,
        verbs: tuple[str, str],
        text: str,
        *,
        milder: bool = False,
    ) -> Finding:
        """Return a finding about keys or values of one verdict: their number, their writer, and the
        place of the first. `verbs`: singular and plural."""
        produced, count = entry.way == "produce", entry.judged.count
        writer = f" by {self.view.client(*entry.client)}" if produced else ""
        partition, offset = (entry.judged.record or ("",) * 8)[4:6]
        at = f"{'first ' if count > 1 else ''}partition {partition}"
        at += f", offset {offset}" if offset != -1 else ""
        at += "" if produced else "; its producer is not in the capture"
        left = any((topic,) in self.detector.left for topic in self.topics)
        at += "; only some records were inspected" if left else ""
        of = f"{plural(count, self.side)} of topic {self.name}{writer}"
        text = f"{of} {verbs[count != 1]} {text} ({at})"
        return self.finding(rule, text, [entry], milder=milder)

    def finding(
        self,
        rule: str,
        text: str,
        by: list[WriterVerdict],
        *,
        milder: bool = False,
        count: int | None = None,
    ) -> Finding:
        """Return a finding about keys or values of these verdicts."""
        firsts = [entry.judged.first for entry in by if entry.judged.first is not None]
        numbers = {number for _, number in firsts}
        numbers.update(event.number for entry in by for event in entry.judged.exchanges)
        worse: Severity = "warning" if RULES[rule].severity == "error" else "note"
        writers = (entry.client for entry in by if entry.way == "produce")
        return self.view.finding(
            rule,
            text,
            all_of(self.view.of_topic(self.topic), among("number", numbers)),
            count=sum(entry.judged.count for entry in by) if count is None else count,
            span=(
                min(firsts)[0] if firsts else None,
                max((entry.judged.last_ns or 0 for entry in by), default=None),
            ),
            number=min(firsts)[1] if firsts else None,
            severity=worse if milder else None,
            about={
                "client": dict.fromkeys(self.view.client(*each) for each in writers),
                "topic": self.name,
            },
        )
