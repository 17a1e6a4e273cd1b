"""The notation of declarations: types without behaviour.

A declaration holds all versions of a message, one line per field, in wire order:

    FETCH_REQUEST = request("Fetch").of(
        Int32("max_wait_ms", "0+"),
        Array("topics", "0+").of(
            String("topic", "0-12", entity="topicName"),
            Uuid("topic_id", "13+"),
        ),
    )

Type, name, versions, then options; children in `.of(...)`. Versions are spelled as Kafka spells
them: "3+", "0-5", "4", "none". `layout.resolve` is the only reader of version ranges.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self

from kafkascope.dissectors.messages import APIS
from kafkascope.dissectors.values import NO_VERSIONS, Versions

Kind = Literal[
    "request",
    "response",
    "header",
    "data",
    "coordinator-key",
    "coordinator-value",
    "metadata",
    "zookeeper",
]


class Unset:
    """The type of `UNSET`."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()
"""No default is declared: the type's own applies (0, false, "", empty, a struct of defaults)."""


@dataclass(frozen=True, init=False)
class Field:
    """One field over all versions. The subclass is its wire type."""

    name: str
    versions: Versions
    nullable: Versions
    tagged: Versions
    """Versions in which the field stands in the tagged section; its number is `tag`."""
    tag: int | None
    default: Any
    doc: str
    """What the name does not say: unit, special values, KIP."""
    entity: str
    """What the value identifies: topicName, groupId, brokerId, producerId, transactionalId."""
    subject: str
    """The same where Kafka's tables say nothing; also clientId, memberId, address, principal,
    resourceName, configValue, storeName, clusterId, and freeText: what people or programs wrote,
    with whatever names in it. Whoever anonymises reads `entity or subject`."""
    enum: str
    """The set of named values in `codes` that the field uses. "ErrorCode" stands for `ERRORS`,
    "ApiKey" for the APIs, "FeatureLevel" for the levels of the feature that is named beside it."""
    word: str
    """The closed list in `words` of what Kafka itself puts into a text field: config names,
    assignors, listeners. Any other value is somebody's name."""
    unit: str
    """`time_ms`: milliseconds since 1970 UTC."""
    map_key: bool
    """Whether it is part of the key of its array: elements with equal keys are about the same
    thing."""
    secret: bool
    """Whether it is a secret, which is never shown, saved or exported in clear."""
    volatile: bool
    """Whether it differs between two runs of the same traffic: timestamps, epochs, generated
    ids."""
    endpoint: bool
    """Whether it is part of an address that clients connect to."""
    plain: bool
    """Whether it keeps the plain encoding in flexible versions, as the client id of request header
    2."""
    only: frozenset[int]
    """For a field of `Operations`: types of operations that have it; empty for all."""
    children: tuple[Field, ...]
    element: type[Field] | None
    """Type of the elements of an array of plain values."""

    def __init__(
        self,
        name: str,
        versions: str,
        *,
        nullable: str = "none",
        tag: int | None = None,
        tagged: str = "",
        default: Any = UNSET,
        doc: str = "",
        entity: str = "",
        subject: str = "",
        enum: str = "",
        word: str = "",
        unit: str = "",
        map_key: bool = False,
        secret: bool = False,
        volatile: bool = False,
        endpoint: bool = False,
        plain: bool = False,
        only: Iterable[int] = (),
    ) -> None:
        # Frozen: the only way in is past __setattr__.
        self.__dict__.update(
            name=name,
            versions=Versions.parse(versions),
            nullable=Versions.parse(nullable),
            tag=tag,
            # A tag without a range of its own is a tag in every version that has the field.
            tagged=Versions.parse(tagged or ("none" if tag is None else versions)),
            default=default,
            doc=doc,
            entity=entity,
            subject=subject,
            enum=enum,
            word=word,
            unit=unit,
            map_key=map_key,
            secret=secret,
            volatile=volatile,
            endpoint=endpoint,
            plain=plain,
            only=frozenset(only),
            children=(),
            element=None,
        )


class Int8(Field):
    """Two's complement, 1 byte."""


class Int16(Field):
    """Two's complement, 2 bytes, big-endian like all numbers here."""


class Int32(Field):
    """Two's complement, 4 bytes."""


class Int64(Field):
    """Two's complement, 8 bytes."""


class Uint16(Field):
    """Unsigned, 2 bytes."""


class Uint32(Field):
    """Unsigned, 4 bytes."""


class Float64(Field):
    """IEEE 754 double."""


class Bool(Field):
    """One byte; 0 is false, anything else true, written as 1."""


class Uuid(Field):
    """16 bytes; all zero means none."""


class String(Field):
    """UTF-8 after its length: int16, or unsigned varint of length + 1 in flexible versions."""


class Ustring(String):
    """UTF-8 after its length, an int32: a string of ZooKeeper's jute."""


class Bytes(Field):
    """Bytes after their length: int32, or unsigned varint of length + 1 in flexible versions."""


class Records(Bytes):
    """Bytes that hold record batches or message sets, which `records` reads."""


class Struct(Field):
    """Fields one after the other, and a tagged section in flexible versions."""

    def of(self, *children: Field) -> Self:
        object.__setattr__(self, "children", children)
        return self


class Array(Field):
    """A count, then that many elements: structs of the children, or plain values of one type."""

    def of(self, *children: Field | type[Field]) -> Self:
        """Return the field with these children, or with elements of this type: `.of(Int32)`."""
        if len(children) == 1 and isinstance(children[0], type):
            object.__setattr__(self, "element", children[0])
        else:
            object.__setattr__(self, "children", children)
        return self


class Operations(Array):
    """Structs that begin with the type of an operation, which decides what fields follow (`only`),
    as in ZooKeeper's multi: int32 type, bool false, int32 err, fields, again and again; after the
    last one type -1, true, err -1."""


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A declaration over all versions. Equal only to itself, so it is cheap as a cache key."""

    name: str
    """Kafka's name of the message: FetchRequest, OffsetCommitValue."""
    kind: Kind
    key: int | None
    """Api key of a request or response; record type of a coordinator or metadata record."""
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...] = ()
    releases: str = ""
    """For a variant: the Kafka releases that had this layout, such as "3.5.0-3.6.2"."""
    variants: tuple[Message, ...] = ()
    """Other layouts that some releases had for a version of this message, newest first."""

    def __repr__(self) -> str:
        releases = f" of {self.releases}" if self.releases else ""
        return f"<Message {self.name} {self.versions}{releases}>"

    def of(self, *fields: Field) -> Message:
        return replace(self, fields=fields)

    def but(self, *variants: Message) -> Message:
        """Return the message with these layouts of other releases."""
        named = tuple(replace(v, name=self.name, kind=self.kind, key=self.key) for v in variants)
        return replace(self, variants=named)


_APIS: Final = {api.name: api for api in APIS.values()}


def _message(name: str, kind: Kind, key: int | None, versions: str, flexible: str) -> Message:
    return Message(name, kind, key, Versions.parse(versions), Versions.parse(flexible))


def request(api: str) -> Message:
    """Declare the request of an API of `messages.APIS` ("Fetch"), which has its versions."""
    declared = _APIS[api]
    return Message(f"{api}Request", "request", declared.key, declared.versions, declared.flexible)


def response(api: str) -> Message:
    return replace(request(api), name=f"{api}Response", kind="response")


def header(name: str, *, versions: str, flexible: str = "none") -> Message:
    """Declare the header of a request or response."""
    return _message(name, "header", None, versions, flexible)


def data(name: str, *, versions: str, flexible: str = "none") -> Message:
    """Declare a structure inside other messages or files."""
    return _message(name, "data", None, versions, flexible)


def coordinator_key(name: str, *, key: int, versions: str, flexible: str = "none") -> Message:
    """Declare the key of a record that a coordinator writes to its internal topic."""
    return _message(name, "coordinator-key", key, versions, flexible)


def coordinator_value(name: str, *, key: int, versions: str, flexible: str = "none") -> Message:
    """Declare the value of a record that a coordinator writes to its internal topic."""
    return _message(name, "coordinator-value", key, versions, flexible)


def metadata(name: str, *, key: int, versions: str, flexible: str = "none") -> Message:
    """Declare a record of `__cluster_metadata` or `__remote_log_metadata`."""
    return _message(name, "metadata", key, versions, flexible)


def zookeeper(name: str, *, versions: str = "0") -> Message:
    """Declare a record of ZooKeeper's protocol, named as there ("GetDataRequest"); its versions are
    ours."""
    return _message(f"zk.{name}", "zookeeper", None, versions, "none")


def variant(version: int, *, releases: str, flexible: bool) -> Message:
    """Declare another layout that `releases` had for `version`; `Message.but` attaches it."""
    only = Versions(version, version)
    return Message("", "data", None, only, only if flexible else NO_VERSIONS, releases=releases)
