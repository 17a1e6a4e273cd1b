"""`kafkascope fields`: what a filter can ask for."""

from __future__ import annotations

import click

from analyzer.commands.tables import TableFormat, print_table, table_options


@click.command()
@click.argument("word", required=False)
@table_options
def fields(word: str | None, how: TableFormat) -> int:
    """List the fields of the filter language; WORD: those whose name or meaning has it.

    `kafkascope fields request.Fetch` lists the fields of one message's body.
    """
    from analyzer.filter_fields import COSTS, FIELDS, PATHS, TYPES

    if word and word.split(".")[0] in ("request", "response"):
        rows = _paths(word)
    else:
        rows = [
            (field.name, field.type, field.cost, field.doc, field.example, " ".join(field.aliases))
            for field in (*FIELDS, *PATHS)
            if word is None
            or word.lower() in field.name.lower()
            or word.lower() in field.doc.lower()
            or any(word.lower() in alias for alias in field.aliases)
        ]
    print_table(("field", "type", "cost", "meaning", "example", "also"), rows, how)
    if word is None and how.name == "table":
        click.echo("\ntypes:", err=True)
        for name, text in TYPES.items():
            click.echo(f"  {name:<9} {text}", err=True)
        click.echo("costs:", err=True)
        for letter, text in COSTS.items():
            click.echo(f"  {letter:<9} {text}", err=True)
    return 0


def _paths(word: str) -> list[tuple[str, ...]]:
    """The body fields whose path begins with the word, or that belong to the API it names."""
    from analyzer.filter_paths import Side, known, of_message

    side, _, rest = word.partition(".")
    which: Side = "request" if side == "request" else "response"
    paths = of_message(which, rest) if rest else None
    if paths is None:
        paths = {path: set(kinds) for path, kinds in known(which).items() if rest in path}
    return [
        (f"{which}.{path}", "body", "b", " or ".join(sorted(kinds)).lower(), "", "")
        for path, kinds in paths.items()
    ]
