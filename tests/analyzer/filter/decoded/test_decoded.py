"""Filters about keys and values that are decoded with a schema."""

import operator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.filter.decoded import comparing
from kafkascope.analyzer.filter.decoded.comparing import between, compared, containing, typed
from kafkascope.analyzer.filter.decoded.reading import Decoding, spelled
from kafkascope.analyzer.filter.language import FilterError, Known, bind, compile_filter, complete
from kafkascope.analyzer.filter.regex import Regex
from kafkascope.analyzer.filter.syntax import parse
from kafkascope.analyzer.model import Exchange
from kafkascope.dissectors.codec.jsonform import loads
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import KnownSchemas
from kafkascope.schemas.model import Exact, Moment, Schema, SchemaKey
from kafkascope.schemas.paths import split
from kafkascope.tui.cli import main
from tests.analyzer.filter.decoded import orders
from tests.analyzer.filter.decoded.orders import avro, capture_of_orders, known, produced, user
from tests.kit.samples import phrases


def wanted(text: str, *exchanges: Exchange, with_: Known | None = None) -> list[bool]:
    made = compile_filter(text, with_ or known())
    return [made(row_of(each, Context().names), each) for each in exchanges]


SAMPLE = produced((user('{"user-id":5,"a b":{"c":[1,"x"]}}'), avro()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # numbers and decimals, exactly
        ("record.value.amount > 100", True),
        ("record.value.amount == 1234567890123456789.1", True),
        ("record.value.amount == 1234567890123456789.10", True),
        ("record.value.amount == 1234567890123456789.11", False),
        ("record.value.amount < 1234567890123456789.11", True),
        ("record.value.count == 9007199254740993", True),
        ("record.value.count == 9007199254740992", False),
        ("record.value.count > 9007199254740992", True),
        ("record.value.count in {1, 9007199254740990..9007199254740993}", True),
        ("record.value.count in {1, 9007199254740994..9007199254740999}", False),
        ("record.value.weight == 1.1", True),
        ("record.value.weight > 1e400", False),
        ("record.value.weight < 1e400", True),
        ("record.value.amount < 1e100000", True),
        # another type is false
        ("record.value.id == 17", False),
        ("record.value.id > 1", False),
        ('record.value.id == "17"', True),
        ('record.value.count == "9007199254740993"', False),
        ('record.value.amount == "1234567890123456789.10"', False),
        ("record.value.paid == 1", False),
        ("record.value.paid == true", True),
        ("record.value.paid == false", False),
        ('record.value.paid == "true"', False),
        ("record.value.amount contains 123", False),
        ("record.value.count ~ 9", False),
        ("record.value.id != 17", True),
        ("record.value.nothing != 17", False),
        # texts
        ('record.value.id in {"16", "17"}', True),
        ("record.value.id in {16, 17}", False),
        ('record.value.items.sku contains "A-"', True),
        ('record.value.items.sku contains "C-"', False),
        ('record.value.items.sku ~ "^b-\\d$"', True),
        ("record.value.items.sku > B", True),
        # arrays: any; indexes; all
        ("record.value.items.n > 4", True),
        ("record.value.items[0].n > 4", False),
        ("record.value.items[1].n > 4", True),
        ("record.value.items[9].n", False),
        ("all record.value.items.n > 0", True),
        ("all record.value.items.n > 1", False),
        # presence: null is none
        ("record.value.note", False),
        ("record.value.items", True),
        ("record.value.items.sku.x", False),
        # times
        ("record.value.at > 2026-03-01T11:59:59Z", True),
        ("record.value.at < 2026-03-01T12:00:00Z", False),
        ("record.value.at == 2026-03-01T12:00Z", True),
        ("record.value.at == 2026-03-01T13:00:00+01:00", True),
        ('record.value.at >= "2026-03-01T12:00:00.500Z"', True),
        ("record.value.at in {2026-03-01T11:00Z..2026-03-01T12:00:00Z}", True),
        ("record.value.at in {2026-03-01T11:00Z..2026-03-01T11:59Z}", False),
        ("record.value.at > soon", False),
        ("record.value.at contains 2026-03", True),
        # bytes
        ("record.value.seal == 0a:ff", True),
        ("record.value.seal contains ff", True),
        ("record.value.seal contains fe", False),
        # quoted names
        ('record.key."user-id" == 5', True),
        ("record.key.user-id == 5", True),
        ('record.key."a b".c[1] == x', True),
        ('record.key."a b"."c"[0] == 1', True),
        ('kafka.Record.Key."a b".c == x', True),
        ('record.key."A B".c == x', False),
        ('not (record.key."user-id"==5 and record.value.items.n==5)', False),
        # schemas
        ("schema.id == 7", True),
        ("schema.id in {7..8}", True),
        ("schema.id == 9", False),
        ("schema.subject == t-value and schema.subject == t-key", True),
        ("schema.subject contains other", False),
        ("schema.type == shop.Order", True),
        ("schema.error", False),
        # the bytes stay what they are
        ("record.value contains A-1", True),
        ('record.key contains "user-id"', True),
    ],
)
def test_decoded_values_compare_by_their_own_type(text: str, expected: bool) -> None:
    assert wanted(text, SAMPLE) == [expected]
    assert wanted(str(parse(text)), SAMPLE) == [expected]


def test_what_cannot_be_decoded_says_why_and_has_no_fields() -> None:
    cut = produced((None, avro()[:-1]))
    unknown = produced((None, avro()), (None, user("{}", 9)))
    broken = produced((None, user('{"x":1}')), (b"\0\0\0\0", b"\0\0\0\0\7"))
    plain = produced((b"k", b"\0 a text"), (None, None))
    every = (cut, unknown, broken, plain)
    assert wanted("schema.error", *every) == [True, True, True, False]
    assert wanted("schema.error == unknown-schema", *every) == [False, True, False, False]
    assert wanted("schema.error == does-not-fit", *every)[:3:2] == [True, True]
    assert wanted("schema.id == 9", *every) == [False, True, False, False]
    assert wanted("record.value.x", *every) == [False] * 4
    assert wanted("record.value.id", *every) == [False, True, False, False]
    assert wanted("record.value.id or schema.error", *every) == [True, True, True, False]


def test_internal_topics_are_not_decoded() -> None:
    internal = produced((None, avro()), topic="__consumer_offsets")
    assert wanted("schema.id or record.value.id", internal) == [False]


def test_a_filter_decodes_each_exchange_once() -> None:
    made = orders.payloads()
    count = 0

    class KeyedMeasures(Payloads):
        def decode(self, *args: Any) -> Any:
            nonlocal count
            count += 1
            return made.decode(*args)

    counted = KeyedMeasures(made.known)
    with_ = Known(decoding=Decoding(lambda: counted, lambda: Context().names))
    text = "record.value.id == x or record.value.count == 1 or schema.id == 99"
    assert wanted(text, SAMPLE, with_=with_) == [False]
    assert count == 2


def test_schemas_that_come_later_serve_the_same_exchange() -> None:
    made = Payloads(KnownSchemas([Schema("json", "{}", (SchemaKey("id", 1),))]))
    with_ = Known(decoding=Decoding(lambda: made, lambda: Context().names))
    found = compile_filter("record.value.id", with_)
    row = row_of(SAMPLE, Context().names)
    assert not found(row, SAMPLE)
    for each in orders.payloads().known:
        made.known.add(each)
    assert found(row, SAMPLE)


GARBAGE = """
    record.value. == 1   record.value."x == 1   record.value."x"y == 1   topic == a."b"
    topic in {a."b"}   topic."x" == 1   record.value.x[ == 1   record.value.x in {1..a}
    record.value.x ~ "(a"   record.value.""x
"""


@pytest.mark.parametrize("text", phrases(GARBAGE))
def test_garbage_is_refused(text: str) -> None:
    with pytest.raises(FilterError):
        bind(text)


@pytest.mark.parametrize("text", ["record.value.x == 1", "schema.id", "not record.key.a"])
def test_where_nothing_decodes_the_filter_is_refused(text: str) -> None:
    with pytest.raises(FilterError, match="decoded with a schema"):
        compile_filter(text)


# --- laws ---------------------------------------------------------------------------------------

NUMBERS = st.integers(-(2**70), 2**70) | st.decimals(allow_nan=False, allow_infinity=False)
RELATIONS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt,
    "<=": operator.le, ">=": operator.ge,
}  # fmt: skip


@given(NUMBERS, NUMBERS, st.sampled_from(sorted(RELATIONS)))
def test_decimals_compare_as_numbers(a: Decimal | int, b: Decimal | int, relation: str) -> None:
    expected = RELATIONS[relation](a, b)
    value = a if isinstance(a, int) else Exact(a)
    assert compared(relation, typed(str(b), False))(value) == expected


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
        st.text(max_size=8).map(Exact),
        st.text(max_size=12).map(Moment),
        st.sampled_from(
            [Exact("1e999999999999"), Exact("NaN"), Moment("9999-12-31"), {"base64": 5}]
        ),
        st.text(max_size=8).map(lambda text: {"base64": text}),
    ),
    lambda inner: st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)


@given(VALUES, st.text(max_size=24) | st.sampled_from(["1e999999", "12:00", "2026-01-01"]))
def test_any_value_compares_with_any_literal(value: Any, text: str) -> None:
    for quoted in (True, False):
        wanted = typed(text, quoted)
        results = {each: compared(each, wanted)(value) for each in RELATIONS}
        assert results["!="] != results["=="]
        assert not (results["<"] and results[">"])
        assert isinstance(between(wanted, wanted)(value), bool)
    assert isinstance(containing(text)(value), bool)
    assert isinstance(comparing.matching(Regex("a|1"))(value), bool)


@given(st.text(min_size=1, max_size=8), st.sampled_from(["", "[0]", ".x", '[3]."y z"']))
def test_any_name_can_be_written(name: str, rest: str) -> None:
    path = spelled(name) + rest
    bound: Any = bind(f"record.value.{path} == 1")
    assert bound.path == ("record.value", *split(path))
    assert bound.path[1] == name
    assert bind(str(parse(f"record.value.{path} == 1"))) == bound


@given(st.text(max_size=30))
def test_any_text_behind_the_field_is_a_filter_or_refused(text: str) -> None:
    for whole in (f"record.value.{text}", f'record.value."{text}', f"record.key.x == {text}"):
        complete(whole)
        try:
            bind(whole)
        except FilterError:
            continue


# --- completion -------------------------------------------------------------------------------


def test_fields_that_were_seen_are_proposed() -> None:
    with_ = known()
    wanted("record.value.id", SAMPLE, with_=with_)

    def items(text: str) -> list[str]:
        return [item.text for item in complete(text, values=with_.decoding.seen).items]

    assert items("record.value.it") == [
        "record.value.items",
        "record.value.items.sku",
        "record.value.items.n",
    ]
    assert items('record.key."a') == ['record.key."a b"', 'record.key."a b".c']
    assert items("schema.subject == t-") == ["t-value", "t-key"]
    assert items("schema.id == 7") == ["7"]
    assert "unknown-schema" in items("schema.error == ")
    found = complete('topic == x and record.key."a', values=with_.decoding.seen)
    assert (found.begin, found.end) == (15, 28)
    assert found.unfinished
    assert not items("record.value.it == ") or "==" not in items("record.value.it == ")


# --- commands -----------------------------------------------------------------------------------


def run(*words: str) -> tuple[int, list[dict[str, Any]], str]:
    done = CliRunner().invoke(main, words)
    if isinstance(done.exception, AssertionError):
        raise done.exception
    lines = [loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.exit_code, lines, done.stderr


def test_commands_filter_by_decoded_values(tmp_path: Path) -> None:
    capture = str(capture_of_orders(tmp_path / "orders.pcapng"))
    schemas = ("--schemas", str(orders.schema_folder(tmp_path / "schemas")))
    for text, expected in (
        ("record.value.amount > 100", [1]),
        ("schema.error == unknown-schema and schema.id == 9", [2]),
        ("not schema.id", [3]),
        ('record.key."user-id" == 5 or record.value contains text', [1, 3]),
    ):
        code, lines, _ = run("ls", capture, *schemas, "-Y", text, "--json", "-q")
        assert (code, [line["number"] for line in lines]) == (0, expected)
    code, lines, _ = run("ls", capture, "-Y", "record.value.amount", "--json", "-q")
    assert (code, lines) == (0, [])
    code, _, said = run("ls", capture, "-Y", "record.value.amount", "--no-schemas")
    assert code == 2
    assert "decoded with a schema" in said


def test_schemas_are_read_only_for_filters_about_decoded_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = str(capture_of_orders(tmp_path / "orders.pcapng"))
    schemas = ("--schemas", str(orders.schema_folder(tmp_path / "schemas")))

    def read(*_: Any) -> None:
        raise AssertionError("schemas are read")

    monkeypatch.setattr("kafkascope.analyzer.reading.schemas.payloads_of", read)
    assert run("ls", capture, *schemas, "-Y", "record.value contains A-1", "--json")[0] == 0
    assert run("ls", capture, *schemas, "--json")[0] == 0
    with pytest.raises(AssertionError, match="schemas are read"):
        run("ls", capture, *schemas, "-Y", "schema.id")
