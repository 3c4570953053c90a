"""Which session a driver runs."""

from __future__ import annotations

from moqt.drivers.memory import Network
from moqt.relay import Relay
from moqt.session import Session, SessionConfig
from moqt.wire.errors import RemoteProtocolError


class Forgiving(Session):
    """A Session that closes for nothing that its peer does."""

    def fail(self, error: RemoteProtocolError) -> None:
        return


def test_driver_runs_the_session_class_of_the_config() -> None:
    """A config can name a subclass of Session; `fail` is where a broken rule closes it."""
    net = Network()
    net.listen("relay", Relay(), SessionConfig(session_class=Forgiving))
    host = net.client("peer", Relay())
    sessions = [host.connect("moqt://relay/", SessionConfig(session_class=kind)) for kind in KINDS]
    net.run(1.0)
    for session in sessions:
        stream = session._core.transport.open_stream(unidirectional=False)
        assert stream is not None
        session._core.transport.send(stream, bytes.fromhex("010000"))
    net.run(2.0)
    assert [type(session) for session in sessions] == [Session, Forgiving]
    assert not any(session.closed for session in sessions)


KINDS = (None, Forgiving)
