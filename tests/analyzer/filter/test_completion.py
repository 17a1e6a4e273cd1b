"""What is offered at the cursor of a filter."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.filter.bind import resolve
from kafkascope.analyzer.filter.errors import FilterError, distance, nearest
from kafkascope.analyzer.filter.fields import FIELDS, WIRESHARK, all_names
from kafkascope.analyzer.filter.language import bind, complete, seen_in
from tests.kit.captures import session_of
from tests.kit.samples import SAMPLES


def seen(field: str) -> Iterable[str]:
    return {"topic": ["orders", "orders dlq"], "client": ["svc-1"]}.get(field, ())


def texts(text: str, cursor: int | None = None) -> list[str]:
    return [item.text for item in complete(text, cursor, seen).items]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("", "number"),
        ("top", "topic"),
        ("TOP", "topic"),
        ("kafka.top", "kafka.topic"),
        ("kafka.partition_i", "kafka.partition_id"),
        ("kafka.session_ti", "kafka.session_timeout"),
        ("not la", "latency"),
        ("open and (la", "latency"),
        ("request.max_w", "request.max_wait_ms"),
        ("response.topics.partitions.leader_i", "response.topics.partitions.leader_id"),
        ("body.session_t", "body.session_timeout_ms"),
        ("topic ", "=="),
        ("topic con", "contains"),
        ("latency >", ">"),
        ("api =", "=="),
        ("api == ", "AddOffsetsToTxn"),
        ("api == Fe", "Fetch"),
        ("api==Fe", "Fetch"),
        ("api in {Produce, Fe", "Fetch"),
        ("error == unknown_mem", "UNKNOWN_MEMBER_ID"),
        ("state == lo", "lost"),
        ("codec == z", "zstd"),
        ("stalled_by == n", "network"),
        ("capture_point == be", "between"),
        ("flexible == t", "true"),
        ("removed_in <= 4.", "4.4.0"),
        ("topic == ", "orders"),
        ("topic == or", "orders"),
        ('topic == "orders d', '"orders dlq"'),
        ("client == s", "svc-1"),
        ("topic == orders ", "and"),
        ("topic == orders o", "or"),
        ("topic == orders and la", "latency"),
        ("tpoic", "topic"),
        ("api == Fecth", "Fetch"),
    ],
)
def test_the_best_item_comes_first(text: str, first: str) -> None:
    assert texts(text)[0] == first


def test_operators_are_those_of_the_type() -> None:
    assert "contains" not in texts("partition ")
    assert ">" not in texts("state ")
    assert {"and", "or", "in"} <= set(texts("open "))
    assert ")" in texts("(open ")
    assert ")" not in texts("open ")


def test_an_item_stands_for_the_whole_word_at_the_cursor() -> None:
    text = "api == Fex and open"
    found = complete(text, 9)
    assert (found.begin, found.end) == (7, 10)
    text = text[: found.begin] + found.items[0].text + text[found.end :]
    assert text == "api == Fetch and open"


def test_values_that_need_quotes_get_them() -> None:
    for item in complete("topic == ", None, seen).items:
        assert bind(f"topic == {item.text}") is not None


@pytest.mark.parametrize("text", ["", "topic", "topic == orders", "not open"])
def test_a_filter_has_no_error(text: str) -> None:
    found = complete(text)
    assert found.error is None
    assert not found.unfinished


@pytest.mark.parametrize(
    "text",
    [
        *("top", "topic ==", "topic in {", "topic in {a", "(topic", 'topic == "a', "api == Fe"),
        "open and",
    ],
)
def test_what_is_still_typed_is_unfinished(text: str) -> None:
    found = complete(text)
    assert found.error is not None
    assert found.unfinished


@pytest.mark.parametrize("text", ["topik == x", "api == Xyzzy", "topic orders", "open )", "topik"])
def test_what_is_wrong_has_its_place(text: str) -> None:
    found = complete(text)
    assert not found.unfinished
    assert text[found.error.at :]


def test_values_are_those_of_the_capture() -> None:
    with open_capture([SAMPLES / "rebalance.pcap"]) as capture:
        values = seen_in(session_of(capture))
    assert list(values("group"))
    assert "JoinGroup" in values("api")
    assert "REBALANCE_IN_PROGRESS" in values("error")
    for field in FIELDS:
        for value in values(field.name):
            assert value
    groups = [item.text for item in complete("group == ", None, values).items]
    assert groups == list(values("group"))
    assert all(":" in broker for broker in values("broker"))
    assert set(values("client.ip")) <= set(values("ip"))


@given(st.text(alphabet='apitocek.=!<>"{}(),~ 01r\\', max_size=25), st.integers(0, 25))
def test_any_text_gets_an_answer(text: str, cursor: int) -> None:
    found = complete(text, cursor, seen)
    assert 0 <= found.begin <= found.end <= len(text)
    assert found.begin <= min(cursor, len(text))
    if found.error is None:
        bind(text)
    else:
        with pytest.raises(FilterError):
            bind(text)


@given(st.sampled_from([field.name for field in FIELDS]), st.data())
def test_every_prefix_of_a_field_offers_it(name: str, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, len(name)))
    assert name in texts(name[:size])


# --- nearest names ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("topik", "topic"),
        ("tpoic", "topic"),
        ("staet", "state"),
        ("frmae", "frame"),
        ("lat", "latency"),
        ("cli", "client"),
        ("excss", "excess"),
        ("prodcuer.id", "producer.id"),
        ("respons.bytes", "response.bytes"),
        ("genration", "generation"),
        ("corelation", "correlation_id"),
        ("epoch", "member_epoch"),
        ("corelat", "correlation_id"),
        ("xyzzy", None),
        ("", None),
    ],
)
def test_the_nearest_name(word: str, name: str | None) -> None:
    assert nearest(word, all_names()) == name


words = st.text(alphabet="abc", max_size=6)


@given(words, words)
def test_the_distance_is_one(one: str, other: str) -> None:
    apart = distance(one, other, 20)
    assert apart == distance(other, one, 20)
    assert (apart == 0) == (one == other)
    assert abs(len(one) - len(other)) <= apart <= max(len(one), len(other))
    assert (distance(one, other, 1) <= 1) == (apart <= 1)


def test_neighbours_that_changed_places_are_one_slip() -> None:
    assert distance("tpoic", "topic", 3) == 1
    assert distance("topic", "topics", 3) == 1


def test_wireshark_names_lead_to_fields_that_are_there() -> None:
    for name in WIRESHARK:
        found = resolve(f"kafka.{name}")
        assert found is not None, name
        assert found[1][0] == "body"
