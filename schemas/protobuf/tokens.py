"""Cuts the text of a `.proto` file into tokens, with the line for errors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from kafkascope.schemas.model import PayloadError

_TOKEN: Final = re.compile(
    r"""(?P<space>[\s\ufeff]+|//[^\n]*|/\*(?s:.*?)\*/)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>0[xX][0-9A-Fa-f]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?)
    |(?P<text>"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*')
    |(?P<sign>[;{}\[\]()<>=,.:/+-])""",
    re.VERBOSE,
)

_COMMENT: Final = re.compile(r"//[^\n]*|/\*(?s:.*?)\*/")
_ESCAPE: Final = re.compile(
    r"\\(?:([0-7]{1,3})|[xX]([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL
)
_LETTERS: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


class SourceToken(NamedTuple):
    """A word, number, text with its quotes, or sign of the source."""

    kind: str
    """`word`, `number`, `text`, `sign`; `end` after the last one."""
    text: str
    begin: int
    """Characters from the start of the source."""


class Tokens:
    """Gives the tokens of a source one by one."""

    def __init__(self, source: str) -> None:
        self._source: Final = source
        self._at = self.end = 0
        """`end`: of the last token that was taken."""
        self.cuts: list[tuple[int, int, str]] = []
        """Comments, and options that do not say how bytes are read: where each begins and ends,
        with the text that replaces it."""
        self.next = self._read()

    def cut(self, begin: int, kept: Iterable[tuple[int, int]] = ()) -> None:
        """Cut what was taken since an offset; `kept`: options in brackets that stay."""
        parts = [_COMMENT.sub(" ", self._source[first:end]) for first, end in kept]
        self.cuts.append((begin, self.end, f"[{', '.join(parts)}]" if parts else ""))

    def take(self) -> SourceToken:
        token = self.next
        self.end = token.begin + len(token.text)
        self.next = self._read()
        return token

    def skip(self, sign: str) -> bool:
        """Go on after a sign or word if it is next; return whether it was."""
        if self.next.text == sign and self.next.kind != "text":
            self.take()
            return True
        return False

    def expect(self, sign: str) -> None:
        """Go on after a sign or word that has to be next."""
        if not self.skip(sign):
            raise self.wrong(f"expected {sign!r}")

    def word(self, what: str) -> str:
        if self.next.kind != "word":
            raise self.wrong(f"expected {what}")
        return self.take().text

    def name(self, what: str) -> str:
        """Return an identifier with dots, perhaps one at its front."""
        if self.skip("."):
            return "." + self.rest_of_name(self.word(what))
        return self.rest_of_name(self.word(what))

    def rest_of_name(self, first: str) -> str:
        """Return an identifier with dots, of which the first word is read already."""
        parts = [first]
        while self.skip("."):
            parts.append(self.word("a name"))
        return ".".join(parts)

    def integer(self, what: str) -> int:
        """Return the whole number that has to be next, with its sign."""
        negative = self.skip("-")
        text = self.next.text
        if self.next.kind != "number" or len(text) > 20 or not text.isalnum():
            raise self.wrong(f"expected {what}")
        try:
            if text[:2] in ("0x", "0X"):
                number = int(text, 16)
            else:
                number = int(text, 8 if text[0] == "0" and len(text) > 1 else 10)
        except ValueError:
            raise self.wrong(f"expected {what}") from None
        self.take()
        return -number if negative else number

    def string(self, what: str) -> str:
        """Return the text that has to be next; consecutive pieces are one text."""
        if self.next.kind != "text":
            raise self.wrong(f"expected {what}")
        parts = []
        while self.next.kind == "text":
            parts.append(_ESCAPE.sub(_unescaped, self.take().text[1:-1]))
        # Halves of surrogate pairs are no text that protobuf takes.
        return "".join(parts).encode("utf-8", "replace").decode()

    def skip_balanced(self) -> None:
        """Go on after the bracket that closes the one which is next."""
        open_ = 0
        while True:
            token = self.take()
            if token.kind == "end":
                raise self.wrong("expected a closing bracket")
            if token.kind == "sign" and token.text in "{[(":
                open_ += 1
            elif token.kind == "sign" and token.text in "}])":
                open_ -= 1
                if open_ <= 0:
                    return

    def wrong(self, text: str) -> PayloadError:
        """Return the error that what is next is not what it should be."""
        found = repr(self.next.text[:40]) if self.next.kind != "end" else "the end"
        return self.error(f"{text}, found {found}", self.next.begin)

    def error(self, text: str, at: int) -> PayloadError:
        """Return an error with the line of a place."""
        line = self._source.count("\n", 0, at) + 1
        return PayloadError("bad-schema", f"line {line}: {text}", offset=at)

    def _read(self) -> SourceToken:
        while True:
            found = _TOKEN.match(self._source, self._at)
            if found is None:
                if self._at >= len(self._source):
                    return SourceToken("end", "", self._at)
                text = repr(self._source[self._at : self._at + 1])
                raise self.error(f"unexpected {text}", self._at)
            begin, self._at = self._at, found.end()
            if found.lastgroup != "space":
                return SourceToken(found.lastgroup or "", found.group(), begin)
            if self._source[begin] == "/":
                self.cuts.append((begin, self._at, " "))


def _unescaped(found: re.Match[str]) -> str:
    octal, hexadecimal, short, long, letter = found.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    number = int(octal, 8) if octal else int(hexadecimal or short or long, 16)
    return chr(number) if number < 0x110000 else "\ufffd"
