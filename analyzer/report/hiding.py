"""Other names for clients, topics, groups, users and addresses in a finished report.

A report is sentences and cells that were made of names, so names are replaced in the texts: those
that the statistics know, the longest first, and whatever looks like an address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Final

from analyzer.findings import Finding
from analyzer.pseudonyms import Pseudonyms
from analyzer.report.sections import Section, Table

if TYPE_CHECKING:
    from analyzer.report.collect import Facts

_ADDRESS: Final = re.compile(
    r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\.\d)|(?<!\w)(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{0,4}(?!\w)"
)
_KINDS: Final = {
    "client": "clientId",
    "client_id": "clientId",
    "topic": "topicName",
    "group": "groupId",
    "user": "principal",
    "transactional_id": "transactionalId",
}


def hidden(facts: Facts, parts: list[Section]) -> tuple[Facts, list[Section]]:
    """The same report with other names."""
    change = _changer(facts)
    found = [_finding(finding, change) for finding in facts.found]
    numbered = tuple(f"capture-{index}" for index, _ in enumerate(facts.inputs, 1))

    def command(text: str) -> str:
        for old, new in zip(facts.inputs, numbered, strict=True):
            text = text.replace(old, new)
        return change(text)

    told = replace(
        facts,
        inputs=numbered,
        filter_text=change(facts.filter_text),
        found=found,
        remarks=[command(each) for each in facts.remarks],
    )
    return told, [_section(part, change, command) for part in parts]


def _changer(facts: Facts) -> Callable[[str], str]:
    pseudonyms = Pseudonyms()
    names = {name: pseudonyms.name(name, kind) for name, kind in _names(facts) if len(name) > 1}
    escaped = {escape(name): new for name, new in names.items()}
    every = names | escaped
    if every:
        longest = sorted(every, key=len, reverse=True)
        words = re.compile(
            "(?<![A-Za-z0-9])(?:" + "|".join(map(re.escape, longest)) + ")(?![A-Za-z0-9])"
        )
    else:
        words = re.compile("(?!)")

    def change(text: str) -> str:
        text = words.sub(lambda match: every[match[0]], text)
        return _ADDRESS.sub(lambda match: pseudonyms.host(match[0]), text)

    return change


def _names(facts: Facts) -> Iterator[tuple[str, str]]:
    base = facts.findings.base
    tables = (base.clients, base.topics, base.groups, base.producers, base.connections)
    for each in tables:
        for line in each.rows(facts.names):
            for column, kind in _KINDS.items():
                value = line.get(column)
                if isinstance(value, str) and value not in ("", "-"):
                    yield value, kind
    for finding in facts.found:
        for entity, name in finding.entities:
            if entity in _KINDS:
                yield name, _KINDS[entity]


def _finding(finding: Finding, change: Callable[[str], str]) -> Finding:
    about = tuple((kind, change(name)) for kind, name in finding.entities)
    return replace(
        finding,
        text=change(finding.text),
        filter=change(finding.filter),
        advice=change(finding.advice),
        entities=about,
    )


def _section(part: Section, change: Callable[[str], str], command: Callable[[str], str]) -> Section:
    return replace(
        part,
        says=change(part.says),
        command=command(part.command),
        charts=[(change(legend), change(svg)) for legend, svg in part.charts],
        tables=[_table(table, change) for table in part.tables],
        texts=[change(text) for text in part.texts],
    )


def _table(table: Table, change: Callable[[str], str]) -> Table:
    return replace(
        table,
        caption=change(table.caption),
        rows=[[change(text) for text in row] for row in table.rows],
        filters=[change(text) for text in table.filters],
    )
