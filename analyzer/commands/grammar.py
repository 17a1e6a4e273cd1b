"""`kafkascope grammar`: the layout of a message at one version, or of everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from kafkascope.analyzer.commands.codec import full_name, message_names, message_option
from kafkascope.analyzer.commands.help import command, complete_from, setting
from kafkascope.analyzer.terminal import document
from kafkascope.dissectors import messages, registry
from kafkascope.dissectors.codec.reader import reader_source
from kafkascope.dissectors.errors import UnknownApi
from kafkascope.dissectors.values import Versions


@command()
@click.argument("name", required=False, shell_complete=complete_from(message_names))
@click.argument("version", required=False)
@message_option("Print only the {}")
@setting("--since", "", "Print the history: release and changes of each version")
@setting("--source", "", "Print the generated decoder")
def grammar(
    name: str | None, version: str | None, side: str | None, since: bool, source: bool
) -> int:
    """Print the layout of a message in any version.

    The notation is that of Kafka's protocol guide.

    NAME is an API (Fetch, or its key) or a message (FetchRequest, OffsetCommitValue). VERSION is a
    number or all (default: newest). Without NAME all APIs and messages are listed.

    \b
      kafkascope grammar Fetch 12
      kafkascope grammar OffsetCommitValue all
      kafkascope grammar JoinGroup --since
    """
    if name is None:
        document("\n".join(_list()))
        return 0
    if name.lower() == "all":
        texts = _everything(side, since, source)
    else:
        texts = _of_one(name, version, side, since, source)
    for index, text in enumerate(texts):
        document(("\n" if index else "") + text.removesuffix("\n"))
    return 0


def _everything(side: str | None, since: bool, source: bool) -> Iterator[str]:
    for name in registry.message_names():
        if not side or name.lower().endswith(side):
            yield from _of_message(name, "all", since, source)


def _of_one(
    name: str, version: str | None, side: str | None, since: bool, source: bool
) -> Iterator[str]:
    from kafkascope.dissectors.zookeeper.types import BY_NAME

    if name.lower() in BY_NAME and not (side or source):
        from kafkascope.dissectors.codec.grammar import zookeeper_grammar

        yield zookeeper_grammar(BY_NAME[name.lower()])
        return
    key = _api_key(name) if side is None else None
    if key is None:
        yield from _of_message(full_name(name, side), version, since, source)
        return
    api = registry.APIS[key]
    if since:
        from kafkascope.dissectors.codec.history import history

        yield history(api.name)
    elif source:
        for each in (f"{api.name}Request", f"{api.name}Response"):
            yield from _of_message(each, version, since, source)
    else:
        from kafkascope.dissectors.codec.grammar import call_grammar

        for number in _selected_versions(version, api.versions):
            yield call_grammar(key, number)


def _api_key(name: str) -> int | None:
    try:
        number = name.isascii() and name.isdecimal()
        return (registry.api_of(int(name)) if number else registry.api_named(name)).key
    except UnknownApi:
        return None


def _selected_versions(version: str | None, versions: Versions) -> Sequence[int]:
    if version is None:
        return [versions.high]
    if version.lower() == "all":
        return range(versions.low, versions.high + 1)
    try:
        return [int(version)]
    except ValueError:
        raise click.UsageError(f'"{version}" is no version: write a number or all') from None


def _of_message(name: str, version: str | None, since: bool, source: bool) -> Iterator[str]:
    from kafkascope.dissectors.codec.grammar import grammar as printed

    if since:
        from kafkascope.dissectors.codec.history import history

        yield history(name)
        return
    for number in _selected_versions(version, registry.message(name).versions):
        layout = registry.layout_of(name, number)
        if source:
            yield f"# {name} {number}\n{reader_source(layout)}"
            continue
        yield printed(layout)
        for other in registry.variants_of(name, number):
            yield printed(other)


def _list() -> list[str]:
    from textwrap import wrap

    from kafkascope.dissectors.zookeeper.types import TYPES

    indent = " " * 6
    others = map(registry.message, messages.DATA)
    return [
        f"{'key':>4}  {'API':<40} {'versions':<9} flexible",
        *(
            f"{api.key:>4}  {api.name:<40} {api.versions!s:<9} {api.flexible}"
            for api in registry.APIS.values()
        ),
        "",
        "requests of ZooKeeper",
        *wrap(
            " ".join(each.name for each in TYPES.values()),
            92,
            initial_indent=indent,
            subsequent_indent=indent,
        ),
        "",
        "other messages",
        *(
            f"{indent}{name:<40} {message.versions!s:<9} {message.flexible}"
            for name, message in zip(messages.DATA, others, strict=True)
        ),
    ]
