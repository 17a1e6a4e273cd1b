"""Command groups that import a command when it is called, and list all of them in sections."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import click

ELSEWHERE: Final = {
    "faults": "; to list faults: kafkascope proxy --help-faults",
    "help": "; see kafkascope --help, or kafkascope COMMAND --help",
    "compare": "; to compare captures: kafkascope diff",
}
"""What is said of names that are no commands, but are looked for."""

Sections: TypeAlias = Mapping[str, Mapping[str, str]]
"""Title of a section -> name of a command -> the line of the list: imperative verb, object, at most
60 characters."""


class LazyGroup(click.Group):
    """A group whose commands are declared as text, by section."""

    def __init__(
        self, *args: Any, sections: Sections, homes: Mapping[str, str], **options: Any
    ) -> None:
        """`homes`: modules below `kafkascope` of commands that have none of their name in
        `analyzer.commands`; after a colon the attribute, if that has another name."""
        super().__init__(*args, **options)
        self.sections, self.homes = sections, homes
        self.names = [name for helps in sections.values() for name in helps]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return self.names

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.names:
            return None
        plain = name.replace("-", "_")
        home = self.homes.get(name, f"analyzer.commands.{plain}")
        module, _, attribute = home.partition(":")
        found = importlib.import_module(f"kafkascope.{module}")
        command: click.Command = getattr(found, attribute or plain)
        return command

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return `--help`, with words as other options have them."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "Show this help and exit"
        return option

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        width = max(map(len, self.names))
        for title, helps in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in helps.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; the error for an unknown one suggests the nearest name."""
        if args[0] not in self.names:
            hint = ELSEWHERE.get(args[0]) or self._nearest(args[0])
            ctx.fail(f"{self.unknown(args[0])}{hint}")
        return super().resolve_command(ctx, args)

    def unknown(self, name: str) -> str:
        """Return the sentence about a name that is no command."""
        return f'there is no command "{name}"'

    def _nearest(self, name: str) -> str:
        from difflib import get_close_matches

        near = get_close_matches(name, self.names, n=1)
        return f'; did you mean "{near[0]}"?' if near else ""
