"""Facts of bodies: topics, partitions, groups, errors and records, collected by a function that is
generated once per layout from the marks of the declaration (entity) and Kafka's names.

Only the parts of a message with such facts are visited.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, Final, NamedTuple, Protocol

from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.codec.source import Lines, compile_function
from kafkascope.dissectors.layout import (
    ArrayWire,
    BytesWire,
    Layout,
    NumberWire,
    Slot,
    StructWire,
    UuidWire,
)

PARTITION_NAMES: Final = frozenset({"partition", "partition_index", "partition_id"})
"""Fields with partition numbers; `index` is one too inside a topic."""
PARTITION_LISTS: Final = frozenset({"partitions", "partition_indexes"})
GENERATIONS: Final = frozenset(
    {"generation_id", "generation", "member_epoch", "generation_id_or_member_epoch"}
)
ENTITY_HOMES: Final = {
    "topicName": "topics",
    "groupId": "groups",
    "producerId": "producer_ids",
    "transactionalId": "transactional_ids",
}


class BodyFacts(NamedTuple):
    """Facts of the two bodies of an exchange, in the order of the wire, without duplicates."""

    topics: tuple[str, ...] = ()
    topic_ids: tuple[bytes, ...] = ()
    partitions: tuple[int, ...] = ()
    groups: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    generations: tuple[int, ...] = ()
    producer_ids: tuple[int, ...] = ()
    producer_epochs: tuple[int, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    errors: tuple[tuple[Any, ...], ...] = ()
    """Tuples (code, top, topic, topic id, partition, group, message); each that there is."""
    blobs: list[bytes] | None = None
    """Contents of records fields; None when the message has no such field. Empty bytes stand for
    null in a Fetch response; empty fields are left out."""
    acks: int | None = None
    throttle_ms: int = 0
    offset: int | None = None


NO_FACTS: Final = BodyFacts()

_BEGIN: Final = {
    name: "[]" if name == "errors" else "{}" if value == () else repr(value)
    for name, value in NO_FACTS._asdict().items()
}
"""What the collecting of each fact begins with. Dicts are used as sets that keep the order."""


class Collector(Protocol):
    """A generated function."""

    def __call__(self, asked: dict[str, Any] | None, told: dict[str, Any] | None, /) -> BodyFacts:
        """Return the facts of the two bodies."""


@cache
def collector(asked: Layout | None, answer: Layout | None) -> Collector:
    """Return what collects from a request and its response; None for one that is not there."""
    collecting = _Collecting()
    source = collecting.function(asked, answer)
    names = {"no_facts": NO_FACTS, "facts": partial(tuple.__new__, BodyFacts)}
    of = (f"{each.message.name} {each.version}" for each in (asked, answer) if each is not None)
    function: Collector = compile_function(
        "collect", source, names, f"facts of {', '.join(of) or 'nothing'}"
    )
    return function


@cache
def attributes(layout: Layout) -> frozenset[str]:
    """Return the attributes of `BodyFacts` that a body of a layout can fill."""
    return frozenset(_collected_from(layout).filled)


@cache
def read_by(layout: Layout) -> frozenset[int]:
    """Return the slots that the collector of a layout reads, as `reader` wants them."""
    return frozenset(_collected_from(layout).used)


def _collected_from(layout: Layout) -> _Collecting:
    collecting = _Collecting()
    collecting.body(layout, "body")
    return collecting


@cache
def teaches(layout: Layout) -> bool:
    """Return whether a body may hold pairs of topic id and name."""
    return _pairs(layout.body)


def _pairs(wire: Any) -> bool:
    if isinstance(wire, ArrayWire):
        return _pairs(wire.element)
    if not isinstance(wire, StructWire):
        return False
    slots = (*wire.slots, *wire.tags)
    return _pair_of(slots) is not None or any(_pairs(slot.wire) for slot in slots)


def _pair_of(slots: tuple[Slot, ...]) -> tuple[str, str] | None:
    """Return the fields of the topic's id and name where a struct has both."""
    ids = [s.name for s in slots if isinstance(s.wire, UuidWire) and "topic_id" in s.name]
    names = [
        s.name for s in slots if s.field.entity == "topicName" and not isinstance(s.wire, ArrayWire)
    ]
    return (ids[0], names[0]) if ids and names else None


def learn(layout: Layout, body: dict[str, Any], names: TopicNames) -> None:
    """Learn the names of topics in a body."""
    if teaches(layout):
        _learn(layout.body, body, names)


def _learn(wire: StructWire, value: dict[str, Any], names: TopicNames) -> None:
    slots = (*wire.slots, *wire.tags)
    pair = _pair_of(slots)
    if pair is not None:
        names.learn(value[pair[0]], value[pair[1]])
    for slot in slots:
        inner = slot.wire
        if isinstance(inner, ArrayWire):
            if isinstance(inner.element, StructWire) and _pairs(inner.element):
                for each in value[slot.name] or ():
                    _learn(inner.element, each, names)
        elif isinstance(inner, StructWire) and _pairs(inner) and value[slot.name] is not None:
            _learn(inner, value[slot.name], names)


class _Scope:
    """Variables of the generated code that hold the topic, partition and group of a struct."""

    def __init__(self, outer: _Scope | None = None) -> None:
        self.topic: str = outer.topic if outer else "None"
        self.topic_id: str = outer.topic_id if outer else "None"
        self.partition: str = outer.partition if outer else "None"
        self.group: str = outer.group if outer else "None"

    @property
    def in_topic(self) -> bool:
        return self.topic != "None" or self.topic_id != "None"


class _Collecting(Lines):
    def __init__(self) -> None:
        super().__init__()
        self.response = False
        self.nullable_records = False
        """Whether null in place of records is worth a word: in a Fetch response."""
        self.useful = False
        self.filled: set[str] = set()
        """Facts that may be found."""
        self.used: set[int] = set()
        """What `id` gives for the slots whose values are read."""

    def function(self, asked: Layout | None, answer: Layout | None) -> str:
        """Return the source of what collects from both."""
        self.depth = 1
        for layout, value in ((asked, "asked"), (answer, "told")):
            if layout is not None:
                self.body(layout, value)
        found, self.lines, self.depth = self.lines, [], 0
        self.add("def collect(asked, told):")
        self.depth = 1
        if not self.filled:
            self.add("return no_facts")
            return self.text()
        self.add(*(f"{name} = {_BEGIN[name]}" for name in BodyFacts._fields if name in self.filled))
        self.lines += found
        told = [
            repr(value) if name not in self.filled else f"tuple({name})" if value == () else name
            for name, value in NO_FACTS._asdict().items()
        ]
        self.add(f"return facts(({', '.join(told)}))")
        return self.text()

    def body(self, layout: Layout, value: str) -> None:
        """Emit the visit of a body that is the variable `value`."""
        self.response = layout.message.kind == "response"
        self.nullable_records = layout.message.name == "FetchResponse"
        self.struct(layout.body, value, _Scope(), top=True)
        if layout.message.name == "FindCoordinatorRequest":
            self.coordinator(layout, value)

    def coordinator(self, layout: Layout, value: str) -> None:
        """Emit code for the keys of FindCoordinator: groups or transactional ids (KIP-699)."""
        self.used.update(map(id, layout.body.slots))
        names = [slot.name for slot in layout.body.slots]
        kind = f"{value}['key_type']" if "key_type" in names else "0"
        many = "coordinator_keys" in names
        keys = f"{value}['coordinator_keys']" if many else f"({value}['key'],)"
        self.add(f"kind, keys = {kind}, {keys}")
        self.add("if kind == 0:", f"    {self.home('groups')}.update(dict.fromkeys(keys))")
        self.add("elif kind == 1:")
        self.add(f"    {self.home('transactional_ids')}.update(dict.fromkeys(keys))")

    def home(self, name: str) -> str:
        """Return the variable of a fact, of which one is found."""
        self.useful = True
        self.filled.add(name)
        return name

    def put(self, home: str, value: str) -> None:
        self.add(f"{self.home(home)}[{value}] = None")

    def struct(self, wire: StructWire, value: str, outer: _Scope, top: bool = False) -> None:
        scope = _Scope(outer)
        slots = (*wire.slots, *wire.tags)
        for slot in slots:
            self.scalar(slot, value, scope)
        if self.response:
            for slot in slots:
                self.error(slot, slots, value, scope, top)
        for slot in slots:
            self.inside(slot, value, scope)

    def scalar(self, slot: Slot, value: str, scope: _Scope) -> None:
        """Emit code for a plain field, and keep its variable for errors in inner structs."""
        name, wire, entity = slot.name, slot.wire, slot.field.entity
        got = f"{value}[{name!r}]"
        before = len(self.lines)
        if isinstance(wire, ArrayWire):
            self.plain_array(slot, got, scope)
        elif isinstance(wire, StructWire):
            return
        elif isinstance(wire, BytesWire):
            if wire.records and not name.startswith("unaligned"):
                blobs = self.home("blobs")
                self.add(f"if {blobs} is None:", f"    {blobs} = []")
                self.add(f"if {got}:", f"    {blobs}.append({got})")
                if self.nullable_records:
                    self.add(f"elif {got} is None:", f"    {blobs}.append(b'')")
        elif isinstance(wire, UuidWire):
            if "topic_id" in name:
                scope.topic_id = self.variable(got)
                self.guarded(f"{scope.topic_id} != {bytes(16)!r}", "topic_ids", scope.topic_id)
        elif entity in ENTITY_HOMES and not name.startswith("owner"):
            variable = self.variable(got)
            if entity == "topicName":
                scope.topic = variable
            elif entity == "groupId":
                scope.group = variable
            test = f"{variable} >= 0" if isinstance(wire, NumberWire) else variable
            self.guarded(test, ENTITY_HOMES[entity], variable)
        elif isinstance(wire, NumberWire):
            self.number(name, got, scope)
        elif name == "member_id":
            variable = self.variable(got)
            self.guarded(variable, "members", variable)
        if len(self.lines) > before:
            self.used.add(id(slot))

    def number(self, name: str, got: str, scope: _Scope) -> None:
        if name in PARTITION_NAMES or (name == "index" and scope.in_topic):
            scope.partition = self.variable(got)
            self.put("partitions", scope.partition)
        elif name in GENERATIONS:
            variable = self.variable(got)
            self.put("generations", variable)
        elif name == "producer_epoch":
            variable = self.variable(got)
            self.guarded(f"{variable} >= 0", "producer_epochs", variable)
        elif name in ("throttle_time_ms", "acks"):
            self.add(f"{self.home('acks' if name == 'acks' else 'throttle_ms')} = {got}")
        elif name == "base_offset":
            offset = self.home("offset")
            self.add(f"if {offset} is None:", f"    {offset} = {got}")

    def plain_array(self, slot: Slot, got: str, scope: _Scope) -> None:
        wire = slot.wire
        if not isinstance(wire, ArrayWire) or isinstance(wire.element, StructWire | ArrayWire):
            return
        home = ENTITY_HOMES.get(slot.field.entity)
        if home is None and isinstance(wire.element, UuidWire) and "topic_id" in slot.name:
            home = "topic_ids"
        if home is None and slot.name in PARTITION_LISTS and scope.in_topic:
            home = "partitions"
        if home is not None:
            self.add(f"if {got}:", f"    {self.home(home)}.update(dict.fromkeys({got}))")

    def error(
        self, slot: Slot, slots: tuple[Slot, ...], value: str, scope: _Scope, top: bool
    ) -> None:
        if not slot.name.endswith("error_code") or not isinstance(slot.wire, NumberWire):
            return
        text = slot.name.removesuffix("code") + "message"
        messages = [each for each in slots if each.name == text]
        self.used.update(map(id, (slot, *messages)))
        message = f"{value}[{text!r}]" if messages else "None"
        self.add(f"if {value}[{slot.name!r}]:")
        self.add(
            f"    {self.home('errors')}.append(({value}[{slot.name!r}], {top}, {scope.topic}, "
            f"{scope.topic_id}, {scope.partition}, {scope.group}, {message}))"
        )

    def inside(self, slot: Slot, value: str, scope: _Scope) -> None:
        """Emit the visit of a struct or an array of structs, when it has any facts."""
        wire = slot.wire
        got = f"{value}[{slot.name!r}]"
        if isinstance(wire, ArrayWire) and isinstance(wire.element, StructWire):
            each = self.fresh("s")
            if self.block(f"for {each} in {got} or ():", wire.element, each, scope):
                self.used.add(id(slot))
        elif isinstance(wire, StructWire):
            each = self.fresh("s")
            mark = len(self.lines)
            self.add(f"{each} = {got}")
            if self.block(f"if {each} is not None:", wire, each, scope):
                self.used.add(id(slot))
            else:
                del self.lines[mark:]

    def block(self, head: str, wire: StructWire, value: str, scope: _Scope) -> bool:
        mark = len(self.lines)
        before, self.useful = self.useful, False
        self.add(head)
        self.depth += 1
        self.struct(wire, value, scope)
        self.depth -= 1
        useful, self.useful = self.useful, before or self.useful
        if not useful:
            del self.lines[mark:]
        return useful

    def variable(self, got: str) -> str:
        name = self.fresh()
        self.add(f"{name} = {got}")
        return name

    def guarded(self, test: str, home: str, value: str) -> None:
        self.add(f"if {test}:", f"    {self.home(home)}[{value}] = None")
