"""The grammar of the filter language: trees, printing, places of errors."""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.filter import syntax
from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.limits import LIMITS
from kafkascope.analyzer.filter.regex import Regex, RegexError
from kafkascope.analyzer.filter.syntax import And, Compare, Has, In, Name, Not, Or, Search, Value

FIELD = Name("topic")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("topic", Has(FIELD)),
        ("not topic", Not(Has(FIELD))),
        ("!topic", Not(Has(FIELD))),
        ("topic == orders", Compare(FIELD, "==", Value("orders"))),
        ("topic eq orders", Compare(FIELD, "==", Value("orders"))),
        ("topic==orders", Compare(FIELD, "==", Value("orders"))),
        ('topic == "a b"', Compare(FIELD, "==", Value("a b"))),
        (r'topic ~ r"\d\"x"', Compare(FIELD, "matches", Value(r"\d\"x"))),
        (r'topic ~ "\d+"', Compare(FIELD, "matches", Value(r"\d+"))),
        (r'topic == "\x41\n\"\\"', Compare(FIELD, "==", Value('A\n"\\'))),
        ("any topic != x", Compare(Name("topic", "any"), "!=", Value("x"))),
        ("all topic in {x}", In(Name("topic", "all"), ((Value("x"), None),))),
        ("topic in {0, 3..5}", In(FIELD, ((Value("0"), None), (Value("3"), Value("5"))))),
        ("topic not in {1}", Not(In(FIELD, ((Value("1"), None),)))),
        ('"lost"', Search("lost")),
        ("a or b and c", Or((Has(Name("a")), And((Has(Name("b")), Has(Name("c"))))))),
        ("(a || b) && c", And((Or((Has(Name("a")), Has(Name("b")))), Has(Name("c"))))),
        ("client.ip == 10.0.0.0/24", Compare(Name("client.ip"), "==", Value("10.0.0.0/24"))),
        ("time >= 12:03:00", Compare(Name("time"), ">=", Value("12:03:00"))),
        ("x == -1", Compare(Name("x"), "==", Value("-1"))),
        ("ip == ::1", Compare(Name("ip"), "==", Value("::1"))),
        ("request.topics[0].name", Has(Name("request.topics[0].name"))),
    ],
)
def test_text_gives_tree(text: str, tree: syntax.Tree) -> None:
    assert syntax.parse(text) == tree


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
def test_a_blank_filter_is_none(text: str) -> None:
    assert syntax.parse(text) is None


@pytest.mark.parametrize(
    ("text", "column", "word"),
    [
        ("topic =", 7, "=="),
        ("topic == ", 10, "missing"),
        ("topic == and x", 10, "missing"),
        ("(topic", 1, "closing"),
        ("topic)", 6, ")"),
        ("topic in 3", 10, "set"),
        ("topic in {1 2}", 13, "commas"),
        ("topic in {1, 2", 10, "closing"),
        ('topic == "abc', 10, "closing quote"),
        ("topic == 'abc'", 10, "double quotes"),
        ("topic orders", 7, "is not expected"),
        ("1 == 1", 1, "not a field"),
        ("a and", 6, "missing"),
        ("a & b", 3, "&&"),
        ("any topic", 10, "operator"),
        ("a == b == c", 8, "=="),
    ],
)
def test_errors_name_the_place(text: str, column: int, word: str) -> None:
    with pytest.raises(FilterError) as caught:
        syntax.parse(text)
    assert caught.value.column == column
    assert word in str(caught.value)


def test_the_caret_stands_below_the_place() -> None:
    with pytest.raises(FilterError) as caught:
        syntax.parse("topic =")
    assert str(caught.value).splitlines() == [
        'filter: unexpected "=" at column 7',
        "  topic =",
        "        ^  write ==",
    ]


def test_a_long_filter_is_shown_as_a_window_with_the_caret_in_it() -> None:
    with pytest.raises(FilterError) as caught:
        syntax.parse("a or " * 100 + "topic =" + " or b" * 100)
    _, line, caret = str(caught.value).splitlines()
    assert len(line) <= 102
    assert line[caret.index("^")] == "="


@pytest.mark.parametrize("text", ["(" * 5000 + "a" + ")" * 5000, "not " * 5000 + "a", "!" * 9000])
def test_depth_is_bounded(text: str) -> None:
    with pytest.raises(FilterError):
        syntax.parse(text)


# --- laws ---------------------------------------------------------------------------------------

names = st.builds(
    Name,
    st.sampled_from(["topic", "client.ip", "no-reply", "request.topics[3].name", "_x"]),
    st.just(""),
)
quantified = st.builds(
    Name,
    st.sampled_from(["topic", "error.top"]),
    st.sampled_from(list[syntax.Quantifier](["any", "all"])),
)
values = st.builds(
    Value, st.text(max_size=12) | st.sampled_from(["and", "in", "3..5", "a b", "::1"])
)
operators = st.sampled_from(
    list[syntax.Operator](["==", "!=", "===", "!==", ">", "<", ">=", "<=", "contains", "matches"])
)
items = st.lists(st.tuples(values, st.none() | values), min_size=1, max_size=3).map(tuple)
leaves = st.one_of(
    st.builds(Has, names),
    st.builds(Compare, names | quantified, operators, values),
    st.builds(In, names | quantified, items),
    st.builds(Search, st.text(max_size=12)),
)


def _branches(inner: st.SearchStrategy[syntax.Tree]) -> st.SearchStrategy[syntax.Tree]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.builds(And, several) | st.builds(Or, several) | st.builds(Not, inner)


trees = st.recursive(leaves, _branches, max_leaves=8)


@given(trees)
def test_a_printed_tree_parses_to_the_same_tree(tree: syntax.Tree) -> None:
    assert syntax.parse(str(tree)) == tree


def _parsed(text: str) -> FilterError | None:
    try:
        syntax.parse(text)
    except FilterError as error:
        return error
    return None


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_garbage_gives_a_tree_or_a_filter_error(text: str) -> None:
    error = _parsed(text)
    assert error is None or (0 <= error.at <= len(text) and str(error))


WORDS = r"""
    topic api == != in { } , .. ( ) and or not any all contains ~ "x" r"y" 3 10.0.0.0/8 500ms !
    " ' \
"""
words = st.sampled_from(WORDS.split())


@given(st.lists(words, max_size=12))
def test_garbage_of_tokens_gives_a_tree_or_a_filter_error(parts: list[str]) -> None:
    error = _parsed(" ".join(parts))
    assert error is None or error.column >= 1


# --- regexes: case, no hangs, errors with a reason ------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("librdkafka", "LibRdKafka 2.6", True),
        ("(?-i)librdkafka", "LibRdKafka 2.6", False),
        (r"\d+$", "topic-12", True),
        (r"^\.dlq", "orders.dlq", False),
        ("é.b", "É€B", True),
        ("", "", True),
    ],
)
def test_search(pattern: str, text: str, found: bool) -> None:
    assert Regex(pattern).search(text) is found


literals = st.text("abAB.-_ 1", max_size=8)


@given(literals, literals)
def test_it_agrees_with_the_stock_engine(literal: str, text: str) -> None:
    pattern = re.escape(literal)
    assert Regex(pattern).search(text) == bool(re.search(pattern, text, re.IGNORECASE))


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(.*)(.*)(.*)(.*)x"])
def test_no_pattern_hangs(pattern: str) -> None:
    assert not Regex(pattern).search("a" * 50_000)


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        ("(", "missing"),
        ("[", "missing"),
        ("a{5000}", "repetition"),
        ("(?=x)", "operator"),
        (r"\1", "escape"),
        ("x" * (LIMITS.pattern_chars + 1), "more than"),
    ],
)
def test_what_is_wrong_is_said(pattern: str, word: str) -> None:
    with pytest.raises(RegexError, match=word):
        Regex(pattern)


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_is_a_pattern_or_an_error(pattern: str, text: str) -> None:
    with contextlib.suppress(RegexError):
        Regex(pattern).search(text)
