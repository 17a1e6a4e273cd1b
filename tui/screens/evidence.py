"""Filters that show the exchanges behind a line of a table."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.merging.tables import OTHERS
from kafkascope.analyzer.statistics.model import Line
from kafkascope.times import iso_ns

PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def word(value: Any) -> str:
    """Return a value as filters spell it: in quotes unless it is a plain word."""
    text = str(value)
    plain = text and text[0].isalpha() and all(char in PLAIN for char in text)
    return text if plain and text not in ("and", "or", "not", "in", "any", "all") else quoted(text)


def both(*filters: str) -> str:
    """Return the filter that wants all of these at once; empty ones want nothing."""
    given = [each for each in filters if each]
    if len(given) < 2:
        return "".join(given)
    return " and ".join(f"({each})" if " or " in f" {each} " else each for each in given)


def of_connection(line: Line) -> str:
    number = line.get("connection")
    return f"conn == {number}" if isinstance(number, int) else ""


def of_client(line: Line) -> str:
    """Return the filter for a line that names a client and its host, as far as they are known."""
    client_id, host = line.get("client_id"), line.get("client_address")
    return both(
        f"client == {word(client_id)}" if client_id and client_id != OTHERS else "",
        f"client.ip == {host}" if host and host != OTHERS else "",
    )


def _named(line: Line, name: str) -> str:
    """Return the filter for a field that is called as the column; empty for no value, or for all
    others."""
    value = line.get(name)
    return f"{name} == {word(value)}" if value and value != OTHERS else ""


def of_titled_client(title: str) -> str:
    """Return the filter for a client as tables call it: its id, `id@host`, or its host."""
    if not title or title == OTHERS:
        return ""
    name, at, host = title.rpartition("@")
    if at and _is_host(host):
        return both(f"client == {word(name)}", f"client.ip == {host}")
    return f"client.ip == {title}" if _is_host(title) else f"client == {word(title)}"


def _is_host(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def of_api(line: Line) -> str:
    """Return the filter for an API, with version, client and broker where the line names them."""
    api, version, broker = line.get("api"), line.get("api_version"), line.get("broker_address")
    return both(
        f"api == {str(api)[4:]}" if str(api)[:4] == "Api " else _named(line, "api"),
        f"version == {version}" if isinstance(version, int) else "",
        of_client(line),
        f"broker == {word(broker)}" if broker and broker != OTHERS else "",
    )


def of_topic(line: Line) -> str:
    """Return the filter for a topic, or for a partition of it."""
    topic, partition = _named(line, "topic"), line.get("partition")
    numbered = topic and isinstance(partition, int)
    return both(topic, f"partition == {partition}" if numbered else "")


def of_group(line: Line) -> str:
    return _named(line, "group")


def of_kept_group(path: str, below: str = "") -> str:
    """Return the filter for what is kept of a group at and below a node of ZooKeeper."""
    return f"protocol == zookeeper and path contains {quoted(f'{path}/{below}')}"


def of_member(line: Line) -> str:
    member = line.get("member")
    return both(of_group(line), f"member == {word(member)}" if member else "")


def of_span(begin_ns: int, end_ns: int | None) -> str:
    """Return the filter for a stretch of time, both ends included."""
    ends = ((">=", begin_ns), ("<=", end_ns))
    bounds = [(sign, iso_ns(time_ns)) for sign, time_ns in ends if time_ns is not None]
    # Years that have more than four digits have no text.
    return " and ".join(f"time {sign} {text}" for sign, text in bounds if text)


def of_rebalance(line: Line) -> str:
    """Return the filter for what a group did while it rebalanced."""
    begin, spent = line["time"], line.get("duration")
    return both(of_group(line), of_span(begin, None if spent is None else begin + spent))
