"""Regular expressions in linear time: no pattern can hang a filter, whatever it is held against.

The stock engine backtracks: `(a+)+b` against forty letters runs for years, and both the pattern
and the traffic may come from
somebody else. This one follows all alternatives at once and remembers each set of them as a state
(a DFA
built while it reads). It knows what backtracking is not needed for: no back references, no
look-around.
Groups only group: the question is always whether a text has a match.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

MAX_PATTERN: Final = 1000
"""Characters of a pattern."""
MAX_PROGRAM: Final = 5000
"""Instructions after `{m,n}` was written out."""
MAX_DEPTH: Final = 50
"""Groups inside one another."""
MAX_STEPS: Final = 20_000
"""Remembered steps; more are forgotten and found again."""

Test: TypeAlias = Callable[[str], bool]
"""Whether one character fits."""


class RegexError(ValueError):
    """A pattern that is wrong, or asks for what this engine does not do; `at` counts characters."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(f"{reason} (character {at + 1} of the regex)")
        self.at = at


# --- pattern -> tree ----------------------------------------------------------------------------
# ("char", test) ("cat", [..]) ("alt", [..]) ("rep", node, low, high | None) ("at", "^" "$" "b" "B")

Node: TypeAlias = tuple[object, ...]

_CLASSES: Final[dict[str, Test]] = {
    "d": str.isdecimal,
    "w": lambda c: c == "_" or c.isalnum(),
    "s": str.isspace,
}
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0", "a": "\a"}


def _negated(test: Test) -> Test:
    return lambda c: not test(c)


def _folded(test: Test) -> Test:
    return lambda c: test(c) or test(c.lower()) or test(c.upper())


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.fold = True
        self.dot_all = False
        self.depth = 0

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        char = self.peek()
        self.at += 1
        return char

    def either(self) -> Node:
        branches = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            branches.append(self.sequence())
        return branches[0] if len(branches) == 1 else ("alt", branches)

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.repeated())
        return ("cat", parts)

    def repeated(self) -> Node:
        start = self.at
        node = self.atom()
        bounds = self.bounds()
        if bounds is None:
            return node
        if node[0] == "at":
            raise RegexError("nothing to repeat", start)
        if self.peek() == "?":
            # Lazy or greedy: whether there is a match does not depend on it.
            self.at += 1
        if (self.peek() and self.peek() in "*+") or self.bounds() is not None:
            raise RegexError("a repeat of a repeat: group it with ( )", self.at)
        return ("rep", node, *bounds)

    def bounds(self) -> tuple[int, int | None] | None:
        char = self.peek()
        if char and char in "*+?":
            self.at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        if char != "{":
            return None
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at + 1 : end if end > 0 else None].partition(",")
        if end < 0 or not all(c in "0123456789" for c in low + high) or not low + high:
            return None
        start, self.at = self.at, end + 1
        first = int(low[:6] or 0)
        last = (int(high[:6]) if high else None) if comma else first
        if first > 1000 or (last or 0) > 1000:
            raise RegexError("more than 1000 repeats", start)
        if last is not None and last < first:
            raise RegexError("the bounds of the repeat are the wrong way round", start)
        return first, last

    def atom(self) -> Node:
        start = self.at
        char = self.take()
        if char == "(":
            return self.group(start)
        if char == "[":
            return ("char", self.char_class(start))
        if char == ".":
            return ("char", (lambda c: True) if self.dot_all else (lambda c: c != "\n"))
        if char in "^$":
            return ("at", char)
        if char in "*+?":
            raise RegexError("nothing to repeat", start)
        if char == "\\":
            return self.escape(start)
        return ("char", self.literal(char))

    def literal(self, char: str) -> Test:
        if not self.fold:
            return char.__eq__
        return frozenset({char, char.lower(), char.upper(), char.swapcase()}).__contains__

    def group(self, start: int) -> Node:
        fold, dot_all = self.fold, self.dot_all
        if self.peek() == "?":
            self.at += 1
            if self.text.startswith("P<", self.at) or (
                self.peek() == "<" and self.text[self.at + 1 : self.at + 2] not in ("=", "!")
            ):
                end = self.text.find(">", self.at)
                if end < 0:
                    raise RegexError("a group name without its end", start)
                self.at = end + 1
            elif not self.flags(start):
                return ("cat", [])
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise RegexError("too many groups inside one another", start)
        node = self.either()
        self.depth -= 1
        if self.take() != ")":
            raise RegexError("a group that is not closed", start)
        self.fold, self.dot_all = fold, dot_all
        return node

    def flags(self, start: int) -> bool:
        """Read `i`, `-i`, `s` up to `:` (True: a group follows) or `)` (False: they hold from
        here)."""
        on = True
        while char := self.take():
            if char == "-":
                on = False
            elif char == "i":
                self.fold = on
            elif char == "s":
                self.dot_all = on
            elif char in ":)":
                return char == ":"
            else:
                break
        raise RegexError("look-around and flags but i and s are not available", start)

    def escape(self, start: int) -> Node:
        char = self.take()
        if char in ("b", "B"):
            return ("at", char)
        if char in ("A", "Z", "z"):
            return ("at", "^" if char == "A" else "$")
        if char.isdigit() and char != "0":
            raise RegexError("back references are not available", start)
        test = self.class_escape(char, start)
        return ("char", test if not isinstance(test, str) else self.literal(test))

    def class_escape(self, char: str, start: int) -> Test | str:
        if char == "":
            raise RegexError("a backslash at the end", start)
        if char in "dws":
            return _CLASSES[char]
        if char in "DWS":
            return _negated(_CLASSES[char.lower()])
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in "xu":
            length = 2 if char == "x" else 4
            digits = self.text[self.at : self.at + length]
            try:
                code = chr(int(digits, 16)) if len(digits) == length else ""
            except ValueError:
                code = ""
            if not code:
                raise RegexError(f"\\{char} needs {length} hexadecimal digits", start)
            self.at += length
            return code
        if char.isalnum():
            raise RegexError(f"unknown escape \\{char}", start)
        return char

    def char_class(self, start: int) -> Test:
        negative = self.peek() == "^"
        self.at += negative
        tests: list[Test] = []
        singles: set[str] = set()
        first = True
        while True:
            here = self.at
            char = self.take()
            if char == "":
                raise RegexError("a class that is not closed", start)
            if char == "]" and not first:
                break
            first = False
            low = self.class_escape(self.take(), here) if char == "\\" else char
            if not isinstance(low, str):
                tests.append(low)
                continue
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                char = self.take()
                high = self.class_escape(self.take(), here) if char == "\\" else char
                if not isinstance(high, str) or high < low:
                    raise RegexError("a bad range in the class", here)
                tests.append(lambda c, low=low, high=high: low <= c <= high)  # type: ignore[misc]
            else:
                singles.add(low)
        if singles:
            tests.append(frozenset(singles).__contains__)

        def inside(char: str) -> bool:
            return any(test(char) for test in tests)

        test = _folded(inside) if self.fold else inside
        return _negated(test) if negative else test


# --- tree -> program ----------------------------------------------------------------------------
# ("char", test) ("split", [targets]) ("at", kind) ("match",)


class _Program:
    def __init__(self) -> None:
        self.code: list[list[object]] = []

    def add(self, *instruction: object) -> int:
        if len(self.code) >= MAX_PROGRAM:
            raise RegexError("the regex is too large", 0)
        self.code.append(list(instruction))
        return len(self.code) - 1

    def emit(self, node: Node) -> None:
        kind = node[0]
        if kind in ("char", "at"):
            self.add(*node)
        elif kind == "cat":
            for part in node[1]:  # type: ignore[attr-defined]
                self.emit(part)
        elif kind == "alt":
            branches: list[Node] = node[1]  # type: ignore[assignment]
            split = self.add("split", [])
            targets, ends = [], []
            for branch in branches:
                targets.append(len(self.code))
                self.emit(branch)
                ends.append(self.add("split", []))
            self.code[split][1] = targets
            for end in ends:
                self.code[end][1] = [len(self.code)]
        else:
            self.repeat(node[1], node[2], node[3])  # type: ignore[arg-type]

    def repeat(self, node: Node, low: int, high: int | None) -> None:
        for _ in range(low):
            self.emit(node)
        if high is None:
            split = self.add("split", [])
            self.emit(node)
            self.add("split", [split])
            self.code[split][1] = [split + 1, len(self.code)]
            return
        splits = []
        for _ in range(high - low):
            splits.append(self.add("split", []))
            self.emit(node)
        for split in splits:
            self.code[split][1] = [split + 1, len(self.code)]


# --- program -> answers -------------------------------------------------------------------------

_EDGE, _WORD, _OTHER = 0, 1, 2


class _State:
    __slots__ = ("before", "places", "steps")

    def __init__(self, places: frozenset[int], before: int) -> None:
        self.places = places
        self.before = before
        self.steps: dict[str, _State | None] = {}


class Regex:
    """A compiled pattern; `search(text)` tells whether the text has a match anywhere."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MAX_PATTERN:
            raise RegexError(f"more than {MAX_PATTERN} characters", MAX_PATTERN)
        parser = _Parser(pattern)
        tree = parser.either()
        if parser.at < len(pattern):
            raise RegexError("a ) too many", parser.at)
        program = _Program()
        program.emit(tree)
        program.add("match")
        self.pattern = pattern
        self.code = program.code
        self.states: dict[tuple[frozenset[int], int], _State] = {}
        self.steps = 0

    def search(self, text: str) -> bool:
        """Whether the text has a match anywhere; time grows with its length only."""
        state = self._state(frozenset((0,)), _EDGE)
        for char in text:
            try:
                following = state.steps[char]
            except KeyError:
                following = self._step(state, char)
            if following is None:
                return True
            state = following
        return self._closure(state, _EDGE) is None

    def _state(self, places: frozenset[int], before: int) -> _State:
        key = places, before
        found = self.states.get(key)
        if found is None:
            found = self.states[key] = _State(places, before)
        return found

    def _step(self, state: _State, char: str) -> _State | None:
        """The state behind the character; None: matched before it."""
        after = _WORD if char == "_" or char.isalnum() else _OTHER
        closed = self._closure(state, after)
        following = None
        if closed is not None:
            code = self.code
            # A match may begin at any character: place 0 is always alive.
            places = {place + 1 for place in closed if _fits(code[place][1], char)}
            places.add(0)
            self.steps += 1
            if self.steps > MAX_STEPS:
                self.states.clear()
                self.steps = 0
            following = self._state(frozenset(places), after)
        state.steps[char] = following
        return following

    def _closure(self, state: _State, after: int) -> set[int] | None:
        """The places that wait for a character; None when one is the end of the pattern."""
        before = state.before
        waiting: set[int] = set()
        seen: set[int] = set()
        stack = list(state.places)
        while stack:
            place = stack.pop()
            if place in seen:
                continue
            seen.add(place)
            instruction = self.code[place]
            kind = instruction[0]
            if kind == "match":
                return None
            if kind == "char":
                waiting.add(place)
            elif kind == "split":
                stack.extend(instruction[1])  # type: ignore[arg-type]
            elif _holds(instruction[1], before, after):
                stack.append(place + 1)
        return waiting


def _fits(test: Any, char: str) -> bool:
    return bool(test(char))


def _holds(kind: object, before: int, after: int) -> bool:
    if kind == "^":
        return before == _EDGE
    if kind == "$":
        return after == _EDGE
    boundary = (before == _WORD) != (after == _WORD)
    return boundary if kind == "b" else not boundary
