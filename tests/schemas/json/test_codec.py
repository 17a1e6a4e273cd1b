"""JSON by schema: real serializers' values, jsonschema's own verdict as a witness, and laws."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.dissectors.codec import jsonform
from kafkascope.schemas.json import codec as json_schema
from kafkascope.schemas.json import text as json_text
from kafkascope.schemas.json import values as json_values
from kafkascope.schemas.json.changes import breaking_changes
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import Exact, PayloadError, Piece
from tests.kit.schemas import nothing, refused, tried
from tests.matrix import each_nth

RECORDS = json.loads((Path(__file__).parents[1] / "samples" / "records.json").read_text())
DRAFT4, DRAFT6, DRAFT7 = (f"http://json-schema.org/draft-0{n}/schema#" for n in (4, 6, 7))
DRAFT2019, DRAFT2020 = (
    f"https://json-schema.org/draft/{date}/schema" for date in ("2019-09", "2020-12")
)
DRAFTS = (DRAFT4, DRAFT6, DRAFT7, DRAFT2019, DRAFT2020)


def codec_of(schema: Any, **dependencies: str) -> json_schema.JsonCodec:
    return json_schema.compile(json.dumps(schema), dependencies, nothing).codec()


ANYTHING = codec_of(True)


@pytest.mark.parametrize("record", RECORDS["json"], ids=lambda each: str(each["value"])[:30])
def test_what_real_serializers_wrote(record: dict[str, Any]) -> None:
    schema = RECORDS["schemas"][record["schema"]]
    codec = json_schema.compile(schema["text"], schema["dependencies"], nothing).codec()
    data = bytes.fromhex(record["hex"])
    assert codec.decode(data) == record["value"]
    assert codec.type_name == "Person"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES, st.booleans())
def test_no_digit_and_no_letter_is_lost(value: Any, indented: bool) -> None:
    data = json.dumps(value, indent=2 if indented else None).encode()
    shown = ANYTHING.decode(data)
    assert as_numbers(shown) == value
    assert ANYTHING.decode(ANYTHING.encode(shown)) == shown
    assert json.loads(ANYTHING.encode(shown)) == value
    json.loads(jsonform.dumps(shown))


def as_numbers(value: Any) -> Any:
    if isinstance(value, Exact):
        return json.loads(value)
    if isinstance(value, list):
        return [as_numbers(each) for each in value]
    if isinstance(value, dict):
        return {name: as_numbers(each) for name, each in value.items()}
    return value


@given(st.from_regex(json_values.NUMBER, fullmatch=True))
def test_a_number_is_exact_or_text_with_all_its_digits(text: str) -> None:
    value = ANYTHING.decode(text.encode())
    if isinstance(value, str):
        assert type(value) is Exact
        assert value == text
    elif isinstance(value, int):
        assert value == int(text)
    else:
        assert json_values.is_exact(text, value)
    again = ANYTHING.encode(value)
    assert ANYTHING.decode(again) == value


def test_large_numbers_stay_numbers_for_the_schema_and_on_the_way_back() -> None:
    codec = codec_of(
        {
            "properties": {
                "id": {"type": "integer", "maximum": 10**30},
                "price": {"type": ["number", "null"]},
                "name": {"type": "string"},
            }
        }
    )
    data = b'{"id":123456789012345678901234567,"price":0.12345678901234567890,"name":"12"}'
    value = codec.decode(data)
    assert value == {
        "id": Exact("123456789012345678901234567"),
        "price": Exact("0.12345678901234567890"),
        "name": "12",
    }
    assert codec.encode(value) == data
    # Through JSON, where all of them are text: what has to be a number becomes one again.
    assert codec.encode(json.loads(jsonform.dumps(value))) == data
    assert refused(codec.decode, data.replace(b"123456", b"99999999123456")).path == "id"


@given(VALUES)
def test_the_leaves_of_explain_are_the_values_of_decode(value: Any) -> None:
    data = json.dumps(value, indent=1, ensure_ascii=False).encode("utf-8", "surrogatepass")
    piece = ANYTHING.explain(data)
    assert (piece.begin, piece.end) == (0, len(data))
    assert value_of(piece) == ANYTHING.decode(data)
    parts(piece, data)


def value_of(piece: Piece) -> Any:
    if not piece.pieces:
        return piece.value
    if piece.type == "array":
        assert [each.name for each in piece.pieces] == [f"[{n}]" for n in range(len(piece.pieces))]
        return [value_of(each) for each in piece.pieces]
    return {each.name: value_of(each) for each in piece.pieces}


def parts(piece: Piece, data: bytes) -> None:
    at = piece.begin
    for each in piece.pieces:
        assert at <= each.begin < each.end <= piece.end
        between = data[at : each.begin]
        assert not between.strip(b" \n[{,") or at == piece.begin
        at = each.end
        text = data[each.begin : each.end]
        if piece.type == "object":
            text = b"{" + text + b"}"
            assert ANYTHING.decode(text) == {each.name: value_of(each)}
        else:
            assert ANYTHING.decode(text) == value_of(each)
        parts(each, data)


@given(VALUES.filter(lambda value: isinstance(value, dict | list | str)))
def test_every_proper_prefix_is_refused(value: Any) -> None:
    data = json.dumps(value).encode()
    for end in range(len(data)):
        error = refused(ANYTHING.decode, data[:end])
        assert (error.reason, error.offset <= end) == ("does-not-fit", True)
        ANYTHING.explain(data[:end])


@given(st.binary(max_size=30) | st.text('{}[]",:0123e-.tfn\\u \n', max_size=30).map(str.encode))
def test_any_bytes_give_a_value_or_an_error_of_ours(data: bytes) -> None:
    error = tried(ANYTHING.decode, data)[1]
    piece = ANYTHING.explain(data)
    assert piece.end == len(data)
    try:
        wanted = json.loads(data.decode("utf-8"), parse_constant=no_constant)
    except ValueError:
        assert 0 <= error.offset <= len(data)
    else:
        assert error is None
        assert as_numbers(ANYTHING.decode(data)) == wanted
        assert value_of(piece) == ANYTHING.decode(data)


def no_constant(text: str) -> Any:
    raise ValueError(text)


PERSON = {
    "title": "Person",
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        "home": {"$ref": "#/definitions/home"},
    },
    "required": ["name"],
    "definitions": {"home": {"properties": {"zip": {"type": ["string", "null"]}}}},
}


@pytest.mark.parametrize(
    ("data", "reason", "path", "offset", "said"),
    [
        (b"", "does-not-fit", "", 0, "not JSON: the end of the text"),
        (b'{"name": ', "does-not-fit", "", 9, "not JSON: the end of the text"),
        (b'{"name": "x"} {}', "surplus", "", 14, "2 bytes after the value"),
        (b'{"name": "\xff"}', "does-not-fit", "", 10, "text that is not UTF-8"),
        (b'{"name": NaN}', "does-not-fit", "", 0, "not JSON: NaN"),
        (b"{}", "does-not-fit", "", 0, "required: 'name' is a required property"),
        (b'{"name": 5}', "does-not-fit", "name", 1, "type: 5 is not of type 'string'"),
        (b'{"name": "x", "tags": ["a", "c"]}', "does-not-fit", "tags[1]", 28,
         "enum: 'c' is not one of ['a', 'b']"),
        (b'{"name": "x", "home": {"zip": 5}}', "does-not-fit", "home.zip", 23,
         "type: 5 is not of type 'string', 'null'"),
        (b"[" * 100000, "does-not-fit", "", 0, "nested deeper than 200"),
        (b"1" * 5000, "does-not-fit", "", 0, "a number of 5000 characters"),
    ],
)  # fmt: skip
def test_what_does_not_fit_says_where(
    data: bytes, reason: str, path: str, offset: int, said: str
) -> None:
    error = refused(codec_of(PERSON).decode, data)
    assert (error.reason, error.path, error.offset, error.text) == (reason, path, offset, said)


def test_of_members_with_one_name_the_last_one_counts() -> None:
    assert ANYTHING.decode(b'{"a": 1, "a": 2}') == {"a": 2}
    assert (
        refused(codec_of({"properties": {"a": {"maximum": 1}}}).decode, b'{"a": 1, "a": 2}').offset
        == 9
    )


def test_texts_nest_as_deep_as_can_be_written_again() -> None:
    deep = b"[" * LIMITS.json_nesting + b"]" * LIMITS.json_nesting
    value = ANYTHING.decode(deep)
    jsonform.dumps({"record": {"value": value}})
    assert refused(ANYTHING.decode, b"[" + deep + b"]").text == "nested deeper than 200"
    ANYTHING.explain(b"[" * 100000)


def test_references_lead_to_what_is_given_and_never_further() -> None:
    home = json.dumps({"$id": "http://x.org/home.json", "type": "object", "required": ["zip"]})
    schema = {
        "$schema": DRAFT7,
        "$id": "http://x.org/person.json",
        "properties": {
            "home": {"$ref": "home.json"},
            "work": {"$ref": "http://x.org/home.json"},
            "self": {"$ref": "#"},
            "away": {"$ref": "http://x.org/away.json#/definitions/a"},
        },
    }
    text = json.dumps(schema)
    assert json_text.defined_names(text) == ["http://x.org/person.json"]
    asked = []

    def lookup(name: str) -> str | None:
        asked.append(name)
        return None

    for dependencies in ({"home.json": home}, {"http://x.org/home.json": home}):
        codec = json_schema.compile(text, dependencies, lookup).codec()
        assert codec.decode(b'{"home": {"zip": 1}, "self": {"work": {"zip": 1}}}')
        for wrong in (b'{"home": {}}', b'{"work": {}}', b'{"self": {"work": {}}}'):
            assert refused(codec.decode, wrong).text == "required: 'zip' is a required property"
        missing = refused(codec.decode, b'{"away": 1}')
        assert missing.reason == "bad-schema"
        assert "no schema has the ID" in missing.text
    assert "http://x.org/away.json" in asked
    away = json.dumps({"definitions": {"a": {"type": "string"}}})
    known = {"http://x.org/away.json": away, "http://x.org/home.json": home}
    codec = json_schema.compile(text, {}, known.get).codec()
    assert refused(codec.decode, b'{"away": 1}').text == "type: 1 is not of type 'string'"
    for address in ("file:///etc/passwd", "http://[::", "urn:x", "ftp://x.org/a.json"):
        assert refused(codec_of({"$ref": address}).decode, b"1").reason == "bad-schema"


@pytest.mark.parametrize(
    ("draft", "schema", "good", "bad"),
    [
        (DRAFT4, {"minimum": 3, "exclusiveMinimum": True}, b"4", b"3"),
        (DRAFT6, {"exclusiveMinimum": 3}, b"4", b"3"),
        (DRAFT7, {"if": {"type": "string"}, "else": {"minimum": 3}}, b"4", b"2"),
        ("", {"if": {"type": "string"}, "else": {"minimum": 3}}, b"4", b"2"),
        ("http://nobody.org/schema", {"exclusiveMinimum": 3}, b"4", b"3"),
        (DRAFT2019, {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
         b'{"a": 1}', b'{"a": 1, "b": 2}'),
        (DRAFT2020, {"prefixItems": [{"type": "string"}], "items": False}, b'["a"]', b'["a", 1]'),
    ],
)  # fmt: skip
def test_the_draft_is_that_of_the_schema(
    draft: str, schema: dict[str, Any], good: bytes, bad: bytes
) -> None:
    codec = codec_of({"$schema": draft, **schema} if draft else schema)
    assert tried(codec.decode, good)[1] is None
    assert refused(codec.decode, bad).reason == "does-not-fit"


NAMES = st.sampled_from(["a", "b", "ab"])
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
SMALL = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, 1.0, "a", "ab", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
PATTERNS = st.sampled_from(["^a", "b$", "[ab]{2}", "."])


def schemas(draft: str) -> st.SearchStrategy[Any]:
    def extend(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        keywords = {
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
            "enum": st.lists(SMALL, min_size=1, max_size=3, unique_by=repr),
            "minimum": st.integers(-1, 2),
            "multipleOf": st.sampled_from([1, 0.5, 2]),
            "minLength": st.integers(0, 2),
            "pattern": PATTERNS,
            "minItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "required": st.lists(NAMES, min_size=1, max_size=2, unique=True),
            "maxProperties": st.integers(0, 2),
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "patternProperties": st.dictionaries(PATTERNS, inner, max_size=2),
            "additionalProperties": st.booleans() | inner,
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
        }
        if draft != DRAFT2020:
            keywords["items"] = inner
        if draft in (DRAFT7, DRAFT2019, DRAFT2020):
            keywords |= {"if": inner, "then": inner, "else": inner}
        if draft != DRAFT4:
            keywords |= {"const": SMALL, "contains": inner, "propertyNames": inner}
        if draft in (DRAFT2019, DRAFT2020):
            keywords |= {
                "unevaluatedProperties": inner,
                "unevaluatedItems": st.just(False),
                "dependentSchemas": st.dictionaries(NAMES, inner, max_size=2),
            }
        names = st.sets(st.sampled_from(sorted(keywords)), max_size=3)
        return names.flatmap(
            lambda chosen: st.fixed_dictionaries({name: keywords[name] for name in sorted(chosen)})
        )

    leaf = st.just({}) if draft == DRAFT4 else st.booleans() | st.just({})
    return st.recursive(leaf, extend, max_leaves=6)


@pytest.mark.parametrize("draft", DRAFTS)
@settings(max_examples=settings().max_examples // 2)
@given(st.data())
def test_jsonschema_alone_says_the_same(draft: str, data: st.DataObject) -> None:
    from jsonschema import validators

    schema = data.draw(schemas(draft))
    if isinstance(schema, dict):
        schema = {"$schema": draft, **schema}
    stock = validators.validator_for(schema, default=validators.Draft7Validator)(schema)
    codec = codec_of(schema)
    for value in data.draw(st.lists(SMALL, min_size=1, max_size=4)):
        error = tried(codec.decode, json.dumps(value).encode())[1]
        assert (error is None) == stock.is_valid(value)
        assert error is None or error.reason == "does-not-fit"


BOMBS: dict[str, tuple[Any, bytes]] = {
    "itself": ({"$ref": "#"}, b"1"),
    "itself, unevaluated": ({"$schema": DRAFT2020, "unevaluatedItems": False, "$ref": "#"}, b"[1]"),
    "itself, never": ({"not": {"$ref": "#"}}, b"1"),
    "itself, if": ({"if": {"$ref": "#"}}, b"1"),
    "itself, one of": ({"oneOf": [{"$ref": "#"}, {"$ref": "#"}]}, b"1"),
    "itself, twice": ({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, b"1"),
    "doubling": (
        {
            "definitions": {
                f"a{n}": {"allOf": [{"$ref": f"#/definitions/a{n + 1}"}] * 2} for n in range(40)
            }
            | {"a40": {}},
            "$ref": "#/definitions/a0",
        },
        b"1",
    ),
    "false": ({"allOf": [{"if": False}] * 5000}, b'"' + b"a" * 300000 + b'"'),
    "branches": ({"anyOf": [{"type": "integer"}] * 10000}, b'"' + b"a" * 300000 + b'"'),
    "enum": ({"items": {"not": {"enum": list(range(100000))}}}, json.dumps([-1] * 10000).encode()),
    "const": (
        {"items": {"allOf": [{"not": {"const": [0] * 999}}] * 100}},
        json.dumps([[0] * 998] * 10).encode(),
    ),
}


@pytest.mark.parametrize("name", each_nth(list(BOMBS), 3))
def test_a_schema_that_takes_too_many_steps_is_given_up(name: str) -> None:
    schema, data = BOMBS[name]
    begin = time.perf_counter()
    codec = codec_of(schema)
    for _ in range(100):
        assert refused(codec.decode, data).reason == "bad-schema"
    # Five seconds on a machine that does nothing else.
    assert time.perf_counter() - begin < 60


def test_a_schema_of_a_megabyte_is_read() -> None:
    fields = {f"f{n}": {"type": "string", "description": "x" * 40} for n in range(10_000)}
    codec = codec_of({"type": "object", "properties": {**fields, "f0": {"type": "integer"}}})
    assert tried(codec.decode, b'{"f0": 1, "f9999": "text"}')[1] is None
    assert tried(codec.decode, b'{"f0": "x"}')[1] is not None


def test_patterns_are_re2s_and_cost_what_the_text_is_long() -> None:
    codec = codec_of({"type": "string", "pattern": "^(a+)+$"})
    assert refused(codec.decode, b'"' + b"a" * 100000 + b'b"').text.startswith("pattern: 'aaa")
    assert len(refused(codec.decode, b'"' + b"a" * 100000 + b'b"').text) < 400
    assert tried(codec_of({"pattern": r"^\u00e9\/$"}).decode, '"é/"'.encode())[1] is None
    assert (
        tried(codec_of({"patternProperties": {"(x+)+y": False}}).decode, b'{"xxxxxxxxxxx": 1}')[1]
        is None
    )
    # What RE2 does not have is not applied.
    for pattern in ("^(?=x)a", "(a)\\1", "(", "a{5000}"):
        codec = codec_of({"pattern": pattern})
        assert tried(codec.decode, b'"b"')[1] is None
    closed = {"patternProperties": {"^(?!x)": {"type": "string"}}, "additionalProperties": False}
    assert tried(codec_of(closed).decode, b'{"a": 5}')[1] is None


def test_a_tree_may_be_some_ten_levels_deep() -> None:
    node = {"properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    value: dict[str, Any] = {}
    for _ in range(30):
        value = {"children": [value]}
    assert tried(codec_of(node).decode, json.dumps(value).encode())[1] is None


def test_unique_items_cost_time_in_proportion() -> None:
    codec = codec_of({"uniqueItems": True})
    items = [{"a": n} for n in range(30000)]
    assert tried(codec.decode, json.dumps(items).encode())[1] is None
    assert refused(codec.decode, json.dumps([*items, {"a": 7}]).encode()).text.startswith(
        "uniqueItems"
    )
    assert tried(codec.decode, b"[1, true, 0, false]")[1] is None
    assert refused(codec.decode, b"[1, 1.0]").reason == "does-not-fit"


@pytest.mark.parametrize(
    "text",
    ["", "5", "[]", "{", '{"type": "foo"}', '{"pattern": 5}', '{"minimum": "x"}', '{"allOf": []}',
     "[" * 100000, "x" * (LIMITS.schema_chars + 1), '{"properties": {"a": 5}}'],
    ids=range(11),
)  # fmt: skip
def test_what_is_no_schema_is_refused(text: str) -> None:
    error = refused(json_schema.compile, text, {}, nothing)
    assert error.reason == "bad-schema"
    assert len(error.text) < 400


@given(VALUES, st.sampled_from(DRAFTS), st.data())
def test_a_changed_schema_gives_errors_of_ours(value: Any, draft: str, data: st.DataObject) -> None:
    schema = {"$schema": draft, **PERSON}
    target: Any = data.draw(st.sampled_from([schema, schema["properties"], PERSON["properties"]]))
    name = data.draw(
        st.sampled_from([*target, "$id", "$ref", "id", "$dynamicRef", "$anchor", "if", "not"])
    )
    changed = json.loads(json.dumps(schema))
    (changed if target is schema else changed["properties"])[name] = value
    text = json.dumps(changed)
    try:
        codec = json_schema.compile(text, {}, nothing).codec()
        json_text.defined_names(text)
        breaking_changes(json.dumps(schema), text)
    except PayloadError as error:
        refused = error.reason
        assert refused == "bad-schema"
        return
    for payload in (b'{"name": "x", "age": 5, "home": {"zip": null}}', b"5", b"{}"):
        tried(codec.decode, payload)[1]
        codec.explain(payload)


def test_a_value_that_does_not_fit_is_not_encoded() -> None:
    codec = codec_of(PERSON)
    assert codec.encode({"name": "é"}) == '{"name":"é"}'.encode()
    for value, path in (({}, ""), ({"name": 5}, "name"), ({"name": "x", "tags": ["c"]}, "tags[0]")):
        assert refused(codec.encode, value).path == path
    for value in (float("nan"), {1: 2}, object(), b"x", {"name": Exact("x")}):
        refused(codec.encode, value)


STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({}, {}, []),
        ({"type": "integer"}, {"type": "number"}, []),
        ({"type": "number"}, {"type": "integer"}, ["value: type was number, is integer"]),
        ({"properties": {"a": STRING}}, {"properties": {"a": {"type": "integer"}}},
         ["a: type was string, is integer"]),
        ({"required": ["a"]}, {"required": ["a", "b"]}, ["b: required now"]),
        ({"properties": {"a": {}}}, {"properties": {"a": {}}, "additionalProperties": False},
         ["value: additional properties are no longer allowed"]),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"additionalProperties": False},
         ["a: property removed"]),
        ({"enum": [1, 2]}, {"enum": [1]}, ["value: enum lost 2"]),
        ({"enum": [1]}, {"enum": [1, 2]}, []),
        ({"items": {"properties": {"a": STRING}}},
         {"items": {"properties": {"a": {"type": "null"}}}}, ["[].a: type was string, is null"]),
    ],
)  # fmt: skip
def test_breaking_changes(old: Any, new: Any, said: list[str]) -> None:
    assert breaking_changes(json.dumps(old), json.dumps(new)) == said
