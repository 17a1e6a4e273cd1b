"""`kafkascope error` and `fields`: error codes of the protocol, and the fields of filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from kafkascope.analyzer.commands.help import command, complete_from
from kafkascope.analyzer.commands.tables import TableFormat, print_table, table_options
from kafkascope.analyzer.terminal import document, say
from kafkascope.dissectors.reference.codes import ERRORS, ErrorCode
from kafkascope.dissectors.reference.zookeeper import MEANINGS, ZOOKEEPER

if TYPE_CHECKING:
    from kafkascope.analyzer.filter.paths import Side
    from kafkascope.dissectors.reference.help import Help


@command(context_settings={"ignore_unknown_options": True})  # -1 is a code
@click.argument(
    "wanted",
    metavar="[CODE|NAME]",
    required=False,
    shell_complete=complete_from(lambda: (error.name for error in ERRORS.values())),
)
@table_options
def error(wanted: str | None, how: TableFormat) -> int:
    """Explain an error code and its usual causes.

    CODE is a number; NAME is all or part of a name. ZooKeeper's names (NONODE) work, too. A
    part of several names lists them; without an argument all codes are listed.

    \b
      kafkascope error 25
      kafkascope error fenced
    """
    from kafkascope.analyzer.filter.errors import nearest
    from kafkascope.dissectors.reference.help import help_of

    codes = [code for code in ERRORS.values() if wanted is None or _matches(code, wanted)]
    exact = [code for code in codes if wanted and code.name == wanted.upper()]
    codes = exact or codes
    if not exact and wanted is not None and (explanation := _explain_zookeeper(wanted)):
        document("\n".join(explanation))
        return 0
    if not codes and wanted is not None:
        near = nearest(wanted, (code.name for code in ERRORS.values()))
        hint = f"; did you mean {near}?" if near else " (list: kafkascope error)"
        raise click.UsageError(f'there is no error "{wanted}"{hint}')
    helps = [help_of(code.code) for code in codes]
    if len(codes) == 1 and how.name == "table":
        document("\n".join(_explain(codes[0], helps[0])))
        return 0
    rows = [
        (
            code.code,
            code.name,
            "yes" if code.retriable else "no",
            code.since,
            " ".join(code.former_names),
            help.meaning,
            "; ".join(help.causes),
        )
        for code, help in zip(codes, helps, strict=True)
    ]
    header = ("code", "name", "retriable", "since", "former names", "meaning", "causes")
    print_table(header, rows, how)
    return 0


def _explain_zookeeper(wanted: str) -> list[str]:
    """Return the lines about an error of ZooKeeper: by name, or by a code that Kafka lacks."""
    for code, name in ZOOKEEPER["ZooKeeperError"].items():
        number = int(code)
        if name == wanted.upper() or (wanted == str(number) and number not in ERRORS):
            meaning = MEANINGS.get(number, "It was done.")
            return [f"{name} ({number}), of ZooKeeper", "", meaning]
    return []


def _explain(error: ErrorCode, help: Help) -> list[str]:
    former = f", once {' or '.join(error.former_names)}" if error.former_names else ""
    head = f"{error.name} ({error.code}), since Kafka {error.since}{former}"
    if error.code == 0:
        return [head, "", help.meaning]
    retry = "A client may send the same request again."
    if not error.retriable:
        retry = "Sending the same request again does not help by itself."
    causes = (f"  - {cause}" for cause in help.causes)
    return [head, "", help.meaning, retry, "", "Usual causes:", *causes]


def _matches(error: ErrorCode, wanted: str) -> bool:
    if wanted.lstrip("-").isdecimal():
        return int(wanted) == error.code
    return any(wanted.upper() in name.upper() for name in (error.name, *error.former_names))


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
        rows = _body_fields(word)
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
        for title, texts in (("\ntypes:", TYPES), ("costs:", COSTS)):
            say(title, bare=True)
            for name, text in texts.items():
                say(f"  {name:<9} {text}", bare=True)
    return 0


def _body_fields(word: str) -> list[tuple[str, ...]]:
    """Return the rows of body fields whose path contains what follows `request.`, `response.` or
    `body.`, or which belong to the API of that name."""
    from kafkascope.analyzer.filter.paths import known, leaves, of_message

    side, _, rest = word.partition(".")
    paths = of_message(cast("Side", side), rest) if rest and side != "body" else None
    if paths is None:
        every = sorted(leaves().items()) if side == "body" else known(cast("Side", side)).items()
        paths = {path: set(kinds) for path, kinds in every if rest in path}
    return [
        (f"{side}.{path}", "body", "b", " or ".join(sorted(kinds)).lower(), "", "")
        for path, kinds in paths.items()
    ]
