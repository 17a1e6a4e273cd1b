"""`kafkascope error` and `fields`: error codes of the protocol, and the fields of filters."""

from __future__ import annotations

import click

from kafkascope.analyzer.commands.help import command, complete_from
from kafkascope.analyzer.commands.tables import TableFormat, print_table, table_options
from kafkascope.analyzer.terminal import document, say
from kafkascope.dissectors.reference.codes import ERRORS
from kafkascope.dissectors.reference.zookeeper import MEANINGS, ZOOKEEPER


@command(context_settings={"ignore_unknown_options": True})  # -1 is a code
@click.argument(
    "wanted",
    metavar="[CODE|NAME]",
    required=False,
    shell_complete=complete_from(lambda: (each.name for each in ERRORS.values())),
)
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
    for code, name in ZOOKEEPER["ZooKeeperError"].items():
        number = int(code)
        if name == wanted.upper() or (wanted == str(number) and number not in ERRORS):
            meaning = MEANINGS.get(number, "It was done.")
            return [f"{name} ({number}), of ZooKeeper", "", meaning]
    return []


def _explained(code: int) -> list[str]:
    from kafkascope.dissectors.reference.help import help_of

    error, text = ERRORS[code], help_of(code)
    former = f", once {' or '.join(error.former_names)}" if error.former_names else ""
    head = f"{error.name} ({error.code}), since Kafka {error.since}{former}"
    if error.code == 0:
        return [head, "", text.meaning]
    retry = "A client may send the same request again." if error.retriable else ""
    retry = retry or "Sending the same request again does not help by itself."
    causes = (f"  - {cause}" for cause in text.causes)
    return [head, "", text.meaning, retry, "", "Usual causes:", *causes]


def _is(wanted: str, code: int, name: str, former: tuple[str, ...]) -> bool:
    if wanted.lstrip("-").isdecimal():
        return int(wanted) == code
    return any(wanted.upper() in each.upper() for each in (name, *former))


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
