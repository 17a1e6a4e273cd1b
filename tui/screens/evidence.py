"""Filters that show the exchanges behind a line of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.statistics.model import OTHERS, Line
from kafkascope.analyzer.times import iso_ns

PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def word(value: Any) -> str:
    """A value as it stands in a filter: in quotes unless it is a plain word."""
    text = str(value)
    plain = text and text[0].isalpha() and all(char in PLAIN for char in text)
    return text if plain and text not in ("and", "or", "not", "in", "any", "all") else quoted(text)


def both(*filters: str) -> str:
    """All of them at once; empty ones want nothing."""
    given = [each for each in filters if each]
    if len(given) < 2:
        return "".join(given)
    return " and ".join(f"({each})" if " or " in f" {each} " else each for each in given)


def of_connection(line: Line) -> str:
    """`conn == 17`"""
    number = line.get("connection")
    return f"conn == {number}" if isinstance(number, int) else ""


def of_client(line: Line) -> str:
    """A line that names a client, its host, its library and user, as far as they are told."""
    parts = []
    if line.get("client") and line["client"] != OTHERS:
        parts.append(f"client == {word(line['client'])}")
    if line.get("host"):
        parts.append(f"client.ip == {line['host']}")
    return both(*parts)


def of_titled_client(title: str) -> str:
    """What tables call a client: its id, `id@host`, or its host."""
    if not title or title == OTHERS:
        return ""
    name, at, host = title.rpartition("@")
    if at and _is_host(host):
        return both(f"client == {word(name)}", f"client.ip == {host}")
    return f"client.ip == {title}" if _is_host(title) else f"client == {word(title)}"


def _is_host(text: str) -> bool:
    from ipaddress import ip_address

    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def of_api(line: Line) -> str:
    """`api == Fetch`, with version, client and broker where the line tells them."""
    parts = []
    api = line.get("api")
    if api and api != OTHERS:
        parts.append(f"api == {word(api)}" if str(api)[:4] != "Api " else f"api == {api[4:]}")
    if isinstance(line.get("version"), int):
        parts.append(f"version == {line['version']}")
    if isinstance(line.get("client"), str):
        parts.append(of_titled_client(line["client"]))
    if line.get("broker") and line["broker"] != OTHERS:
        parts.append(f"broker == {word(line['broker'])}")
    return both(*parts)


def of_topic(line: Line) -> str:
    """A topic, or a partition of it."""
    topic = line.get("topic")
    if not topic or topic == OTHERS:
        return ""
    parts = [f"topic == {word(topic)}"]
    if isinstance(line.get("partition"), int):
        parts.append(f"partition == {line['partition']}")
    return both(*parts)


def of_group(line: Line) -> str:
    """A group."""
    group = line.get("group")
    return f"group == {word(group)}" if group and group != OTHERS else ""


def of_member(line: Line) -> str:
    """A member of a group."""
    member = line.get("member")
    return both(of_group(line), f"member == {word(member)}" if member else "")


def of_span(begin_ns: int, end_ns: int | None) -> str:
    """A stretch of time, both ends included."""
    ends = ((">=", begin_ns), ("<=", end_ns))
    told = [(sign, iso_ns(time_ns)) for sign, time_ns in ends if time_ns is not None]
    # Years that have more than four digits have no text.
    return " and ".join(f"time {sign} {text}" for sign, text in told if text)


def of_rebalance(line: Line) -> str:
    """What a group did while it rebalanced."""
    begin, spent = line["time"], line.get("duration")
    return both(of_group(line), of_span(begin, None if spent is None else begin + spent))


Evidence = Callable[[Line], str]
