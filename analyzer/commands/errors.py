"""`kafkascope errors`: the protocol's error codes."""

from __future__ import annotations

import click

from analyzer.commands.tables import TableFormat, print_table, table_options


@click.command()
@click.argument("wanted", metavar="[CODE|NAME]", required=False)
@table_options
def errors(wanted: str | None, how: TableFormat) -> int:
    """List error codes: name, whether a client may retry, first release, former names."""
    from analyzer.filter_errors import nearest
    from dissectors.codes import ERRORS

    rows = [
        (
            error.code,
            error.name,
            "yes" if error.retriable else "no",
            error.since,
            " ".join(error.former_names),
        )
        for error in ERRORS.values()
        if wanted is None or _is(wanted, error.code, error.name, error.former_names)
    ]
    if not rows and wanted is not None:
        near = nearest(wanted, (error.name for error in ERRORS.values()))
        raise click.UsageError(
            f'there is no error "{wanted}"' + (f"; did you mean {near}?" if near else "")
        )
    print_table(("code", "name", "retriable", "since", "former names"), rows, how)
    return 0


def _is(wanted: str, code: int, name: str, former: tuple[str, ...]) -> bool:
    if wanted.lstrip("-").isdecimal():
        return int(wanted) == code
    return any(wanted.upper() in each.upper() for each in (name, *former))
