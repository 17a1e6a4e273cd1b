"""All controllers, and the table of their keys for bindings, help and docs/keys.md."""

from __future__ import annotations

from typing import Final

from kafkascope.tui.controllers.filter import FilterController
from kafkascope.tui.controllers.help import HelpController
from kafkascope.tui.controllers.inputs import InputsController, PortsController
from kafkascope.tui.controllers.inspector import InspectorController
from kafkascope.tui.controllers.marks import ComparisonController, MarksController
from kafkascope.tui.controllers.navigation import NavigationController
from kafkascope.tui.controllers.order import OrderController
from kafkascope.tui.controllers.panes import PanesController
from kafkascope.tui.controllers.search import JumpsController, SearchController
from kafkascope.tui.controllers.sharing import CopyController, ExportController
from kafkascope.tui.controllers.values import ValuesController
from kafkascope.tui.keys import BOARD_KEYS
from kafkascope.tui.screens import SCREENS, board_class

KEYS: Final = tuple(
    key
    for controller in (
        FilterController,
        SearchController,
        PanesController,
        InspectorController,
        JumpsController,
        MarksController,
        ValuesController,
        OrderController,
        CopyController,
        ExportController,
        ComparisonController,
        PortsController,
        NavigationController,
        InputsController,
        HelpController,
    )
    for key in controller.KEYS
)
"""The keys in the order in which help lists them."""
FIRST: Final = frozenset({"app.stop", "pane.next", "pane.previous", "list.find", "filter.focus"})
"""Keys that are handled before those of the widget with the focus and before Textual's own, so that
keys which follow at once go where the focus is by then."""
BELOW: Final = FIRST - {"app.stop"}
"""Those of them that do nothing below a dialog."""
SILENT: Final = frozenset({"app.quit", "pane.open", "app.stop"})
"""Keys that need no command in the palette, or have one of Textual's."""
ALWAYS: Final = frozenset({"list.find_next", "list.find_previous", "list.time"})
LIST_ONLY: Final = (
    frozenset(
        key.id
        for key in KEYS
        if key.id.startswith(("list.", "detail.", "copy."))
        or key.id in ("pane.open", "pane.layout")
    )
    - ALWAYS
)
"""Keys about the list of exchanges: they do nothing while another screen is there."""


def all_ids() -> list[str]:
    """Return the ids of all keys, for the config file."""

    boards = [key for number in SCREENS for key in board_class(number).KEYS]
    return [key.id for key in (*KEYS, *BOARD_KEYS, *boards)]
