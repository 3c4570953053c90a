"""Publishers that do not live with what networks do."""

from __future__ import annotations

from kvcs.publisher import Publisher
from moqt.session import Session
from moqt.session.events import Event

from kvcs_conformance.mutants.network_faults import skip_when_slow
from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason


@mutant(
    "publisher/skips-for-the-slow",
    requires=("KVCS-7.2-3", "MOQT-R189"),
    reasons=(Reason.OBJECT_MISSING,),
)
class SkipsForTheSlow(Publisher):
    """Whoever has a few KiB of backlog is not sent the next Object of the track."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        super().handle_event(session, event, now)
        for track in self.tracks.values():
            for sender in track.senders.values():
                if not hasattr(sender, "skipping"):
                    skip_when_slow(sender)
