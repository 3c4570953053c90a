"""What is known of a Location, and who waits to know more."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from moqt.tracks.budget import Entry


class Known(Enum):
    """What is known of a Location (MOQT-22 §7.4, §11.1.1)."""

    PRESENT = "present"
    ARRIVING = "arriving"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Reader(Protocol):
    """Someone who waits for news of the Location `waits_at`."""

    waits_at: int | None

    def arrived(self, entry: Entry) -> None:
        """The Object came in."""

    def comes(self, entry: Entry) -> None:
        """An Object came in that lies ahead."""

    def changed(self) -> None:
        """What is known of the Location changed otherwise."""
