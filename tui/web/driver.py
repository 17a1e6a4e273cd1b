"""The driver of Textual in the process of a browser's tab: writes packets to stdout and reads keys
from stdin. Textual loads it by its name."""

from __future__ import annotations

import os

from textual import events, messages
from textual.drivers.web_driver import WebDriver

PATIENCE = 1.0


class TabDriver(WebDriver):
    """Ends with the tab, and leaves stdin to the next UI of the same process."""

    focused = False
    """Whether the tab has the focus: it tells that once, not to each UI of the process."""

    def start_application_mode(self) -> None:
        """Begin, in a tab that may have the focus already."""
        super().start_application_mode()
        if TabDriver.focused:
            self._send_focus()

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Handle a packet, and keep size and focus for the next UI, which shows another capture."""
        match packet_type:
            case "resize":
                os.environ["COLUMNS"] = str(payload["width"])
                os.environ["ROWS"] = str(payload["height"])
                super().on_meta(packet_type, payload)
            case "focus" | "blur":
                TabDriver.focused = packet_type == "focus"
                self._send_focus()
            case _:
                super().on_meta(packet_type, payload)

    def _send_focus(self) -> None:
        event = events.AppFocus() if TabDriver.focused else events.AppBlur()
        # After the blur that every UI begins with, which takes the same detour.
        self._app.call_later(self._app.post_message, event)

    def run_input_thread(self) -> None:
        """Read keys; at the end of stdin end the UI, however the server ended."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            self._app.post_message(messages.ExitApp())

    def stop_application_mode(self) -> None:
        """End, and read no more: what comes is for the next UI."""
        super().stop_application_mode()
        self._key_thread.join(PATIENCE)
