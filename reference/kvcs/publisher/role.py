"""The publisher's role: sessions, announcements and their answers (KVCS 6)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from moqt.origin import Origin
from moqt.session import Session
from moqt.session.events import SessionClosed
from moqt.wire.messages import RequestError
from moqt.wire.names import TrackNamespace
from moqt.wire.tokens import Token

from kvcs.publisher.publication import Publication
from kvcs.publisher.spec import PublicationSpec

Report: TypeAlias = Callable[[dict[str, Any]], None]


class Publisher(Origin):
    """An Original Publisher of KV caches.

    `tokens` go with every PUBLISH_NAMESPACE: the authorization that the relays require. Requests
    that reach us directly are checked by overriding `authorise`. `max_fetches_per_session` bounds
    concurrent FETCHes (KVCS-10-11). `report` gets one dict per event: `announce-accepted`,
    `announce-refused`, `announce-ended`, `manifest-published`, `layer-published`,
    `segment-complete`, `stopped`, `refused`, `ended`. `random` gives so many random octets.
    """

    publication_class: type[Publication] = Publication

    def __init__(
        self,
        *,
        tokens: Sequence[Token] = (),
        report: Report | None = None,
        max_fetches_per_session: int | None = None,
        retry_interval: int = 1001,
        random: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        super().__init__(
            max_fetches_per_session=max_fetches_per_session, retry_interval=retry_interval
        )
        self.publications: dict[TrackNamespace, Publication] = {}
        self._tokens = tuple(tokens)
        self._report = report
        self._random = random
        self._answers: dict[TrackNamespace, dict[Session, bool]] = {}

    def choose_publication_id(self) -> bytes:
        """A Publication ID for one more production: 16 random octets (KVCS-3.1-5)."""
        return self._random(16)

    def open(self, spec: PublicationSpec) -> Publication:
        """Start a publication: its manifest track exists and its namespace is announced."""
        publication = self.publication_class(self, spec)
        namespace = publication.namespace.fields
        self.publications[namespace] = publication
        self._answers[namespace] = {}
        self.announce(namespace, self._tokens)
        return publication

    def on_announced(self, session: Session, namespace: TrackNamespace) -> None:
        """A relay takes the namespace."""
        publication = self.publications.get(namespace)
        if publication is not None:
            self._answers[namespace][session] = True
            self.report_event(publication, "announce-accepted", {})

    def on_announce_failed(
        self, session: Session, namespace: TrackNamespace, error: RequestError | None
    ) -> None:
        """A relay refused the namespace, or gave it up later (`error` None).

        A publication that every relay refused does not carry on (KVCS-6-1); a session that the
        peer opened is no relay's, and its answer does not count.
        """
        publication = self.publications.get(namespace)
        if publication is None:
            return
        self._answers[namespace][session] = False
        if error is None:
            self.report_event(publication, "announce-ended", {})
            return
        details = {"code": error.code, "reason": error.reason}
        self.report_event(publication, "announce-refused", details)
        answers = self._answers[namespace]
        relays = [item for item in self.sessions if item.is_client]
        if relays and all(answers.get(item) is False for item in relays):
            publication.refuse(error.reason or f"PUBLISH_NAMESPACE was refused: {error.code:#x}")

    def on_session_closed(self, session: Session, event: SessionClosed) -> None:
        """Its answers are void."""
        for answers in self._answers.values():
            answers.pop(session, None)

    def report_event(self, publication: Publication, event: str, details: dict[str, Any]) -> None:
        """Tell the application what happened to a publication."""
        if self._report is not None:
            self._report(
                {
                    "event": event,
                    "time": self.host.now(),
                    "publication": publication.spec.publication_id.hex(),
                    **details,
                }
            )
