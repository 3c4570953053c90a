"""Which tracks of a segment a consumer asks for (KVCS 3.2).

An offer is the pair of "k" and "v" tracks of one codec, or one "kv" track; anything less, such as
"k" of one codec and "v" of another, is no offer (KVCS-3.2-5). A codec that the profile does not
know is passed over without harm to the rest (KVCS-3.2-2).
"""

from __future__ import annotations

from collections.abc import Sequence

from kvcs.errors import ProfileError
from kvcs.identity import KvspProfile
from kvcs.manifest import Segment
from kvcs.names import Component, DataTrack


def offers(
    segment: Segment, profile: KvspProfile, preferred: Sequence[str] = ("raw",)
) -> list[tuple[DataTrack, ...]]:
    """The complete offers of a segment that we can decode, best first.

    Codecs in `preferred` come first, in that order, then the others as listed; for one codec the
    pair comes before "kv", because a layer's keys are then usable on their own.
    """
    listed: dict[str, dict[Component, DataTrack]] = {}
    for track in segment.tracks:
        if knows(profile, track.codec):
            listed.setdefault(track.codec, {})[track.component] = track
    ranked = [codec for codec in preferred if codec in listed]
    ranked += [codec for codec in listed if codec not in ranked]
    found: list[tuple[DataTrack, ...]] = []
    for codec in ranked:
        tracks = listed[codec]
        if Component.K in tracks and Component.V in tracks:
            found.append((tracks[Component.K], tracks[Component.V]))
        if Component.KV in tracks:
            found.append((tracks[Component.KV],))
    return found


def knows(profile: KvspProfile, codec: str) -> bool:
    """Whether the profile has a codec of that name."""
    try:
        profile.codec_by_name(codec)
    except ProfileError:
        return False
    return True
