"""A peer that scatters a stream over its window costs its own connection and nobody's time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aioquic._buffer import Buffer
from aioquic.quic.connection import QuicConnectionError
from aioquic.quic.packet import QuicErrorCode, QuicFrameType, QuicStreamFrame
from aioquic.tls import Epoch
from moqt.drivers.quic.streams import MAX_GAPS

from tests.drivers.test_connection import Certificate, Ends


def scattered(count: int) -> list[QuicStreamFrame]:
    """Single octets at every other offset, none at the first."""
    return [QuicStreamFrame(offset=2 * at + 1, data=b"x") for at in range(count)]


@pytest.mark.parametrize(("pieces", "closed"), [(MAX_GAPS, False), (MAX_GAPS + 1, True)])
def test_a_scattered_stream_ends_the_connection(
    certificate: Certificate, pieces: int, closed: bool
) -> None:
    """So many gaps are more than loss makes; each would cost time for every further frame."""
    ends = Ends(certificate)
    stream_id = ends.open()
    ends.client.write(stream_id, b"", False)
    receiver = ends.server._get_or_create_stream(QuicFrameType.STREAM_BASE, stream_id).receiver
    codes = []
    try:
        for frame in scattered(pieces):
            receiver.handle_frame(frame)
    except QuicConnectionError as error:
        codes.append(error.error_code)
    assert ([QuicErrorCode.INTERNAL_ERROR] if closed else []) == codes


def test_a_stream_in_order_has_no_gaps(certificate: Certificate) -> None:
    """Any number of pieces is taken as long as they join."""
    ends = Ends(certificate)
    receiver = ends.server._get_or_create_stream(QuicFrameType.STREAM_BASE, 2).receiver
    for at in range(2 * MAX_GAPS):
        receiver.handle_frame(QuicStreamFrame(offset=at + 1, data=b"x"))
    event = receiver.handle_frame(QuicStreamFrame(offset=0, data=b"x"))
    assert event is not None
    assert b"x" * (2 * MAX_GAPS + 1) == event.data


def test_a_scattered_handshake_ends_the_connection(certificate: Certificate) -> None:
    """Before anything is authenticated it is cheaper still to send."""
    ends = Ends(certificate)
    context: Any = SimpleNamespace(epoch=Epoch.ONE_RTT, quic_logger_frames=[])
    offsets = iter(range(1, 4 * MAX_GAPS, 2))
    start = ends.server._crypto_streams[Epoch.ONE_RTT].receiver.starting_offset()

    def deliver() -> None:
        octets = Buffer(capacity=32)
        octets.push_uint_var(start + next(offsets))
        octets.push_uint_var(1)
        octets.push_bytes(b"x")
        ends.server._handle_crypto_frame(context, QuicFrameType.CRYPTO, Buffer(data=octets.data))

    for _ in range(MAX_GAPS):
        deliver()
    with pytest.raises(QuicConnectionError):
        deliver()
