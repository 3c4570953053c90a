"""How a connection's flow control is shared, the same for every driver (MOQT-22 §3.1.3, R054)."""

from __future__ import annotations

CONTROL_RESERVE = 64 << 10


def control_reserve(window: int) -> int:
    """Octets of a connection's credit that bulky writers leave to control and request streams.

    `window` is the credit that the peer granted at first; a small one is not used up by this.
    """
    return min(CONTROL_RESERVE, window // 4)


class HeldCredit:
    """Connection credit for octets that a pause holds back, `limit` of them at most.

    Such octets count as consumed for the connection, not for their stream: streams that nobody
    reads for a while do not stop the others, and what they cost stays bounded.
    """

    __slots__ = ("_left",)

    def __init__(self, limit: int) -> None:
        self._left = limit

    def hold(self, octets: int) -> int:
        """How many of the octets count as consumed now."""
        granted = min(octets, self._left)
        self._left -= granted
        return granted

    def release(self, octets: int) -> None:
        """As many that `hold` granted are not held any more."""
        self._left += octets
