"""Faults of a relay that break MOQT itself; a right consumer ends the request or the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from moqt.session import FetchSender, Request, RequestKind
from moqt.wire.codec import encode_message
from moqt.wire.messages import FetchOk, NamespaceDone
from moqt.wire.names import Location
from moqt.wire.objects import Object
from moqt.wire.properties import decode_properties, encode_properties
from moqt.wire.stream_encoder import FetchObjectEncoder

from kvcs_conformance.nodes.relay_faults import Fault, name_of

if TYPE_CHECKING:
    from kvcs_conformance.nodes.faulty_relay import FaultyRelay

MANDATORY = 0x4000
"""The first type of a Mandatory Track Property; nobody has registered it."""


class FetchOkBefore(Fault):
    """Says that a range ends before it starts."""

    def fetch_ok(self, request: Request, message: FetchOk) -> FetchOk | None:
        return replace(message, end=Location(0, 0))


class _Referring(FetchObjectEncoder):
    """An encoder that believes that an Object went out before the first."""

    def encode(self, item: Object) -> bytes:
        if self._last is None:
            self._last = Location(item.location.group, item.location.object - 1)
            self._priority, self._subgroup = item.priority, item.subgroup
        return super().encode(item)


class RefersBack(Fault):
    """Leaves the fields of a fetch stream's first Object out, as if they stood in one before."""

    def opened(self, request: Request, sender: FetchSender) -> None:
        sender._encoder = _Referring()


class MandatoryProperty(Fault):
    """Sets a Track Property that has to be understood, and that nobody understands."""

    def properties(self, request: Request, octets: bytes) -> bytes:
        if name_of(request).startswith("manifest"):
            return octets
        return encode_properties([*decode_properties(octets), (MANDATORY, 1)])


class WithdrawsUnlisted(Fault):
    """Takes a namespace back that it never told of."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        super().__init__(value)
        self._done = False

    def requested(self, relay: FaultyRelay, request: Request) -> bool:
        if request.kind is RequestKind.SUBSCRIBE_NAMESPACE:
            session, stream_id = request.session, request.stream_id
            frame = encode_message(NamespaceDone((bytes(range(16)),)), session.config.draft)

            def send() -> None:
                if stream_id is not None and not session.closed:
                    relay.below(session).send(stream_id, frame)

            relay.later(0.001, send)
        return False


PROTOCOL_FAULTS: dict[str, type[Fault]] = {
    "fetch-ok-before": FetchOkBefore,
    "refers-back": RefersBack,
    "mandatory-property": MandatoryProperty,
    "withdraws-unlisted": WithdrawsUnlisted,
}
