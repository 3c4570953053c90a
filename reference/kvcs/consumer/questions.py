"""What a consumer asks for and what it believes: its decisions about octets and trust.

Each method is one decision with its clause, so that a subclass of the consumer can change one of
them and leave the rest right.
"""

from __future__ import annotations

from collections.abc import Sequence

from moqt.wire.messages import Parameters
from moqt.wire.names import Location
from moqt.wire.objects import Object

from kvcs.consumer.assembly import SegmentAssembly, may_combine
from kvcs.consumer.feed import manifest_parameters, manifest_tracks
from kvcs.consumer.parameters import layers_parameters, live_parameters, range_parameters
from kvcs.consumer.ranges import LocationRange
from kvcs.consumer.request import ConsumeRequest
from kvcs.consumer.routes import Route
from kvcs.consumer.selection import offers
from kvcs.consumer.verification import Verifier
from kvcs.errors import Defect
from kvcs.manifest import Manifest, Segment
from kvcs.names import DataTrack, ManifestTrack


class Questions:
    """The decisions of a consumer; `keys` is its own chain of Block Keys."""

    def __init__(self, request: ConsumeRequest) -> None:
        self.request = request
        self.keys = request.block_keys()
        self._verifier = Verifier(request.profile, request.descriptor)

    def anchors(self) -> Sequence[tuple[int, bytes]]:
        """Blocks and Anchor Key of each prefix to probe for, in order (KVCS-7.1-4)."""
        return [(depth, self.keys[depth - 1]) for depth in range(len(self.keys), 0, -1)]

    def manifest_tracks(self) -> Sequence[ManifestTrack]:
        """Manifest tracks to try, in order (KVCS-7.2-4, KVCS-7.2-5)."""
        return manifest_tracks(self.request)

    def manifest_parameters(self) -> Parameters:
        """Parameters of the manifest's SUBSCRIBE (KVCS-7.2-6)."""
        return manifest_parameters(self.request)

    def live_parameters(self, track: DataTrack, first: Location) -> Parameters:
        """Parameters of a data track's SUBSCRIBE (KVCS-7.2-1, KVCS-7.2-2)."""
        return live_parameters(self.request, first)

    def layers_parameters(self, route: Route, part: SegmentAssembly) -> Parameters:
        """Parameters of a FETCH of whole layers (KVCS-7.3-1 to KVCS-7.3-4)."""
        setup = route.source.session.peer_setup
        partial = part.blocks < part.segment.blocks
        filtered = partial and setup is not None and setup.max_filter_ranges > 0
        return layers_parameters(self.request, part.layers, part.blocks if filtered else None)

    def range_parameters(self, span: LocationRange) -> Parameters:
        """Parameters of a FETCH of missing Objects."""
        return range_parameters(self.request, span)

    def select(self, segment: Segment) -> tuple[DataTrack, ...] | None:
        """The tracks to ask for (KVCS-3.2-5)."""
        found = offers(segment, self.request.profile, self.request.codecs)
        return found[0] if found else None

    def verify_object(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        """Everything wrong with a Normal Object (KVCS 4, reading A6, KVCS-10-5)."""
        return self._verifier.defects(segment, track, item)

    def may_combine(self, first: Manifest | None, second: Manifest | None) -> bool:
        """The mixing rule (KVCS-7.4-3)."""
        return may_combine(first, second)
