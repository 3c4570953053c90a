"""What goes wrong on the QUIC driver, and that it is told in words."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from random import Random
from typing import Any

import pytest
from moqt.drivers.quic import (
    DriverError,
    QuicHost,
    QuicOptions,
    write_throwaway_certificate,
)

from tests.drivers.loop import QuicPair, run_pair
from tests.drivers.stand_in import StandInDraft, StandInEndpoint, stand_in_config

Certificate = tuple[Path, Path]


def test_unknown_alpn_is_refused(certificate: Certificate) -> None:
    """No common version: SessionClosed without a code names the ALPN (MOQT-22 §6.2)."""

    async def scenario(pair: QuicPair) -> None:
        await pair.listen(QuicOptions())
        config = stand_in_config(draft=StandInDraft("moqt-07"))
        session = pair.connect(QuicOptions(ca_file=certificate[0]), config)
        await pair.until(lambda: session.closed)
        reason = "the peer takes none of the ALPNs moqt-07"
        assert [("closed", None, reason, True)] == session.told
        assert [] == pair.server.sessions

    run_pair(certificate, scenario, connected=False)


def test_certificate_is_verified_by_default(certificate: Certificate) -> None:
    """A certificate that nobody vouches for is refused; `insecure` takes it."""

    async def scenario(pair: QuicPair) -> None:
        await pair.listen(QuicOptions())
        refused = pair.connect(QuicOptions())
        await pair.until(lambda: refused.closed)
        assert None is refused.told[0][1]
        assert "certificate refused" in refused.told[0][2]
        taken = pair.connect(QuicOptions(insecure=True))
        await pair.until(lambda: taken.named("start"))
        assert not taken.closed

    run_pair(certificate, scenario, connected=False)


def test_peer_without_datagrams_gets_no_session(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The DATAGRAM extension must be negotiated, or there is no session (R019)."""

    async def scenario(pair: QuicPair) -> None:
        await pair.listen(QuicOptions())
        monkeypatch.setattr("moqt.drivers.quic.options.LARGEST_DATAGRAM_FRAME", None)
        session = pair.connect(QuicOptions(ca_file=certificate[0]))
        await pair.until(lambda: session.closed)
        assert [] == pair.server.sessions
        assert "DATAGRAM" in session.named("closed")[0][2]

    run_pair(certificate, scenario, connected=False)


def test_nobody_listening_is_told_at_once(certificate: Certificate) -> None:
    """A closed port is a close without code that names the address."""

    async def scenario(pair: QuicPair) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        host = pair.host(pair.client, QuicOptions(insecure=True))
        session: Any = host.connect(f"moqt://127.0.0.1:{port}/", stand_in_config())
        await pair.until(lambda: session.closed)
        assert f"cannot reach 127.0.0.1:{port}: Connection refused" == session.told[0][2]

    run_pair(certificate, scenario, connected=False)


def test_peer_that_does_not_answer_is_given_up(certificate: Certificate) -> None:
    """A connection that never comes up ends after the connect timeout."""

    async def scenario(pair: QuicPair) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 0))
            host = pair.host(pair.client, QuicOptions(insecure=True, connect_timeout=0.05))
            url = f"moqt://127.0.0.1:{silent.getsockname()[1]}/"
            session: Any = host.connect(url, stand_in_config())
            await pair.until(lambda: session.closed)
        assert [("closed", None, "the peer does not answer", False)] == session.told

    run_pair(certificate, scenario, connected=False)


def test_unknown_host_is_told(certificate: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that does not resolve is a close without code."""

    async def scenario(pair: QuicPair) -> None:
        async def unknown(*_: Any, **__: Any) -> Any:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
        host = pair.host(pair.client, QuicOptions(insecure=True))
        session: Any = host.connect("moqt://no-such-host.invalid/", stand_in_config())
        await pair.until(lambda: session.closed)
        reason = "cannot reach no-such-host.invalid:443: Name or service not known"
        assert [("closed", None, reason, False)] == session.told

    run_pair(certificate, scenario, connected=False)


def test_bad_url_fails_locally(certificate: Certificate) -> None:
    """An empty host is refused before anything is sent (R018)."""

    async def scenario(pair: QuicPair) -> None:
        host = pair.host(pair.client, QuicOptions())
        with pytest.raises(ValueError, match="empty host"):
            host.connect("moqt:///x", stand_in_config())

    run_pair(certificate, scenario, connected=False)


def test_port_in_use_is_an_error_of_our_own(certificate: Certificate) -> None:
    """A second server on one port is told so."""

    async def scenario(pair: QuicPair) -> None:
        port = await pair.listen(QuicOptions())
        with pytest.raises(DriverError, match=f"cannot listen on 127.0.0.1:{port}: Address"):
            await pair.hosts[0].listen(
                "127.0.0.1",
                port,
                stand_in_config(),
                cert_file=certificate[0],
                key_file=certificate[1],
            )

    run_pair(certificate, scenario, connected=False)


def test_unusable_files_are_errors_of_our_own(certificate: Certificate, tmp_path: Path) -> None:
    """A certificate, key, CA or log that cannot be used is named with its path."""
    cert_file, key_file = certificate
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("no certificate")

    async def scenario(pair: QuicPair) -> None:
        host = pair.host(pair.server, QuicOptions())

        async def failure(cert: Path, key: Path) -> str:
            with pytest.raises(DriverError) as caught:
                await host.listen(
                    "127.0.0.1",
                    0,
                    stand_in_config(),
                    cert_file=cert,
                    key_file=key,
                )
            return str(caught.value)

        missing = tmp_path / "missing.pem"
        assert f"cannot read the certificate {missing}" in await failure(missing, key_file)
        assert f"cannot read the private key {missing}" in await failure(cert_file, missing)
        assert "does not hold a certificate" in await failure(nonsense, key_file)
        assert "does not hold a private key" in await failure(cert_file, nonsense)
        other = tmp_path / "other-cert.pem", tmp_path / "other-key.pem"
        write_throwaway_certificate(*other)
        assert f"the private key {other[1]} is not that of" in await failure(cert_file, other[1])
        for options in (
            QuicOptions(ca_file=missing),
            QuicOptions(ca_file=nonsense),
            QuicOptions(qlog_dir=missing),
            QuicOptions(keylog_file=tmp_path),
            QuicOptions(datagram_size=1199),
            QuicOptions(datagram_size=16384),
        ):
            with pytest.raises(DriverError):
                QuicHost(StandInEndpoint(), options)

    run_pair(certificate, scenario, connected=False)


@pytest.mark.slow
def test_vanished_peer_is_noticed(certificate: Certificate) -> None:
    """A peer that answers nothing any more is lost after the idle timeout, without a code."""

    async def scenario(pair: QuicPair) -> None:
        far: Any = pair.far.transport
        far.receive = lambda *arguments: None
        await pair.until(lambda: pair.near.closed)
        assert None is pair.near.named("closed")[0][1]

    options = QuicOptions(idle_timeout=0.15, insecure=True)
    run_pair(certificate, scenario, options, options)


def test_lost_close_is_repeated(certificate: Certificate) -> None:
    """The peer's next packet is answered with the close that it did not hear."""

    async def scenario(pair: QuicPair) -> None:
        far: Any = pair.far.transport
        receive = far.receive
        far.receive = lambda *arguments: None
        pair.near.transport.close(4, "gone")
        await pair.until(lambda: pair.near.closed)
        far.receive = receive
        far.connection.send_ping(0)
        pair.hosts[0].wake(far)
        await pair.until(lambda: pair.far.closed)
        assert ("closed", 4, "gone", True) == pair.far.named("closed")[0]

    run_pair(certificate, scenario)


def test_packet_that_breaks_the_library_ends_its_connection_only(
    certificate: Certificate,
) -> None:
    """An exception below a session is its end, told without a code; other sessions go on."""

    async def scenario(pair: QuicPair) -> None:
        other = pair.connect(QuicOptions(ca_file=certificate[0]))
        await pair.until(lambda: len(pair.server.sessions) == 2)
        far: Any = pair.far.transport

        def broken(*arguments: Any) -> None:
            raise KeyError("frame")

        far.connection.receive_datagram = broken
        for session in (pair.near, other):
            stream_id = session.transport.open_stream(unidirectional=True)
            assert stream_id is not None
            session.transport.send(stream_id, b"x", True)
        await pair.until(lambda: pair.far.closed and pair.server.sessions[1].finished)
        reason = "the QUIC library cannot handle a packet: KeyError('frame')"
        assert [("closed", None, reason, False)] == pair.far.named("closed")

    run_pair(certificate, scenario)


def test_noise_does_not_disturb_a_server(certificate: Certificate) -> None:
    """Datagrams that are no QUIC are dropped; an unknown version is answered with ours."""

    async def scenario(pair: QuicPair) -> None:
        port = await pair.listen(QuicOptions())
        chance = Random(3)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as noisy:
            noisy.connect(("127.0.0.1", port))
            for size in (1, 2, 7, 8, 9, 20, 100, 1200, 1500):
                noisy.send(chance.randbytes(size))
                noisy.send(b"\xc0\0\0\0\1" + chance.randbytes(size))
            noisy.send(b"\xc0\x1a\x2a\x3a\x4a\x08" + bytes(8) + b"\x08" + bytes(1200))
            session = pair.connect(QuicOptions(ca_file=certificate[0]))
            await pair.until(lambda: session.told)
            assert [("start",)] == session.told
            noisy.settimeout(10)
            answers = [noisy.recv(1500)]
            while answers[-1][1:5] != bytes(4):
                answers.append(noisy.recv(1500))
            assert b"\0\0\0\1" in answers[-1][5:]

    run_pair(certificate, scenario, connected=False)
