"""Command groups that import a command when it is called, and list all of them in sections."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import click


class Home(NamedTuple):
    """A command, not imported yet."""

    place: str
    """module:attribute"""
    help: str
    """The line of the list: imperative verb, object, at most 60 characters."""


ELSEWHERE: Final = {"faults": "; to list faults: kafkascope proxy --help-faults"}
"""What is said of names that are no commands, but are looked for."""

Sections: TypeAlias = Mapping[str, Mapping[str, Home]]
"""Title of a section -> name of a command -> home."""


class LazyGroup(click.Group):
    """A group whose commands are declared as text, by section."""

    def __init__(self, *args: Any, sections: Sections, **options: Any) -> None:
        super().__init__(*args, **options)
        self.sections = sections
        self.homes = {name: home for homes in sections.values() for name, home in homes.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, section by section."""
        return list(self.homes)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the command's module."""
        home = self.homes.get(name)
        if home is None:
            return None
        module, _, attribute = home.place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return `--help`, with words as other options have them."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "Show this help and exit"
        return option

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        width = max(map(len, self.homes))
        for title, homes in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), home.help) for name, home in homes.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; the error for an unknown one suggests the nearest name."""
        if args[0] not in self.homes:
            hint = ELSEWHERE.get(args[0]) or self._nearest(args[0])
            ctx.fail(f"{self.unknown(args[0])}{hint}")
        return super().resolve_command(ctx, args)

    def unknown(self, name: str) -> str:
        """Return the sentence about a name that is no command."""
        return f'there is no command "{name}"'

    def _nearest(self, name: str) -> str:
        from difflib import get_close_matches

        near = get_close_matches(name, self.homes, n=1)
        return f'; did you mean "{near[0]}"?' if near else ""
