"""`kafkascope capture`: packets of an interface into a file, with rates of what is seen in them."""

from __future__ import annotations

import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafkascope.analyzer.commands.help import command, complete_interfaces, setting
from kafkascope.analyzer.commands.options import key_logs, keylog_option
from kafkascope.analyzer.terminal import say, status
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.spool import Tee

if TYPE_CHECKING:
    from kafkascope.analyzer.transform.live_secrets import SecretsRecording
    from kafkascope.captures.inputs.keylogs import KeyLogFollower
    from kafkascope.private import PrivateFile

# Seconds between two lines about rates.
EVERY: Final = 1.0


@command()
@setting(
    "-i interface",
    "IFACE",
    "Interface to capture on; any for all",
    required=True,
    shell_complete=complete_interfaces,
)
@setting("-f capture_filter", "BPF", "Capture filter, as in tcpdump", default="")
@setting("-w output", "FILE", "File to write, pcapng", required=True)
@setting("-c count", "N", "Stop after N exchanges", type=click.IntRange(min=1))
@setting("--for seconds", "SECONDS", "Stop after SECONDS", type=click.FloatRange(min=0))
@keylog_option()
@setting(
    "--secrets",
    "",
    "Also write the TLS secrets of the captured connections; the file then decrypts itself",
)
@setting("-q --quiet", "", "Show no rates, and no summary")
def capture(
    interface: str,
    capture_filter: str,
    output: str,
    count: int | None,
    seconds: float | None,
    keylog: tuple[str, ...],
    secrets: bool,
    quiet: bool,
) -> int:
    """Record packets of an interface to a file.

    Ends with ctrl+c, or after -c or --for. Uses dumpcap or tcpdump if one is installed. If you
    lack the permission, the error names the command that grants it. `kafkascope -i IFACE` shows
    the traffic while it is captured.

    \b
      kafkascope capture -i eth0 -f 'port 9092' -w kafka.pcapng
      kafkascope capture -i any -w kafka.pcapng --for 60
      kafkascope capture -i eth0 -w tls.pcapng --keylog keys.log --secrets
      kafkascope open -i eth0 -f 'port 9092' -w kafka.pcapng
    """
    from kafkascope.captures.inputs.keylogs import follow_key_logs
    from kafkascope.captures.live import open_interface
    from kafkascope.private import PrivateFile, is_special

    path = Path(output)
    if path.exists() and not is_special(path):
        raise click.UsageError(f"{path} exists already: choose another name for -w")
    log = follow_key_logs(key_logs(keylog))
    if secrets and log is None:
        raise click.UsageError("--secrets needs a key log: add --keylog FILE")
    # The file appears when there is something to write: not where capturing is not allowed.
    copy = PrivateFile(path, buffering=0)
    sink = _Sink(copy)
    recording: SecretsRecording | None = None
    tee: Tee | None = None
    if secrets and log is not None:
        from kafkascope.analyzer.transform.live_secrets import SecretsRecording

        recording = SecretsRecording(sink, log.log)
    else:
        tee = Tee(copy, capacity=1 << 20)
    try:
        source = open_interface(interface, capture_filter, spool=tee)
        watched = _Watched(source, log, quiet, seconds, copy.file.fileno())
        try:
            watched.run(count, recording)
        finally:
            source.close()
    finally:
        written = sink.written if tee is None else tee.written
        (copy.close if written else copy.discard)()
    if written and not quiet:
        say(f"{watched.counted()} written to {path}")
    return 0


class _Sink:
    """A file without a buffer that takes all of what it is given."""

    def __init__(self, copy: PrivateFile) -> None:
        self._file = copy.file
        self.written = 0

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        self.written += len(view)
        while view:
            view = view[self._file.write(view) :]


class _Watched:
    """A live capture with its progress line."""

    def __init__(
        self,
        source: Source,
        log: KeyLogFollower | None,
        quiet: bool,
        seconds: float | None,
        target: int,
    ) -> None:
        """`target`: descriptor that packets are written to."""
        self._source = source
        self._target = target
        self._log = log
        self._quiet = quiet
        self._seconds = seconds
        self._exchanges = 0
        self._done = threading.Event()

    def counted(self) -> str:
        statistics = self._source.statistics
        return f"{statistics.packets:,} packets, {self._exchanges:,} exchanges"

    def run(self, count: int | None, recording: SecretsRecording | None) -> None:
        """Read until ctrl+c, the count, the time, or until the reader of the output pipe has gone.
        `recording` gets the packets and secrets."""
        from kafkascope.analyzer.exchanges.offline import OpenInput

        found = OpenInput(self._source, log=self._log, live=True)
        if recording is not None:
            taken = recording
            self._source.watcher = lambda block: taken.block(block, time.monotonic())
            found.context.keys.opened = recording.opened
        # A signal wakes what waits for packets; not SIGINT, which a job in the background ignores.
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        teller = threading.Thread(target=self._show_progress, daemon=True)
        teller.start()
        signal.setitimer(
            signal.ITIMER_REAL, 0.0 if self._seconds is None else max(self._seconds, 1e-6)
        )
        try:
            for _ in found.exchanges():
                self._exchanges += 1
                if count is not None and self._exchanges >= count:
                    break
        except KeyboardInterrupt:  # the usual end
            # Those without a response are exchanges of the file, too.
            self._exchanges += len(found.in_flight())
        finally:
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            self._done.set()
            teller.join(1)
            signal.signal(signal.SIGALRM, before or signal.SIG_DFL)
            if recording is not None:
                found.in_flight()  # secrets that came last open what waits
                recording.finish()

    def _show_progress(self) -> None:
        packets = exchanges = 0
        bar = not self._quiet and sys.stderr.isatty()
        poll = select.poll()
        poll.register(self._target, 0)  # POLLERR: the reader of a pipe has gone
        while not self._done.wait(EVERY):
            if poll.poll(0):
                # Without packets nothing is written that would tell.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
                break
            now = self._source.statistics.packets
            if bar:
                rates = f"{now - packets:,} packets/s  {self._exchanges - exchanges:,} exchanges/s"
                status(f"{self.counted()}  {rates}  ctrl+c ends")
            packets, exchanges = now, self._exchanges
        if bar:
            status()
