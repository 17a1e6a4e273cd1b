"""Exchanges with other names, for statistics that others are to see: names are changed where they
come in, so that nothing that is counted, found or drawn later knows the real ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar, cast

from kafkascope.analyzer.bodies.fetch_sessions import FetchSession, Implied
from kafkascope.analyzer.conversation.tampering import anonymized_notes
from kafkascope.analyzer.exchanges.offline import BROKER_LEG
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.model import Exchange, Frame, Request, Response, ZooKeeperFacts
from kafkascope.analyzer.report.limits import LIMITS
from kafkascope.analyzer.topics import TopicNames
from kafkascope.analyzer.transform.names.znodes import renamed_path
from kafkascope.analyzer.transform.redaction import Redaction
from kafkascope.captures.model import (
    Certificate,
    Closed,
    Connection,
    Endpoint,
    Opened,
    Tls,
    TlsSummary,
)
from kafkascope.dissectors.registry import Decoded, write_layout
from kafkascope.dissectors.values import Uuid

T = TypeVar("T")


class _Renamed:
    """A connection with renamed endpoints; counters, which still change, are read from the
    original."""

    __slots__ = ("_connection", "_tls", "a", "b", "interface_comment", "origin", "via")

    def __init__(
        self,
        connection: Connection,
        endpoint: Callable[[Endpoint], Endpoint],
        tls: Callable[[Tls], Tls],
    ) -> None:
        self._connection, self._tls = connection, tls
        self.a, self.b = endpoint(connection.a), endpoint(connection.b)
        self.origin = None if connection.origin is None else endpoint(connection.origin)
        self.via = str(self.a) if connection.via else ""
        own = connection.interface_comment == BROKER_LEG
        self.interface_comment = BROKER_LEG if own else ""

    @property
    def tls(self) -> Tls | None:
        """What is known of its TLS by now."""
        tls = self._connection.tls
        return None if tls is None else self._tls(tls)

    def ends(self, client: int = 0) -> tuple[Endpoint, Endpoint]:
        """Return the client, where it is at the end of `client`, and its broker."""
        a, b = (self.b, self.a) if client else (self.a, self.b)
        return self.origin or a, b

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class Disguise:
    """Changes all names of a capture; the same name always to the same one."""

    def __init__(self, known: TopicNames) -> None:
        """`known`: names of topics by id, which the reading of the capture goes on to learn."""
        # Records are not opened by statistics: their sizes and codecs are to stay as they are.
        self._redaction = Redaction("all", records=False)
        self._known = known
        self._seen = 0
        self._implied: dict[int, tuple[Implied, Implied]] = {}
        """By identity: requests of a session share what it implies."""
        self.names = TopicNames()
        """The changed names by the changed ids."""

    def transformed(self, row: Row, exchange: Exchange) -> tuple[Row, Exchange]:
        """The exchange, and what its row is then."""
        self.learn()
        changed = self._exchange(exchange)
        return row_of(changed, self.names), changed

    def event(self, event: Opened | Closed) -> Opened | Closed:
        """The beginning or end of a connection."""
        return replace(event, connection=self._connection(event.connection))

    def learn(self) -> None:
        """Take over the names of topics that were learned since."""
        known = self._known.all()
        if len(known) == self._seen:
            return
        for topic_id in islice(reversed(known), len(known) - self._seen):
            name = self._redaction.names.name(known[topic_id], "topicName")
            self.names.learn(self._redaction.names.uuid(Uuid(topic_id)), name)
        self._seen = len(known)

    def _exchange(self, exchange: Exchange) -> Exchange:
        redaction = self._redaction
        return replace(
            exchange,
            connection=self._connection(exchange.connection),
            client=self._endpoint(exchange.client),
            broker=self._endpoint(exchange.broker),
            client_id=self._name(exchange.client_id, "clientId"),
            user=self._name(exchange.user, "principal") or "",
            software=redaction.software(exchange.software),
            mechanism=redaction.mechanism(exchange.mechanism),
            request=self._request(exchange.request),
            response=self._response(exchange.response),
            fetch_session=self._session(exchange.fetch_session),
            tls=exchange.tls and exchange.tls._replace(**self._named(exchange.tls)),
            facts=None,
            notes=anonymized_notes(exchange.notes, self._redaction.names.host),
            zookeeper=self._zookeeper(exchange.zookeeper),
        )

    def _zookeeper(self, about: ZooKeeperFacts | None) -> ZooKeeperFacts | None:
        if about is None or about.path is None:
            return about
        return about._replace(path=renamed_path(self._redaction.names, about.path))

    def _named(self, tls: Tls | TlsSummary) -> dict[str, Any]:
        client = self._name(tls.client, "principal") or ""
        return {"server_name": self._host(tls.server_name), "client": client}

    def _tls(self, tls: Tls) -> Tls:
        return replace(
            tls,
            **self._named(tls),
            certificate=tls.certificate and self._certificate(tls.certificate, tls.server_name),
            client_certificate=tls.client_certificate
            and self._certificate(tls.client_certificate, ""),
        )

    def _certificate(self, certificate: Certificate, host: str) -> Certificate:
        """`host`: where a name with `*` is of this host, the new one has to be, too."""
        from kafkascope.captures.tls.certificates import matches

        names = (host if matches(each, host) else each for each in certificate.names)
        return certificate._replace(
            owner=self._name(certificate.owner, "principal") or "",
            issuer=self._name(certificate.issuer, "principal") or "",
            names=tuple(map(self._host, names)),
        )

    def _host(self, host: str) -> str:
        return self._redaction.names.host(host) if host else ""

    def _name(self, text: str | None, kind: str) -> str | None:
        return self._redaction.names.name(text, kind) if text else text

    def _endpoint(self, endpoint: Endpoint) -> Endpoint:
        return Endpoint(self._redaction.names.host(endpoint.host), endpoint.port)

    def _connection(self, connection: Connection) -> Connection:
        return cast("Connection", _Renamed(connection, self._endpoint, self._tls))

    def _request(self, request: Request | None) -> Request | None:
        if request is None:
            return None
        header = request.header
        if header is not None:
            client_id = self._name(header.client_id, "clientId")
            header = header._replace(client_id=client_id, tagged_fields=[])
        return Request(*self._written(request.frame, request.decoded, header))

    def _response(self, response: Response | None) -> Response | None:
        if response is None:
            return None
        return Response(*self._written(response.frame, response.decoded, response.correlation_id))

    def _written(
        self, frame: Frame, decoded: Decoded | None, between: T
    ) -> tuple[Frame, T, Decoded | None]:
        """Return a message with its changed body alone, around what stays as it is: facts are read
        from its bytes."""
        if decoded is None:
            return frame._replace(payload=b""), between, None
        body = self._redaction.body(decoded.layout, decoded.body)
        payload = write_layout(decoded.layout, body)
        header = self._redaction.body(decoded.header_layout, decoded.header)
        decoded = decoded._replace(header=header, body=body, body_at=0, end=len(payload))
        return frame._replace(payload=payload), between, decoded

    def _session(self, session: FetchSession | None) -> FetchSession | None:
        if session is None or session.implied is None:
            return session
        known = session.implied
        found = self._implied.get(id(known))
        if found is None or found[0] is not known:
            if len(self._implied) >= LIMITS.sessions:
                self._implied.clear()
            found = self._implied[id(known)] = known, self._disguised(known)
        offsets = session.offsets and {
            (self._topic(topic), number): offset
            for (topic, number), offset in session.offsets.items()
        }
        return session._replace(implied=found[1], offsets=offsets)

    def _topic(self, topic: str | bytes) -> str | bytes:
        names = self._redaction.names
        if isinstance(topic, str):
            return names.name(topic, "topicName")
        return names.uuid(Uuid(topic))

    def _disguised(self, known: Implied) -> Implied:
        topics = {topic: self._topic(topic) for topic in known.topics}
        partitions = known.partitions
        if partitions is not None:
            partitions = tuple([(topics[t], number) for t, number in partitions])
        return Implied(known.size, partitions, tuple(topics.values()))
