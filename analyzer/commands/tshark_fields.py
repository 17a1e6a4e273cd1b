"""`-T fields -e ... -E ...` as tshark has it: one line per exchange, fields between separators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import click

from kafkascope.analyzer.commands.ls_lines import Printing
from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.render.cells import plain
from kafkascope.analyzer.render.listing import raw_values
from kafkascope.analyzer.text import safe

if TYPE_CHECKING:
    from kafkascope.analyzer.commands.output import Output
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange

_NAMED: Final = {"/t": "\t", "/s": " "}
_QUOTES: Final = {"n": "", "d": '"', "s": "'"}


class FieldsPrinter:
    """Prints chosen fields; `BadParameter` for a name that is no field."""

    def __init__(self, names: Iterable[str], options: Iterable[str]) -> None:
        self.names = list(names)
        try:
            self.getters: list[tuple[Any, Any]] = [raw_values(name) for name in self.names]
        except FilterError as error:
            raise click.BadParameter(error.sentence, param_hint="-e") from None
        chosen = {
            "header": "n",
            "separator": "/t",
            "occurrence": "a",
            "aggregator": ",",
            "quote": "n",
        }
        for option in options:
            name, equals, value = option.partition("=")
            if not equals or name not in chosen:
                known = ", ".join(chosen)
                raise click.BadParameter(
                    f'"{option}": write NAME=VALUE with {known}', param_hint="-E"
                )
            chosen[name] = value
        self.header = chosen["header"] == "y"
        self.separator = _NAMED.get(chosen["separator"], chosen["separator"])
        self.aggregator = _NAMED.get(chosen["aggregator"], chosen["aggregator"])
        self.occurrence = chosen["occurrence"]
        quote = _QUOTES.get(chosen["quote"])
        if quote is None or self.occurrence not in ("f", "l", "a"):
            raise click.BadParameter(
                "write quote=d, s, or n, and occurrence=f, l, or a", param_hint="-E"
            )
        self.quote = quote

    def lines(self, output: Output) -> Printing:
        """One line for each exchange."""

        def of(row: Row, exchange: Exchange | None) -> bytes:
            return output.lined(self.separator.join(self._cells(row, exchange)))

        if not self.header:
            return Printing(of, self.names)
        return Printing(of, self.names, output.lined(self.separator.join(self.names)), always=True)

    def _cells(self, row: Any, exchange: Any) -> Iterable[str]:
        for kind, values in self.getters:
            found = list(values(row, exchange))
            if self.occurrence == "f":
                found = found[:1]
            elif self.occurrence == "l":
                found = found[-1:]
            # tshark prints the number of an API or error, not its name.
            number = kind in ("api", "error")
            texts = (str(value) if number else plain(kind, value) for value in found)
            text = safe(self.aggregator.join(texts))
            yield f"{self.quote}{text}{self.quote}" if found else ""
