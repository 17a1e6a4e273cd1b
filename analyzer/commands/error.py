"""`kafkascope error`: the protocol's error codes."""

from __future__ import annotations

from collections.abc import Iterator

import click

from kafkascope.analyzer.commands.help import command
from kafkascope.analyzer.commands.tables import TableFormat, print_table, table_options
from kafkascope.analyzer.terminal import document


@command(context_settings={"ignore_unknown_options": True})  # -1 is a code
@click.argument("wanted", metavar="[CODE|NAME]", required=False)
@table_options
def error(wanted: str | None, how: TableFormat) -> int:
    """Explain an error code and its usual causes.

    CODE is a number; NAME is all or part of a name. ZooKeeper's names (NONODE) work, too. Without
    one, or with a NAME of several, all matching codes are listed.

    \b
      kafkascope error 25
      kafkascope error fenced
    """
    from kafkascope.analyzer.filter.errors import nearest
    from kafkascope.dissectors.reference.codes import ERRORS
    from kafkascope.dissectors.reference.help import help_of

    rows = [
        (
            code.code,
            code.name,
            "yes" if code.retriable else "no",
            code.since,
            " ".join(code.former_names),
            help_of(code.code).meaning,
            "; ".join(help_of(code.code).causes),
        )
        for code in ERRORS.values()
        if wanted is None or _is(wanted, code.code, code.name, code.former_names)
    ]
    exact = [row for row in rows if wanted and row[1] == wanted.upper()]
    rows = exact or rows
    if not exact and wanted is not None and (of_zookeeper := _of_zookeeper(wanted)):
        document("\n".join(of_zookeeper))
        return 0
    if not rows and wanted is not None:
        near = nearest(wanted, (code.name for code in ERRORS.values()))
        hint = f"; did you mean {near}?" if near else " (list: kafkascope error)"
        raise click.UsageError(f'there is no error "{wanted}"{hint}')
    if len(rows) == 1 and how.name == "table":
        document("\n".join(_explained(rows[0][0])))
        return 0
    print_table(
        ("code", "name", "retriable", "since", "former names", "meaning", "causes"), rows, how
    )
    return 0


def _of_zookeeper(wanted: str) -> list[str]:
    """Return what is known of an error of ZooKeeper, by its name, or a code that is none of
    Kafka's."""
    from kafkascope.dissectors.reference.codes import ERRORS
    from kafkascope.dissectors.reference.zookeeper import MEANINGS, ZOOKEEPER

    for code, name in ZOOKEEPER["ZooKeeperError"].items():
        number = int(code)
        if name == wanted.upper() or (wanted == str(number) and number not in ERRORS):
            meaning = MEANINGS.get(number, "It was done.")
            return [f"{name} ({number}), of ZooKeeper", "", meaning]
    return []


def _explained(code: int) -> Iterator[str]:
    from kafkascope.dissectors.reference.codes import ERRORS
    from kafkascope.dissectors.reference.help import help_of

    error, text = ERRORS[code], help_of(code)
    former = f", once {' or '.join(error.former_names)}" if error.former_names else ""
    yield f"{error.name} ({error.code}), since Kafka {error.since}{former}"
    yield ""
    yield text.meaning
    if error.code == 0:
        return
    retry = "A client may send the same request again." if error.retriable else ""
    yield retry or "Sending the same request again does not help by itself."
    yield ""
    yield "Usual causes:"
    yield from (f"  - {cause}" for cause in text.causes)


def _is(wanted: str, code: int, name: str, former: tuple[str, ...]) -> bool:
    if wanted.lstrip("-").isdecimal():
        return int(wanted) == code
    return any(wanted.upper() in each.upper() for each in (name, *former))
