"""Reads options of a `.proto` file and keeps those that say how bytes are read."""

from __future__ import annotations

from typing import Any, Final

from kafkascope.schemas.protobuf.tokens import Tokens

KEPT: Final = frozenset(
    {"packed", "allow_alias", "message_set_wire_format", "deprecated", "map_entry"}
)
"""Options that are kept, besides features; `map_entry` stands in the texts that Apicurio makes of a
descriptor."""


def options(tokens: Tokens, owner: Any) -> None:
    """Read options in brackets, the first one open already."""
    begin = tokens.end - 1
    kept: list[tuple[int, int]] = []
    while True:
        first = tokens.next.begin
        if _one_option(tokens, owner):
            kept.append((first, tokens.end))
        if not tokens.skip(","):
            break
    tokens.expect("]")
    tokens.cut(begin, kept)


def option(tokens: Tokens, owner: Any) -> None:
    """Read an option that stands alone, the word `option` read already."""
    begin = tokens.end - len("option")
    kept = _one_option(tokens, owner)
    tokens.expect(";")
    if not kept:
        tokens.cut(begin)


def service(tokens: Tokens, owner: Any) -> None:
    """Go on after the body of a service: it says nothing of bytes."""
    depth, first = 0, False
    while True:
        if first and tokens.skip("option"):
            option(tokens, owner)
            continue
        token = tokens.take()
        if token.kind == "end":
            raise tokens.wrong("expected a closing bracket")
        first = token.kind == "sign" and token.text in "{};"
        if token.kind == "sign":
            depth += (token.text in "{[(") - (token.text in "}])")
            if depth <= 0:
                return


def _one_option(tokens: Tokens, owner: Any) -> bool:
    """Take over an option that says how bytes are read; return whether it may be one."""
    parts = [_option_name(tokens)]
    while tokens.skip("."):
        parts.append(_option_name(tokens))
    tokens.expect("=")
    if parts == ["features"] and tokens.next.text == "{":
        _features(tokens, owner)
        return True
    value = _constant(tokens)
    if len(parts) == 2 and parts[0] == "features":
        _feature(tokens, owner, parts[1], value)
    elif len(parts) == 1 and parts[0] in KEPT and value in ("true", "false"):
        options = owner.options
        if parts[0] in options.DESCRIPTOR.fields_by_name:
            setattr(options, parts[0], value == "true")
    return parts[0] in KEPT or parts[0] == "features"


def _option_name(tokens: Tokens) -> str:
    if tokens.skip("("):
        name = tokens.name("an option")
        tokens.expect(")")
        return f"({name})"
    return tokens.word("an option")


def _constant(tokens: Tokens) -> str:
    """Go on after a constant; return the word it is."""
    if tokens.next.text == "{" and tokens.next.kind == "sign":
        tokens.skip_balanced()
        return ""
    if tokens.next.kind == "text":
        tokens.string("a constant")
        return ""
    if not tokens.skip("-"):
        tokens.skip("+")
    if tokens.next.kind == "word":
        # With dots: options of some tools name values by their full names.
        return tokens.name("a constant")
    if tokens.next.kind != "number":
        raise tokens.wrong("expected a constant")
    tokens.take()
    return ""


def _features(tokens: Tokens, owner: Any) -> None:
    tokens.expect("{")
    while not tokens.skip("}"):
        if tokens.skip(",") or tokens.skip(";"):
            continue
        if tokens.skip("["):
            # Features of one language: `[pb.cpp] { ... }`.
            while not tokens.skip("]"):
                if tokens.take().kind == "end":
                    raise tokens.wrong("expected ']'")
            tokens.skip(":")
            _constant(tokens)
            continue
        name = tokens.word("a feature")
        tokens.skip(":")
        _feature(tokens, owner, name, _constant(tokens))


def _feature(tokens: Tokens, owner: Any, name: str, value: str) -> None:
    features = owner.options.features
    field = features.DESCRIPTOR.fields_by_name.get(name)
    if field is None or field.enum_type is None:
        return
    number = field.enum_type.values_by_name.get(value)
    if number is None:
        raise tokens.wrong(f"{value[:40]!r} is not a value of the feature {name}")
    setattr(features, name, number.number)
