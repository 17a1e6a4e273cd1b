"""Apicurio's own serializers for Java: what they make of a value is decoded as that value, by the
schemas of a real registry."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.exchanges.seen_schemas import seen_in
from kafkascope.analyzer.reading.options import SchemaOptions
from kafkascope.analyzer.reading.schemas import known_of
from kafkascope.dissectors.records.records import Header
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import KnownSchemas
from kafkascope.schemas.model import Exact
from tests.interop.apicurio_values import CITIES, JSON_SCHEMA, ORDER, ORDERS, city, order
from tests.interop.asked import Asked
from tests.interop.needs import need
from tests.interop.registries import SERDES, Apicurio, java_serializers
from tests.interop.sniff import sniff
from tests.schemas.avro.schemas import cases, compiled
from tests.schemas.protobuf.messages import messages

pytestmark = pytest.mark.interop

Config = dict[str, Any]
SETTING = "apicurio.registry"
HEADERS = {f"{SETTING}.headers.enabled": True}
NO_HEADERS = {f"{SETTING}.headers.enabled": False}
GLOBAL = {f"{SETTING}.use-id": "globalId"}
CONTENT = {f"{SETTING}.use-id": "contentId"}
HANDLER = f"{SETTING}.id-handler"
PACKAGE = "io.apicurio.registry.serde"

MODES: dict[str, dict[str, tuple[Config, str, int]]] = {
    "2.6.13.Final": {
        "default": ({}, "globalId", 0),
        "content id in headers": (HEADERS | CONTENT, "contentId", 0),
        "8 bytes": (NO_HEADERS, "globalId", 9),
        "8 bytes, content id": (NO_HEADERS | CONTENT, "contentId", 9),
        "4 bytes": (NO_HEADERS | {HANDLER: f"{PACKAGE}.Legacy4ByteIdHandler"}, "globalId", 5),
        "4 bytes, content id": (
            NO_HEADERS | CONTENT | {HANDLER: f"{PACKAGE}.Legacy4ByteIdHandler"},
            "contentId",
            5,
        ),
        "as Confluent": (NO_HEADERS | {f"{SETTING}.as-confluent": True}, "globalId", 5),
    },
    "3.1.7": {
        "default": ({}, "contentId", 5),
        "4 bytes, global id": (GLOBAL, "globalId", 5),
        "headers": (HEADERS, "contentId", 0),
        "global id in headers": (HEADERS | GLOBAL, "globalId", 0),
        "8 bytes": ({HANDLER: f"{PACKAGE}.Legacy8ByteIdHandler"}, "contentId", 9),
        "8 bytes, global id": (
            GLOBAL | {HANDLER: f"{PACKAGE}.Legacy8ByteIdHandler"},
            "globalId",
            9,
        ),
    },
}
"""Release -> way of writing -> settings, which id is written, bytes before the payload."""
WAYS = [(release, way) for release, ways in MODES.items() for way in ways]
EACH_WAY = pytest.mark.parametrize(("release", "way"), WAYS)
EACH_RELEASE = pytest.mark.parametrize("release", MODES)
SIDES = pytest.mark.parametrize("side", ["key", "value"])
MANY = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ITEMS = st.dictionaries(
    TEXTS.map("_{}".format),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@dataclass
class Serdes:
    """The serializers of one release with a registry, and our decoder with the same registry."""

    registry: Apicurio
    release: str
    java: Asked
    payloads: Payloads = field(init=False)
    topics: Iterator[int] = field(default_factory=itertools.count)
    registered: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.forget()

    @property
    def native(self) -> str:
        return f"{self.registry.url}/apis/registry/v{self.release[0]}"

    def forget(self) -> None:
        """Begin anew with what is known of schemas."""
        self.payloads = Payloads(known_of(SchemaOptions(registry=self.native)))

    def written(
        self, side: str, config: Config, topic: str = "", **what: Any
    ) -> tuple[str, bytes | None, list[Header]]:
        """Topic, bytes and headers of a record."""
        topic = topic or f"t-{self.release}-{next(self.topics)}"
        register = what["format"] != "json"
        common = {
            f"{SETTING}.url": self.native,
            f"{SETTING}.auto-register": register,
            f"{SETTING}.find-latest": not register,
        }
        answer = self.java.ask(topic=topic, key=side == "key", config=common | config, **what)
        assert answer["ok"], answer
        headers = [(name, bytes.fromhex(value)) for name, value in answer["headers"]]
        data = answer["data"]
        return topic, None if data is None else bytes.fromhex(data), headers

    def decoded(self, side: Any, topic: str, data: bytes | None, headers: list[Header]) -> Any:
        found = self.payloads.decode(topic, side, data, headers)
        assert found is not None, (data, headers)
        assert found.error is None, (found.error, data, headers)
        return found


@pytest.fixture(scope="module")
def registry(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    with Apicurio(tmp_path_factory.mktemp("registry"), "3.0.9") as registry:
        yield registry


@pytest.fixture(scope="module")
def every(registry: Apicurio) -> Iterator[dict[str, Serdes]]:
    two, three = SERDES
    with java_serializers(two) as second, java_serializers(three) as third:
        yield {two: Serdes(registry, two, second), three: Serdes(registry, three, third)}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@SIDES
@EACH_WAY
def test_avro(every: dict[str, Serdes], release: str, way: str, side: str) -> None:
    serdes = every[release]
    config, space, at = MODES[release][way]
    for schema, spelled, shown in itertools.starmap(partial(city, release), CITIES):
        written = serdes.written(
            side,
            config,
            f"cities-{release}",
            format="avro",
            schema=json.dumps(schema),
            value=json.dumps(spelled),
        )
        found = serdes.decoded(side, *written)
        assert found.value == shown
        assert found.found.at == at
        assert found.found.codec.type_name == "geo.City"
        assert at or found.key.namespace == space


@EACH_RELEASE
def test_an_array_that_the_registry_does_not_call_avro(
    every: dict[str, Serdes], release: str
) -> None:
    dates = {"type": "array", "items": {"type": "int", "logicalType": "date"}}
    what = {"schema": json.dumps(dates), "value": "[0, 1]"}
    written = every[release].written("value", HEADERS, format="avro", **what)
    assert every[release].decoded("value", *written).value == ["1970-01-01", "1970-01-02"]


def is_clear(space: str, at: int) -> bool:
    """Whether the bytes of a way say which of the ids it is, or are taken for the usual one."""
    return (space, at) not in {("contentId", 9), ("globalId", 5)}


@pytest.mark.parametrize(
    ("release", "way"), [each for each in WAYS if is_clear(*MODES[each[0]][each[1]][1:])]
)
def test_the_paths_that_confluents_clients_ask_know_the_ids(
    every: dict[str, Serdes], release: str, way: str
) -> None:
    config = MODES[release][way][0]
    url = f"{every[release].registry.url}/apis/ccompat/v7"
    payloads = Payloads(known_of(SchemaOptions(registry=url)))
    schema, spelled, shown = city(release, *CITIES[1])
    what = {"schema": json.dumps(schema), "value": json.dumps(spelled)}
    topic, data, headers = every[release].written("value", config, format="avro", **what)
    found = payloads.decode(topic, "value", data, headers)
    assert found is not None
    assert found.value == shown


@SIDES
@EACH_RELEASE
def test_avro_as_json(every: dict[str, Serdes], release: str, side: str) -> None:
    config = HEADERS | {f"{SETTING}.avro.encoding": "JSON"}
    for schema, spelled, shown in itertools.starmap(partial(city, release), CITIES):
        what = {"schema": json.dumps(schema), "value": json.dumps(spelled)}
        written = every[release].written(side, config, format="avro", **what)
        assert written[1] is not None
        assert written[1].startswith(b"{")
        assert every[release].decoded(side, *written).value == shown


@SIDES
@EACH_WAY
def test_protobuf(every: dict[str, Serdes], release: str, way: str, side: str) -> None:
    config, space, at = MODES[release][way]
    for value in ORDERS:
        written = every[release].written(side, config, f"orders-{release}", **order(value))
        found = every[release].decoded(side, *written)
        assert found.value == value
        assert found.found.codec.type_name == "shop.Order"
        assert at or found.key.namespace == space


def test_protobuf_with_indexes_as_confluent_has_them(every: dict[str, Serdes]) -> None:
    indexes = {f"{SETTING}.serde.send-indexes": True, f"{SETTING}.serde.send-type-ref": False}
    for config in (indexes, indexes | HEADERS):
        written = every["3.1.7"].written("value", config, **order(ORDERS[0]))
        found = every["3.1.7"].decoded("value", *written)
        assert found.value == ORDERS[0]
        assert found.found.codec.type_name == "shop.Order"


def item(serdes: Serdes, side: str, topic: str) -> str:
    """Register the schema of a topic, which the serializer cannot make of a value."""
    body = json.dumps({"schemaType": "JSON", "schema": json.dumps(JSON_SCHEMA)}).encode()
    url = f"{serdes.registry.url}/apis/ccompat/v7/subjects/{topic}-{side}/versions"
    asked = Request(url, body, {"Content-Type": "application/vnd.schemaregistry.v1+json"})
    with urlopen(asked, timeout=20):
        return topic


@SIDES
@EACH_WAY
def test_json(every: dict[str, Serdes], release: str, way: str, side: str) -> None:
    serdes = every[release]
    config, space, at = MODES[release][way]
    topic = item(serdes, side, f"items-{release}")
    for value in ({"count": 2**63 - 1, "中": [None, 1.5, "\0"]}, {"count": None}, {}):
        written = serdes.written(side, config, topic, format="json", value=json.dumps(value))
        found = serdes.decoded(side, *written)
        assert found.value == value
        assert found.found.schema.format == "json"
        assert at or found.key.namespace == space


@SIDES
@EACH_RELEASE
def test_no_value_has_no_schema(every: dict[str, Serdes], release: str, side: str) -> None:
    serdes = every[release]
    for config in (HEADERS, NO_HEADERS):
        what = {"format": "avro", "schema": json.dumps("int"), "value": None}
        topic, data, headers = serdes.written(side, config, **what)
        assert data is None
        assert serdes.payloads.decode(topic, side, data, headers) is None  # type: ignore[arg-type]


# --- by hypothesis: ways whose bytes are clear about which id it is


def clear(release: str) -> st.SearchStrategy[Config]:
    kept = [config for config, space, at in MODES[release].values() if is_clear(space, at)]
    return st.sampled_from(kept)


@EACH_RELEASE
@MANY
@given(case=cases(), side=st.sampled_from(["key", "value"]), data=st.data())
def test_any_avro(
    every: dict[str, Serdes], release: str, case: Any, side: str, data: st.DataObject
) -> None:
    serdes = every[release]
    # Of a value that is no record the serializer makes a schema of its own.
    inside, part = case
    schema = {"type": "record", "name": "a.Top", "fields": [{"name": "part", "type": inside}]}
    value = {"part": part}
    text = orjson.dumps(schema).decode()
    if any(word in str(value) for word in ("NaN", "Infinity")):
        return  # Java does not read its own JSON of these
    if release != "2.6.13.Final" and '"again"' in text:
        return  # it knows no end of these types
    config = data.draw(clear(release))
    spelled = compiled(schema).json_codec().encode(value).decode()
    serdes.forget()
    written = serdes.written(side, config, format="avro", schema=text, value=spelled)
    assert serdes.decoded(side, *written).value == value


@EACH_RELEASE
@MANY
@given(value=messages(ORDER._message), side=st.sampled_from(["key", "value"]), data=st.data())
def test_any_protobuf(
    every: dict[str, Serdes], release: str, value: Any, side: str, data: st.DataObject
) -> None:
    config = data.draw(clear(release))
    written = every[release].written(side, config, f"orders-{release}", **order(value))
    assert every[release].decoded(side, *written).value == value


def rounded(value: Any) -> Any:
    """A value with numbers for texts of more digits than they have: Java 17 writes these."""
    match value:
        case Exact():
            return float(value)
        case dict():
            return {name: rounded(each) for name, each in value.items()}
        case list():
            return [rounded(each) for each in value]
    return value


@EACH_RELEASE
@MANY
@given(value=ITEMS, side=st.sampled_from(["key", "value"]), data=st.data())
def test_any_json(
    every: dict[str, Serdes], release: str, value: Any, side: str, data: st.DataObject
) -> None:
    serdes = every[release]
    config = data.draw(clear(release))
    topic = f"any-items-{release}"
    if (side, topic) not in serdes.registered:
        serdes.registered.add((side, item(serdes, side, topic)))
    written = serdes.written(side, config, topic, format="json", value=json.dumps(value))
    assert rounded(serdes.decoded(side, *written).value) == value


@EACH_RELEASE
def test_what_serializers_and_the_registry_say_to_each_other_is_enough(
    every: dict[str, Serdes], release: str, tmp_path: Path
) -> None:
    need("tcpdump")
    serdes = every[release]
    written = []
    with sniff(tmp_path / "http.pcap", [serdes.registry.port]):
        for way, (config, _, _) in MODES[release].items():
            config = config | {f"{SETTING}.check-period-ms": 31_000}  # a new serializer
            schema, spelled, shown = city(release, *CITIES[0])
            what = {"schema": json.dumps(schema | {"doc": way}), "value": json.dumps(spelled)}
            written.append((serdes.written("value", config, format="avro", **what), shown))
    payloads = Payloads(KnownSchemas(seen_in([tmp_path / "http.pcap"]).schemas()))
    for record, shown in written:
        found = payloads.decode(record[0], "value", record[1], record[2])
        assert found is not None
        assert found.value == shown
