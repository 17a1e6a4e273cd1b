"""Recordings that begin while the proxy runs: streams of packets on demand.

A proxy that records nothing has no recorder; one is made for the first stream and ends with the
last. Open connections are tapped between two frames, so that no part of a frame whose secrets were
not masked gets out.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafkascope.proxy.engine.server import KafkaProxy
    from kafkascope.proxy.recording.recorder import Recorder
    from kafkascope.proxy.recording.sinks import PipeSink
    from kafkascope.proxy.relay.connection import Connection

AGAIN_S: Final = 0.05
"""Until connections that stood in the middle of a frame are looked at again."""


class Live:
    """The streams of a proxy."""

    def __init__(self, proxy: KafkaProxy) -> None:
        self._proxy = proxy
        self._own: Recorder | None = None
        self._streams: set[PipeSink] = set()

    def add(self, fd: int, name: str) -> PipeSink:
        """Write packets into a pipe or socket from now on; it is closed at the end."""
        from kafkascope.proxy.recording.recorder import Recorder

        proxy = self._proxy
        recorder = proxy.recorder
        if recorder is None:
            recorder = self._own = Recorder(secrets=proxy.hub.with_secrets)
            recorder.hub = proxy.hub
            sink = recorder.add_pipe(fd, name)
            recorder.start()
            proxy.recorder = proxy.hub.recording = recorder
            self._tap()
        else:
            sink = recorder.add_pipe(fd, name)
        self._streams.add(sink)
        return sink

    async def remove(self, sink: PipeSink) -> None:
        """End a stream."""
        self._streams.discard(sink)
        recorder = self._proxy.recorder
        if recorder is None:
            return
        recorder.remove(sink)
        metrics = self._proxy.hub.metrics
        metrics.counters["recorder_dropped_total"].pop(sink.name, None)
        if sink.dropped:
            metrics.add("recorder_dropped_total", sink.name, sink.dropped)
        if recorder is self._own and not self._streams:
            self._untap()
            self._own = self._proxy.recorder = self._proxy.hub.recording = None
            await asyncio.to_thread(recorder.stop)
        await asyncio.to_thread(sink.stop, 1.0)

    def _relays(self) -> list[Connection]:
        handlers = self._proxy.handlers
        return [h.kafka.relay for h in handlers if h.kafka is not None and h.kafka.relay]

    def _tap(self) -> None:
        recorder = self._own
        if recorder is None:
            return
        later = False
        for relay in self._relays():
            if relay.context.tap is not None or relay.context.over:
                continue
            if all(d.left == 0 and not d.head and d.stop is None for d in relay.directions):
                relay.taps.start(recorder, time.time_ns())
            else:
                later = True
        if later:
            asyncio.get_running_loop().call_later(AGAIN_S, self._tap)

    def _untap(self) -> None:
        for relay in self._relays():
            relay.context.tap = None
