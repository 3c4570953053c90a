"""An empty TRACK_NAMESPACE_PREFIX is a value: everything (MOQT-22 §9.20.20)."""

from __future__ import annotations

from moqt.wire.codec import MessageReader, encode_message
from moqt.wire.drafts import DRAFT_22
from moqt.wire.messages import Parameters, RequestUpdate


def test_an_empty_prefix_is_sent_and_read() -> None:
    """REQUEST_UPDATE with the prefix of no fields: one parameter 0x34 with 0 fields."""
    message = RequestUpdate(2, Parameters(track_namespace_prefix=()))
    octets = bytes.fromhex("02 0004 02 01 34 00")
    assert octets == encode_message(message, DRAFT_22)
    reader = MessageReader(DRAFT_22)
    reader.feed(octets)
    assert (message, octets) == reader.next()
