"""`kafkascope grammar`: the layout of a message at one version, or of everything."""

from __future__ import annotations

from collections.abc import Iterator

import click

from analyzer.commands.codec import full_name


@click.command()
@click.argument("name", required=False)
@click.argument("version", required=False)
@click.option("--request", "side", flag_value="Request", help="The request alone.")
@click.option("--response", "side", flag_value="Response", help="The response alone.")
@click.option("--source", is_flag=True, help="The reader that is generated from it.")
def grammar(name: str | None, version: str | None, side: str | None, source: bool) -> int:
    """Print the layout of a message in the style of Kafka's protocol guide.

    NAME is an API (Fetch, or its key), or a message (FetchRequest, OffsetCommitValue); without
    VERSION its newest one, `all` for every one. Without NAME: the list of all APIs and messages,
    `all` for all grammars.

    \b
      kafkascope grammar Fetch 12
      kafkascope grammar OffsetCommitValue all
    """
    if name is None:
        click.echo("\n".join(_list()))
        return 0
    from dissectors import registry

    names = registry.message_names() if name.lower() == "all" else _meant(name, side)
    if name.lower() == "all" and side:
        names = [each for each in names if each.endswith(side)]
    every = "all" if name.lower() == "all" else version
    texts = (text for each in names for text in _texts(each, every, source))
    for index, text in enumerate(texts):
        click.echo(("\n" if index else "") + text, nl=False)
    return 0


def _meant(name: str, side: str | None) -> list[str]:
    from dissectors import registry
    from dissectors.errors import UnknownApi

    if side is None:
        try:
            number = name.isascii() and name.isdecimal()
            api = registry.api_of(int(name)) if number else registry.api_named(name)
            return [f"{api.name}Request", f"{api.name}Response"]
        except UnknownApi:
            pass
    return [full_name(name, side)]


def _texts(name: str, version: str | None, source: bool) -> Iterator[str]:
    from dissectors import grammar as printed
    from dissectors import registry

    versions = registry.message(name).versions
    if version is None:
        wanted = [versions.high]
    elif version.lower() == "all":
        wanted = list(range(versions.low, versions.high + 1))
    else:
        try:
            wanted = [int(version)]
        except ValueError:
            raise click.UsageError(f'VERSION is a number or all, not "{version}"') from None
    for number in wanted:
        layout = registry.layout_of(name, number)
        if source:
            from dissectors.reader import reader_source

            yield reader_source(layout, {}) + "\n"
            continue
        yield printed.grammar(layout)
        for other in registry.variants_of(name, number):
            yield printed.grammar(other)


def _list() -> Iterator[str]:
    from dissectors import messages, registry

    yield f"{'key':>4}  {'API':<40} {'versions':<9} flexible"
    for api in registry.APIS.values():
        yield f"{api.key:>4}  {api.name:<40} {api.versions!s:<9} {api.flexible}"
    yield ""
    yield "other messages"
    for name in messages.DATA:
        message = registry.message(name)
        yield f"      {name:<40} {message.versions!s:<9} {message.flexible}"
