"""Tables of screens: which columns fit, their order and cells, the filters behind their lines."""

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.filter.language import bind
from kafkascope.analyzer.filter.syntax import parse
from kafkascope.analyzer.statistics.model import Column
from kafkascope.analyzer.text import columns_taken
from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.sheet import Sheet

COLUMNS = (
    Column("name"),
    Column("n", "count"),
    Column("bytes", "size"),
    Column("took", "duration"),
    Column("share", "share"),
    Column("why", "list"),
)
LINES = [
    {"name": "beta", "n": 0, "bytes": 96, "took": 3_100_000, "share": 0.5, "why": ["a", "b"]},
    {"name": "alpha", "n": 12, "bytes": 18_000, "took": None, "share": None, "why": []},
    {"name": "gamma", "n": 7, "bytes": 0, "took": 501_000_000, "share": 0.1, "why": ["c"]},
]


def sheet(**options: object) -> Sheet:
    made = Sheet(COLUMNS, **options)  # type: ignore[arg-type]
    made.fill(LINES)
    return made


def text(made: Sheet, index: int, width: int) -> str:
    return "".join(part for part, _ in made.row(index, width))


def test_a_table_with_room_for_all_columns() -> None:
    made = sheet()
    assert made.heading(80).rstrip() == "Name    N  Bytes    Took  Share  Why"
    assert text(made, 0, 80).rstrip() == "beta    0   96 B  3.1 ms   50 %  a, b"
    assert text(made, 1, 80).rstrip() == "alpha  12  18 KB       -      -"


def test_narrow_terminals_lose_the_numbers_before_the_last_text() -> None:
    names = [slot.column.name for slot in sheet().slots(30)]
    assert names[0] == "name"
    assert names[-1] == "why"
    assert "share" not in names


def test_columns_to_keep_go_last() -> None:
    names = [slot.column.name for slot in sheet(keep=("took", "n")).slots(16)]
    assert names == ["name", "took"]


def test_a_column_without_any_value_is_left_out() -> None:
    made = Sheet(COLUMNS)
    made.fill([{**LINES[0], "why": []}])
    assert "why" not in made.heading(80)


def test_numbers_sort_downwards_texts_upwards_and_what_is_missing_last() -> None:
    made = sheet()
    made.sort_by("took")
    assert [line["name"] for line in made.lines] == ["gamma", "beta", "alpha"]
    assert "Took ▼" in made.heading(80)
    made.sort_by("took")
    assert [line["name"] for line in made.lines] == ["beta", "gamma", "alpha"]
    made.sort_by("name")
    assert [line["name"] for line in made.lines] == ["alpha", "beta", "gamma"]
    made.reverse()
    assert [line["name"] for line in made.lines] == ["gamma", "beta", "alpha"]
    made.unsort()
    assert made.lines == LINES


def test_new_lines_come_in_the_chosen_order() -> None:
    made = sheet()
    made.sort_by("n")
    made.fill([*LINES, {"name": "delta", "n": 9, "bytes": 1, "took": 1, "share": 0, "why": []}])
    assert [line["n"] for line in made.lines] == [12, 9, 7, 0]


def test_bad_news_have_a_role_and_nothing_is_dim() -> None:
    made = sheet(alarms={"n": "!"})
    roles = {part.strip(): role for part, role in made.row(0, 80)}
    assert roles["0"] == "dim"
    assert {part.strip(): role for part, role in made.row(1, 80)}["12"] == "!"


def test_a_click_on_a_title_finds_its_column() -> None:
    made = sheet()
    heading = made.heading(80)
    for column in COLUMNS:
        found = made.column_at(heading.index(f"{column.title} "), 80)
        assert found == column
    assert made.column_at(79, 80) is None


@given(
    st.integers(1, 200),
    st.lists(st.tuples(st.text(max_size=60), st.integers(0, 10**9)), max_size=5),
    st.booleans(),
)
def test_no_line_is_wider_than_the_screen(width, found, arrow) -> None:
    made = Sheet(COLUMNS, keep=("n", "why"))
    made.fill(
        [
            {"name": name, "n": n, "bytes": n, "took": n, "share": 0.3, "why": [name]}
            for name, n in found
        ]
    )
    if arrow:
        made.sort_by("bytes")
    assert columns_taken(made.heading(width)) <= width
    for index in range(len(found)):
        assert columns_taken(text(made, index, width)) <= width


NAMES = st.text(max_size=30)


def test_usual_lines() -> None:
    assert evidence.of_connection({"connection": 17}) == "conn == 17"
    assert (
        evidence.of_client({"client_id": "orders-svc", "client_address": "10.0.0.4"})
        == "client == orders-svc and client.ip == 10.0.0.4"
    )
    assert (
        evidence.of_api(
            {
                "api": "Fetch",
                "api_version": 12,
                "broker_address": "b:9",
                "client_id": "a",
                "client_address": "10.0.0.4",
            }
        )
        == "api == Fetch and version == 12 and client == a and client.ip == 10.0.0.4"
        ' and broker == "b:9"'
    )
    assert (
        evidence.of_topic({"topic": "a.b", "partition": 3}) == 'topic == "a.b" and partition == 3'
    )
    assert evidence.of_titled_client("::1") == "client.ip == ::1"
    rebalance = {"group": "g", "time": 1_700_000_000_123_456_789, "duration": 5_000_000}
    assert (
        evidence.of_rebalance(rebalance) == "group == g and time >= 2023-11-14T22:13:20.123456789Z"
        " and time <= 2023-11-14T22:13:20.128456789Z"
    )


def test_sums_of_many_keys_have_no_filter() -> None:
    assert evidence.of_connection({"connection": "(others)"}) == ""
    assert evidence.of_topic({"topic": "(others)"}) == ""
    assert evidence.of_titled_client("(others)") == ""
    assert evidence.of_group({"group": "(others)"}) == ""


def test_alternatives_are_put_into_parentheses() -> None:
    assert (
        evidence.both("api == Fetch or api == Produce", "", "conn == 1")
        == "(api == Fetch or api == Produce) and conn == 1"
    )


@given(NAMES, NAMES, NAMES, st.integers(0, 2**62), st.none() | st.integers(0, 2**40))
def test_any_name_gives_a_filter_that_can_be_read(client, topic, group, time, spent) -> None:
    lines = [
        evidence.of_titled_client(client),
        evidence.of_topic({"topic": topic, "partition": 1}),
        evidence.of_member({"group": group, "member": client}),
        evidence.of_rebalance({"group": group, "time": time, "duration": spent}),
        evidence.both(evidence.of_group({"group": group}), evidence.of_titled_client(client)),
    ]
    for text in lines:
        if text:
            assert parse(text) is not None
            bind(text)
