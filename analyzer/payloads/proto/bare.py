"""Leaves out of a Protobuf schema what does not say how bytes are read: comments, defaults, and
options of others."""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from kafkascope.analyzer.payloads.model import PayloadError
from kafkascope.analyzer.payloads.proto.files import is_source, proto_of
from kafkascope.analyzer.payloads.proto.options import KEPT
from kafkascope.analyzer.payloads.proto.tokens import SourceToken, Tokens

_BREAKS: Final = re.compile(r"\n[ \t]*(?=\n)")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*(?s:.*?)\*/")
_OPEN: Final = "{[("
_CLOSED: Final = "}])"


def bare(text: str) -> str:
    """Return the schema without them, as source or base64 as it came; `PayloadError` where it is
    none."""
    proto = proto_of(text, "")
    if is_source(text):
        made = _source(text)
        # What is read of both has to be the same: nothing that matters was left out.
        if proto_of(made, "") == proto:
            return made
    _strip(proto)
    return base64.b64encode(proto.SerializeToString(deterministic=True)).decode()


def _strip(proto: Any) -> None:
    """Take defaults and options of others out of a descriptor, and all that is inside."""
    proto.DiscardUnknownFields()
    stack = [proto]
    while stack:
        one = stack.pop()
        for field, value in one.ListFields():
            if field.name in ("default_value", "json_name"):
                one.ClearField(field.name)
            elif field.name == "options":
                for option, _ in value.ListFields():
                    if option.name not in (*KEPT, "features"):
                        value.ClearField(option.name)
            elif field.type == field.TYPE_MESSAGE:
                many = hasattr(value, "append") or hasattr(value, "add")
                stack.extend(value if many else (value,))


def _source(text: str) -> str:
    tokens = _tokens(text)
    parts: list[str] = []
    last, at = 0, 0
    while (token := tokens[at]).kind != "end":
        end = at + 1
        kept: list[SourceToken] | None = None
        if token.text == "[" and token.kind == "sign":
            end = _closed(tokens, at)
            kept = _kept(tokens[at:end])
        elif _is_option(tokens, at):
            while tokens[end - 1].text != ";" or tokens[end - 1].kind == "text":
                end = _closed(tokens, end) if tokens[end].text in _OPEN else end + 1
            kept = tokens[at:end] if _is_kept(tokens[at + 1 : end]) else []
        parts.append(_COMMENT.sub(" ", text[last : token.begin]))
        shown = tokens[at:end] if kept is None else kept
        parts.append(" ".join(each.text for each in shown) if kept else "")
        if kept is None:
            parts[-1] = token.text
        last, at = tokens[end - 1].begin + len(tokens[end - 1].text), end
    return _BREAKS.sub("", "".join(parts)) + "\n"


def _tokens(text: str) -> list[SourceToken]:
    tokens = Tokens(text)
    found = [tokens.take()]
    while found[-1].kind != "end":
        found.append(tokens.take())
    return found


def _closed(tokens: list[SourceToken], at: int) -> int:
    depth = 0
    while True:
        token = tokens[at]
        if token.kind == "end":
            raise PayloadError("bad-schema", "a bracket is not closed")
        if token.kind == "sign":
            depth += (token.text in _OPEN) - (token.text in _CLOSED)
        at += 1
        if depth <= 0:
            return at


def _is_option(tokens: list[SourceToken], at: int) -> bool:
    if tokens[at].text != "option" or (at and tokens[at - 1].text not in ("{", "}", ";")):
        return False
    following = tokens[at + 1]
    return following.text == "(" or (following.kind == "word" and tokens[at + 2].text in ".=")


def _is_kept(option: list[SourceToken]) -> bool:
    return option[0].text in KEPT or option[0].text == "features"


def _kept(bracket: list[SourceToken]) -> list[SourceToken]:
    """Return the options in brackets that are kept, in brackets; nothing where none is."""
    out: list[SourceToken] = []
    option: list[SourceToken] = []
    depth = 0
    for token in bracket[1:]:
        if token.kind == "sign":
            depth += (token.text in _OPEN) - (token.text in _CLOSED)
        if depth < 0 or (depth == 0 and token.text == "," and token.kind == "sign"):
            if option and _is_kept(option):
                out += ([_sign(",")] if out else []) + option
            option = []
        else:
            option.append(token)
    return [_sign("["), *out, _sign("]")] if out else []


def _sign(text: str) -> SourceToken:
    return SourceToken("sign", text, 0)
