"""`kafkascope fields`: what a filter can ask for."""

from __future__ import annotations

import click

from kafkascope.analyzer.commands.help import command
from kafkascope.analyzer.commands.tables import TableFormat, print_table, table_options
from kafkascope.analyzer.terminal import say


@command()
@click.argument("word", required=False)
@table_options
def fields(word: str | None, how: TableFormat) -> int:
    """List display-filter fields, with types and examples.

    WORD selects fields by name or meaning.

    \b
      kafkascope fields latency
      kafkascope fields request.Fetch     fields of one message
      kafkascope fields body.epoch        fields of this name in all messages
    """
    from kafkascope.analyzer.filter.errors import nearest
    from kafkascope.analyzer.filter.fields import COSTS, FIELDS, PATHS, TYPES, WIRESHARK, all_names

    if word and word.split(".")[0] in ("request", "response", "body"):
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
        if word is not None:
            rows += [
                (f"body.{path}", "body", "b", "a field of bodies", "", name)
                for name, path in WIRESHARK.items()
                if word.lower().removeprefix("kafka.") in name
            ]
    if word and not rows:
        near = nearest(word.rpartition(".")[2] if "." in word else word, all_names())
        hint = f"; did you mean {near}?" if near else ""
        say(f'no field has "{word}"{hint}')
    print_table(("field", "type", "cost", "meaning", "example", "also"), rows, how)
    if word is None and how.name == "table":
        say("\ntypes:", bare=True)
        for name, text in TYPES.items():
            say(f"  {name:<9} {text}", bare=True)
        say("costs:", bare=True)
        for letter, text in COSTS.items():
            say(f"  {letter:<9} {text}", bare=True)
    return 0


def _paths(word: str) -> list[tuple[str, ...]]:
    """The body fields whose path has the word, or that belong to the API it names."""
    from kafkascope.analyzer.filter.paths import Side, known, leaves, of_message

    side, _, rest = word.partition(".")
    if side == "body":
        return [
            (f"body.{name}", "body", "b", " or ".join(sorted(kinds)).lower(), "", "")
            for name, kinds in sorted(leaves().items())
            if rest in name
        ]
    which: Side = "request" if side == "request" else "response"
    paths = of_message(which, rest) if rest else None
    if paths is None:
        paths = {path: set(kinds) for path, kinds in known(which).items() if rest in path}
    return [
        (f"{which}.{path}", "body", "b", " or ".join(sorted(kinds)).lower(), "", "")
        for path, kinds in paths.items()
    ]
