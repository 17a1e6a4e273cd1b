"""The regex engine: the stock engine's answers, without its hangs."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.filter_regex import Regex, RegexError

pieces = st.sampled_from(
    [
        "a",
        "b",
        "A",
        ".",
        "*",
        "+",
        "?",
        "|",
        "(",
        ")",
        "(?:",
        "[ab]",
        "[^a]",
        "[a-c-]",
        "^",
        "$",
        r"\b",
        r"\B",
        r"\w",
        r"\D",
        r"\s",
        r"a{2}",
        r"b{1,2}",
        r"a{1,}",
        r"\.",
        r"-",
        r"\x41",
        r"(?-i)",
    ]
)


@settings(max_examples=400)
@given(st.lists(pieces, max_size=8), st.lists(st.text("abAB-. 1", max_size=8), max_size=5))
def test_it_agrees_with_the_stock_engine(parts: list[str], texts: list[str]) -> None:
    pattern = "".join(parts)
    # The stock engine takes global flags at the start only.
    stock = re.escape("") + pattern
    flags = re.IGNORECASE
    if "(?-i)" in pattern:
        if not pattern.startswith("(?-i)") or pattern.count("(?-i)") > 1:
            return
        stock, flags = pattern.removeprefix("(?-i)"), re.NOFLAG
    try:
        wanted = re.compile(stock, flags)
    except re.error:
        return
    try:
        ours = Regex(pattern)
    except RegexError:
        # Possessive repeats, which the stock engine takes since 3.11.
        if not re.search(r"[*+?}][+]", pattern):
            raise
        return
    for text in texts:
        if not text and r"\B" in pattern:
            continue  # the stock engine's answer differs between its releases
        assert ours.search(text) == bool(wanted.search(text))


@given(st.text(max_size=30), st.text(max_size=30))
def test_garbage_is_a_regex_or_an_error(pattern: str, text: str) -> None:
    with contextlib.suppress(RegexError):
        Regex(pattern).search(text)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(a|aa)+$b", "(a*)*b", ".*a.*a.*a.*a.*a.*a.*ab", "(a?){50}a{50}b"]
)
def test_no_pattern_hangs(pattern: str) -> None:
    assert not Regex(pattern).search("a" * 20_000)


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        ("(a", "not closed"),
        ("a)", "too many"),
        ("[a", "not closed"),
        ("*a", "nothing to repeat"),
        ("a**", "repeat of a repeat"),
        (r"(a)\1", "back references"),
        ("(?=a)", "look-around"),
        ("(?!a)", "look-around"),
        ("(?<=a)b", "look-around"),
        ("[b-a]", "range"),
        ("a{5,2}", "wrong way"),
        ("a{5000}", "1000"),
        ("((((a{100}){100}){100}){100})", "too large"),
        ("(" * 60 + "a" + ")" * 60, "too many groups"),
        ("a" * 1001, "1000 characters"),
        ("a\\", "backslash"),
        (r"\q", "unknown escape"),
        (r"\xg1", "hexadecimal"),
    ],
)
def test_errors_say_what_is_wrong(pattern: str, word: str) -> None:
    with pytest.raises(RegexError, match=word):
        Regex(pattern)


def test_case_is_ignored_unless_told() -> None:
    assert Regex("Orders").search("my-ORDERS-3")
    assert not Regex("(?-i)Orders").search("my-ORDERS-3")
    assert Regex("(?-i)a(?i:B)c").search("abc")
    assert not Regex("(?-i)a(?i:B)c").search("abC")
    assert Regex("[a-f]x").search("Dx")


def test_a_dot_stops_at_lines_unless_told() -> None:
    assert not Regex("a.b").search("a\nb")
    assert Regex("(?s)a.b").search("a\nb")
