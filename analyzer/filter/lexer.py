"""The lexer of display filters: text to tokens with their places. Knows no fields and no
grammar."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.limits import LIMITS
from kafkascope.analyzer.text import escaped

Kind = Literal["word", "string", "op", "punct", "end"]


OPERATORS: Final = ("===", "!==", "==", "!=", ">=", "<=", "&&", "||", ">", "<", "~", "!")
_OPERATOR: Final = re.compile("|".join(re.escape(op) for op in OPERATORS))
_WORD: Final = re.compile(r"""[^\s"(){},=<>!&|~']+""")
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_RANGE: Final = re.compile(r"\.\.")
_STRING: Final = re.compile(r'([rR]?)"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE: Final = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|U0010[0-9a-fA-F]{4})|\\(.)", re.DOTALL
)
"""A character by its code, up to U+10FFFF, or another escape, which is a group."""
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


class Token(NamedTuple):
    """A word, a string without its quotes, an operator or a punctuation sign."""

    kind: Kind
    text: str
    at: int
    width: int
    """Characters in the filter, quotes included."""


def tokens(text: str) -> list[Token]:
    """Return all tokens, the last one of kind `end`; `FilterError` for text that is no token."""
    if len(text) > LIMITS.filter_chars:
        raise FilterError(f"more than {LIMITS.filter_chars} characters", text, LIMITS.filter_chars)
    found: list[Token] = []
    at, depth = 0, 0
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
            continue
        if char == '"' or (char in "rR" and text[at + 1 : at + 2] == '"'):
            token = _string(text, at)
        elif char in "(){},":
            depth += (char == "{") - (char == "}")
            token = Token("punct", char, at, 1)
        elif depth > 0 and text.startswith("..", at):
            token = Token("punct", "..", at, 2)
        elif operator := _OPERATOR.match(text, at):
            token = Token("op", operator[0], at, len(operator[0]))
        elif word := _WORD.match(text, at):
            length = len(word[0])
            # Between braces two dots make a range: 3..5
            if depth > 0 and (dots := _RANGE.search(word[0])):
                length = dots.start()
            if depth == 0:
                length += _quoted_steps(text, at + length)
            token = Token("word", text[at : at + length], at, length)
        else:
            raise _wrong_sign(text, at)
        found.append(token)
        at += token.width
    found.append(Token("end", "", len(text), 1))
    return found


def _quoted_steps(text: str, end: int) -> int:
    """Return how many characters more a word has that ends with a dot before a quote, as in
    record.value."user-id"[0].name: its quotes stay in it."""
    at = end
    while text[at - 1] == "." and text.startswith('"', at):
        step = _QUOTED.match(text, at)
        if step is None:
            width = len(text) - at
            raise FilterError(
                "a string without its closing quote", text, at, width, unfinished=True
            )
        at = step.end()
        if text[at : at + 1] in (".", "[") and (word := _WORD.match(text, at)):
            at = word.end()
    return at - end


def _string(text: str, start: int) -> Token:
    found = _STRING.match(text, start)
    if found is None:
        width = len(text) - start
        raise FilterError("a string without its closing quote", text, start, width, unfinished=True)
    # A raw string keeps its backslashes; one before a quote keeps the quote inside.
    inside = found[2] if found[1] else _ESCAPE.sub(_unescaped, found[2])
    return Token("string", inside, start, found.end() - start)


def _unescaped(escape: re.Match[str]) -> str:
    # Unknown escapes stay as they are, so that "\d+" is a regex without doubling.
    return _ESCAPES.get(escape[1], escape[0]) if escape[1] else chr(int(escape[0][2:], 16))


def _wrong_sign(text: str, at: int) -> FilterError:
    char = text[at]
    hint = {"=": "write ==", "&": "write && or and", "|": "write || or or"}.get(char, "")
    if char == "'":
        hint = 'use double quotes: "..."'
    return FilterError(f'unexpected "{char}"', text, at, 1, hint)


def quoted(text: str) -> str:
    """Return the text as a string of the language, with unprintable characters escaped."""
    out = text.replace("\\", "\\\\").replace('"', '\\"')
    out = out.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return f'"{escaped(out)}"'
