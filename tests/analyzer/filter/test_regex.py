"""The regexes of filters: case, no hangs, errors with a reason."""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.filter.limits import LIMITS
from kafkascope.analyzer.filter.regex import Regex, RegexError


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
