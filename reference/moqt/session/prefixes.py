"""Which prefixes discovery requests have, so that overlaps are found without looking at each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from moqt.session.requests import Request
from moqt.wire.names import TrackNamespace, is_prefix


def _above(prefix: TrackNamespace) -> Iterator[TrackNamespace]:
    return (prefix[:length] for length in range(len(prefix)))


class Prefixes:
    """The prefixes of live requests, of which no two should lie on one path."""

    def __init__(self) -> None:
        self._of: dict[Request, TrackNamespace] = {}
        self._whole: Counter[TrackNamespace] = Counter()
        self._below: Counter[TrackNamespace] = Counter()
        """How many prefixes lie below a namespace."""

    def set(self, request: Request, prefix: TrackNamespace) -> None:
        """The request has this prefix, and no other any more."""
        self.discard(request)
        self._of[request] = prefix
        self._whole[prefix] += 1
        self._below.update(_above(prefix))

    def discard(self, request: Request) -> None:
        """The request is over."""
        prefix = self._of.pop(request, None)
        if prefix is None:
            return
        for counter, keys in ((self._whole, (prefix,)), (self._below, _above(prefix))):
            for key in keys:
                counter[key] -= 1
                if not counter[key]:
                    del counter[key]

    def overlaps(self, request: Request, prefix: TrackNamespace) -> bool:
        """Whether a request besides this one has a prefix on the path of `prefix`."""
        found = self._whole[prefix] + self._below[prefix]
        found += sum(self._whole[one] for one in _above(prefix))
        own = self._of.get(request)
        if own is not None and (is_prefix(own, prefix) or is_prefix(prefix, own)):
            found -= 1
        return found > 0
