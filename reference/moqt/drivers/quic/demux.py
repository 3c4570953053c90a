"""Which connection a datagram that reaches a listening socket belongs to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aioquic._buffer import Buffer
from aioquic.quic.configuration import SMALLEST_MAX_DATAGRAM_SIZE, QuicConfiguration
from aioquic.quic.packet import (
    QuicPacketType,
    encode_quic_version_negotiation,
    pull_quic_header,
)

from moqt.drivers.quic.udp import Address, UdpSocket

if TYPE_CHECKING:
    from moqt.drivers.quic.transport import QuicTransport

LONG_HEADER = 0x80


class Demultiplexer:
    """Connections of one socket by their connection IDs (RFC 9000 §5.2.2).

    `accept` makes the connection for a first Initial packet. Addresses are not validated by
    Retry.
    """

    socket: UdpSocket

    def __init__(
        self,
        configuration: QuicConfiguration,
        accept: Callable[[Demultiplexer, bytes], QuicTransport],
    ) -> None:
        self.routes: dict[bytes, QuicTransport] = {}
        self._configuration = configuration
        self._accept = accept

    def route(self, data: bytes, address: Address) -> QuicTransport | None:
        """The connection of a datagram, perhaps a new one; None when it is for nobody."""
        length = self._configuration.connection_id_length
        if data and not data[0] & LONG_HEADER:
            return self.routes.get(data[1 : 1 + length])
        try:
            header = pull_quic_header(Buffer(data=data), host_cid_length=length)
        except ValueError:
            return None
        if transport := self.routes.get(header.destination_cid):
            return transport
        if header.packet_type == QuicPacketType.VERSION_NEGOTIATION:
            return None
        supported = self._configuration.supported_versions
        if header.version not in supported:
            answer = encode_quic_version_negotiation(
                source_cid=header.destination_cid,
                destination_cid=header.source_cid,
                supported_versions=supported,
            )
            self.socket.send([(answer, address)])
            return None
        if header.packet_type != QuicPacketType.INITIAL or len(data) < SMALLEST_MAX_DATAGRAM_SIZE:
            return None
        return self._accept(self, header.destination_cid)
