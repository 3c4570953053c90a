"""What a paused QUIC stream holds back."""

from __future__ import annotations

import pytest
from moqt.drivers.quic.transport import PACK, Inbound


@pytest.mark.parametrize("size", [1, 200])
def test_small_pieces_are_packed(size: int) -> None:
    """A peer that sends octet by octet costs us hardly more than the octets."""
    inbound = Inbound()
    pieces = [bytes((number % 251,)) * size for number in range(3 * PACK)]
    for piece in pieces:
        inbound.hold(piece)
    assert 3 * size + 1 >= len(inbound.held)
    assert b"".join(pieces) == b"".join(inbound.held)


def test_large_pieces_are_kept_as_they_came() -> None:
    """Packing copies: what is worth an object of its own is not touched."""
    inbound = Inbound()
    large = bytes(1200)
    for piece in (b"a", large, b"b", b"c", large):
        inbound.hold(piece)
    assert [b"a", large, b"bc", large] == list(inbound.held)
    assert inbound.held[1] is large
