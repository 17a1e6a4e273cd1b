"""What Textual draws with in a process that a tab of a browser belongs to: packets on stdout, keys
on stdin. Textual loads it by its name."""

from __future__ import annotations

import os

from textual import messages
from textual.drivers.web_driver import WebDriver

PATIENCE = 1.0


class TabDriver(WebDriver):
    """Ends when the tab is gone, and gives way to the next UI of the same process."""

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Also remember the size: another capture opens in a UI that begins with it."""
        if packet_type == "resize":
            os.environ["COLUMNS"], os.environ["ROWS"] = (
                str(payload["width"]),
                str(payload["height"]),
            )
        super().on_meta(packet_type, payload)

    def run_input_thread(self) -> None:
        """Read keys; the end of stdin is the end of the UI, however the server ended."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            self._app.post_message(messages.ExitApp())

    def stop_application_mode(self) -> None:
        """Also read no more: what comes is for the next UI."""
        super().stop_application_mode()
        self._key_thread.join(PATIENCE)
