"""The terminal UI with a guide at its foot. All keys work as ever; the guide has three more."""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from kafkascope.tui.app import ScopeApp


class TourStep(NamedTuple):
    """A step of the tour, which is reached when the screen of that number is shown."""

    question: str
    press: str
    see: str
    screen: int | None = None


STEPS: Final = (
    TourStep(
        "One minute of traffic from an online shop. A row is a request with its response. What is"
        " wrong?",
        "7",
        "Findings, most severe first. Up and down select one; its cause and fix are below. ▸ marks"
        " causes with consequences: Enter expands them.",
        7,
    ),
    TourStep(
        "Which listener is unreachable?",
        'down to "Broker 3 advertises", Enter',
        "The evidence: Metadata responses that send reports-ui to 172.17.0.4:29092, an address"
        " inside a container. Nothing answers there.",
        1,
    ),
    TourStep(
        "Where is it in the bytes?",
        "Enter, then r",
        "The decoded response. The field under the cursor is highlighted in the bytes pane (tab). R"
        " shows records and packets. Esc goes back, as often as you like.",
    ),
    TourStep(
        "Which client breaks on Kafka 4?",
        "3",
        "Clients with library and API versions. legacy-export supports Fetch up to v3 and Produce"
        " up to v2, removed in Kafka 4.0. crm-sync never completed authentication.",
        3,
    ),
    TourStep(
        "Why does the group rebalance?",
        "5, down to billing, Enter",
        "One lane for each member: J join, = stable, x missed heartbeats, l left. Below: each"
        " rebalance with its cause: joined, expired, left.",
        5,
    ),
    TourStep(
        "Who reads what orders-svc writes?",
        "0, down to orders-svc",
        "Applications with the topics that they write and read. Peers names who is at the other"
        " side: billing. Enter shows the requests; B groups by client ID, user, host or group.",
        0,
    ),
    TourStep(
        "Slow, or waiting on purpose?",
        "6",
        "Latency and excess. Fetch waits because its client requests it; excess leaves that out."
        " Produce was slow while broker 2 stalled.",
        6,
    ),
    TourStep(
        "Who gets these errors?",
        "1, then e a few times",
        "e goes to the next error or missing response, f follows its connection, client or group, a"
        " filters by the value under the cursor.",
        1,
    ),
    TourStep(
        "And my own traffic?",
        "Q to quit, then: sudo tcpdump -i any -s 0 -w my.pcap port 9092",
        "kafkascope my.pcap opens it, kafkascope check my.pcap prints findings with an exit code"
        " for CI, kafkascope report my.pcap -o my.html writes a report. ? lists all keys.",
    ),
)


class TourApp(ScopeApp):
    """Shows the steps of the tour."""

    CSS = """
    ToastRack { margin-bottom: 7; }
    #tour { height: auto; max-height: 6; padding: 0 1; }
    """
    """Notifications are shown above the guide."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2,ctrl+n", "tour(1)", "tour: next", show=False, priority=True),
        Binding("f3,ctrl+b", "tour(-1)", "tour: back", show=False, priority=True),
        Binding("f4", "tour(0)", "tour: end", show=False, priority=True),
    ]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.stop_number, self._text = 0, ""
        self._began_at = 1
        """The screen that was shown when this step began."""
        self.guide = Static(id="tour", markup=False)

    def compose(self) -> ComposeResult:
        for widget in super().compose():
            if widget.id == "footer":
                yield self.guide
            yield widget

    def on_mount(self) -> None:
        super().on_mount()
        self.guide.styles.background = "#26262e" if self.current_theme.dark else "#e8e8f0"
        self._draw()

    def action_tour(self, by: int) -> None:
        """Show the next step or the one before; 0 ends the tour."""
        if not by or not 0 <= self.stop_number + by < len(STEPS):
            self.guide.display = by < 0
            return
        self.guide.display = True
        self.stop_number += by
        self._began_at = self.host.number
        self._draw()

    def tick(self) -> None:
        super().tick()
        self._draw()

    def _draw(self) -> None:
        step = STEPS[self.stop_number]
        there = step.screen == self.host.number != self._began_at
        last = self.stop_number == len(STEPS) - 1
        text = Text.assemble(
            (f"{self.stop_number + 1}/{len(STEPS)}  {step.question}", "bold"),
            "\npress ",
            (step.press, "reverse"),
            "   (this screen)" if there else "",
            f"\n{step.see}\n",
            ("F4 ends the tour" if last else "F2 next   F3 back   F4 end", "dim"),
        )
        if self._text != text.plain:
            self._text = text.plain
            self.guide.update(text)
