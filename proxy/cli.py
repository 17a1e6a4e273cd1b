"""`kafkascope proxy`."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafkascope.analyzer.commands.help import command
from kafkascope.analyzer.logs import log_to
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import plural
from kafkascope.errors import INTERRUPTED, UNAVAILABLE
from kafkascope.private import PrivateFile
from kafkascope.proxy import answers
from kafkascope.proxy.engine.directory import unanswered
from kafkascope.proxy.options import ProxyOptions, proxy_options

if TYPE_CHECKING:
    from kafkascope.analyzer.reading.options import SchemaOptions
    from kafkascope.proxy.control.control import Control
    from kafkascope.proxy.engine.server import KafkaProxy
    from kafkascope.proxy.hub import Hub
    from kafkascope.proxy.recording.recorder import Recorder
    from kafkascope.proxy.rules.rules import Rule
OPEN_HOOK: Final = "open_proxy"
# For the lines that are still to be printed at the end; a busy machine takes seconds.
WATCH_S: Final = 20.0
# For the recording after the second signal; then the process ends whatever hangs.
LAST_S: Final = 1.0
# Beyond `--grace`, for the end of the proxy.
AFTER_S: Final = 10.0


@command()
@proxy_options
@click.pass_context
def proxy(context: click.Context, options: ProxyOptions) -> int:
    """Watch, record, and disturb traffic as a Kafka proxy.

    Point clients at the printed address. Each broker of the cluster gets its own listener, and the
    proxy replaces addresses in responses, so that clients keep using it. It prints one line per
    exchange, as `kafkascope ls` does.

    \b
      kafkascope proxy --upstream broker:9092
      kafkascope proxy --upstream broker:9092 -w session.pcapng --quiet
      kafkascope proxy --upstream broker:9092 -Y 'error or latency > 1s'
      kafkascope proxy --upstream broker:9092 --fault 'api == Fetch -> delay 1s'
    """
    log_to(sys.stderr, logging.DEBUG if options.verbose else logging.WARNING)
    if options.open:
        hook = (context.find_root().meta or {}).get(OPEN_HOOK)
        if hook is None:
            raise click.UsageError("--open needs the terminal UI: pip install 'kafkascope[tui]'")
        return _open(options, hook)
    return _run(Running(options, options.rules()))


def _open(options: ProxyOptions, hook: Callable[[Path, SchemaOptions, str], int]) -> int:
    """Start the proxy as a child process, show it by `hook` until the user leaves, then stop it.
    Two processes: the screen must not take the traffic's time, and neither may crash the other."""
    from kafkascope.proxy.control.control import socket_path

    ready, tell = os.pipe()
    with tempfile.TemporaryFile("w+") as output:
        more = "--quiet", "--until-eof", "--ready-file", f"/dev/fd/{tell}"
        child = subprocess.Popen(
            [sys.executable, "-m", "kafkascope.proxy.cli", *options.arguments, *more],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=(tell,),
            start_new_session=True,  # ctrl+c is for the screen
        )
        try:
            os.close(tell)
            with os.fdopen(ready) as pipe:
                bootstrap = pipe.readline()
            if not bootstrap:
                return child.wait()
            if options.ready_file is not None:
                with PrivateFile(options.ready_file, shared=True) as file:
                    file.write(bootstrap.encode())
            path = Path(options.control) if options.control else socket_path(child.pid)
            return hook(path, options.schemas, options.filter)
        finally:
            assert child.stdin is not None
            child.stdin.close()
            _end(child, options.grace_s + AFTER_S)
            output.seek(0)
            for line in output.read().splitlines():
                say(line, bare=True)


def _end(child: subprocess.Popen[bytes], timeout_s: float) -> None:
    try:
        child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _ended(error: OSError | ValueError) -> Exception:
    """Says what is wrong, with the file or address; how to leave, as all commands do."""
    if not isinstance(error, OSError):
        return click.UsageError(str(error))
    text = error.strerror or str(error)
    say(f"{error.filename}: {text}" if error.filename else text)
    return click.exceptions.Exit(UNAVAILABLE)


def _run(running: Running) -> int:
    try:
        import uvloop  # type: ignore[import-not-found,unused-ignore]

        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    except ImportError:
        runner = asyncio.Runner()
    with runner:
        return runner.run(running.main())


class Running:
    """A proxy as a command: from the options to the exit code."""

    def __init__(self, options: ProxyOptions, rules: list[Rule]) -> None:
        self.options = options
        self.rules = rules
        self._signals = 0
        self._stop: asyncio.Event
        self._watcher: subprocess.Popen[bytes] | None = None

    async def main(self) -> int:
        from kafkascope.proxy.control.control import Control, socket_path
        from kafkascope.proxy.control.exposition import Exposition
        from kafkascope.proxy.engine import descriptors
        from kafkascope.proxy.engine.server import KafkaProxy
        from kafkascope.proxy.recording.recorder import Recorder

        options = self.options
        if options.control == "-" and not answers.has_pipes():
            raise click.UsageError(answers.NO_PIPES)
        descriptors.raise_limit()
        self._stop = asyncio.Event()
        recorder = None if options.recording is None else Recorder(**options.recording)
        try:
            made = KafkaProxy(**options.engine, rules=self.rules, recorder=recorder)
            if recorder is not None and not options.quiet:
                self._watch(recorder)
            await made.start()
        except (OSError, ValueError) as error:
            self._end_watch(0)  # its input may not end: nobody has begun to write
            raise _ended(error) from error
        asyncio.get_running_loop().set_exception_handler(partial(_report, made.hub))
        control = Control(made, self._stop.set)
        self._catch(made, control)
        exposition = Exposition(made, options.metrics_hosts)
        tasks: list[asyncio.Task[None]] = []
        try:
            if options.control == "-":
                tasks.append(asyncio.create_task(self._until_end(control.serve_pipe())))
            elif options.control != "none":
                await control.listen(Path(options.control) if options.control else socket_path())
            if options.metrics is not None:
                await exposition.listen(options.metrics)
            if options.until_eof:
                tasks.append(asyncio.create_task(self._until_end(answers.stdin_ends())))
        except OSError as error:
            await made.stop(0)
            await control.close()
            self._end_watch()
            raise _ended(error) from error
        self._ready(made)
        _try(made)
        await self._stop.wait()
        await made.stop(options.grace_s)
        for task in tasks:
            task.cancel()
        await control.close()
        await exposition.close()
        await asyncio.to_thread(self._end_watch)  # a second signal is heard meanwhile
        self._farewell(made)
        return 0

    async def _until_end(self, what: Awaitable[None]) -> None:
        """A parent that is gone wants no proxy any more."""
        try:
            await what
        finally:
            self._stop.set()

    def _watch(self, recorder: Recorder) -> None:
        from kafkascope.proxy.recording import watch

        options = self.options
        arguments = ["--json"] * options.json
        if options.filter:
            arguments += ["-Y", options.filter, *options.schemas.words()]
        self._watcher = watch.start(*arguments)
        assert self._watcher.stdin is not None
        descriptor = os.dup(self._watcher.stdin.fileno())
        self._watcher.stdin.close()
        recorder.add_pipe(descriptor, "lines")

    def _end_watch(self, timeout_s: float = WATCH_S) -> None:
        if self._watcher is not None:
            _end(self._watcher, timeout_s)

    def _catch(self, made: KafkaProxy, control: Control) -> None:
        loop = asyncio.get_running_loop()

        def on_signal() -> None:
            self._signals += 1
            if self._signals == 1:
                self._stop.set()
            else:
                made.kill()
                loop.call_later(LAST_S, _exit, control)

        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, on_signal)

    def _ready(self, made: KafkaProxy) -> None:
        options = self.options
        what = {"reverse": "bootstrap.servers", "socks5": "SOCKS5 proxy", "transparent": "listener"}
        say(f"{what[made.mode]} {made.bootstrap}")
        if made.tls.ca_file is not None:
            say(f"clients must trust the CA in {made.tls.ca_file}")
        if made.recorder is not None and made.recorder.path is not None:
            say(f"recording to {made.recorder.path}")
        for rule in made.rules:
            say(f"rule: {rule}")
        if options.ready_file is not None:
            with PrivateFile(options.ready_file, shared=True) as file:
                file.write(f"{made.bootstrap}\n".encode())

    def _farewell(self, made: KafkaProxy) -> None:
        metrics = made.hub.metrics
        requests = sum(metrics.requests.values())
        connections = metrics.get("connections_total")
        say(
            f"{plural(requests, 'request')} on {plural(connections, 'connection')}, "
            f"{metrics.bytes[0]:,} bytes from clients, {metrics.bytes[1]:,} from brokers"
        )
        for rule in made.rules:
            trigger = getattr(rule, "trigger", None)
            if trigger is not None:
                say(f"rule {rule.name}: matched {trigger.matched}, fired {trigger.fired}")
        recorder = made.recorder
        if recorder is None:
            return
        for sink in recorder.sinks:
            if sink.dropped or sink.failed:
                why = f" ({sink.trouble})" if sink.trouble else " (too slow)"
                say(f"{sink.name}: {sink.dropped} packets are missing{why}")
        if recorder.dropped:
            say(f"recording: {recorder.dropped} reads are missing (too slow)")
        if recorder.files:
            say("capture: " + ", ".join(map(str, recorder.files)))


def _report(hub: Hub, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        # The loop tries again; it would tell so, with a traceback, each second.
        hub.once("accept", f"new connections cannot be accepted: {error}")
    else:
        loop.default_exception_handler(context)


def _try(made: KafkaProxy) -> None:
    """Report upstreams at which no broker answers. The proxy stays: in containers brokers come
    later. Runs in a daemon thread: a resolver may take a minute."""
    loop = asyncio.get_running_loop()

    def report(sentence: str) -> None:
        with suppress(RuntimeError):  # the proxy has ended meanwhile
            loop.call_soon_threadsafe(made.hub.once, sentence, sentence)

    arguments = (made.nodes.upstreams, report)
    threading.Thread(target=unanswered, args=arguments, daemon=True).start()


def _exit(control: Control) -> None:
    if control.path is not None:
        control.path.unlink(missing_ok=True)
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(proxy.main(standalone_mode=True, prog_name="kafkascope proxy"))
