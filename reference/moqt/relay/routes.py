"""Which sessions publish under which namespace (MOQT-22 §4.1, §7.6)."""

from __future__ import annotations

from moqt.session import Request, Session
from moqt.wire.names import TrackNamespace


class Routes:
    """Accepted PUBLISH_NAMESPACEs, found by the fields of a namespace, never by octets."""

    def __init__(self) -> None:
        self._announced: dict[TrackNamespace, list[Request]] = {}

    def add(self, namespace: TrackNamespace, request: Request) -> None:
        """The session of `request` publishes under `namespace`."""
        self._announced.setdefault(namespace, []).append(request)

    def remove(self, request: Request) -> bool:
        """The announcement is withdrawn; whether there was one."""
        namespace = request.namespace or ()
        requests = self._announced.get(namespace, [])
        if request not in requests:
            return False
        requests.remove(request)
        if not requests:
            del self._announced[namespace]
        return True

    def of_session(self, session: Session) -> list[Request]:
        """The announcements of one session."""
        return [
            request
            for requests in self._announced.values()
            for request in requests
            if request.session is session
        ]

    def publishers(self, namespace: TrackNamespace) -> list[Session]:
        """Every session that announced `namespace` or a prefix of it, the closest match first."""
        found: dict[Session, None] = {}
        for length in range(len(namespace), -1, -1):
            for request in self._announced.get(namespace[:length], ()):
                found[request.session] = None
        return list(found)
