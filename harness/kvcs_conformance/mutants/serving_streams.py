"""Publishers that break MOQT in their streams, how these end, and what a cancel does to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from moqt.origin import LocalTrack
from moqt.session import Request, RequestKind, Session, SubscriptionSender
from moqt.wire.errors import PublishDoneCode
from moqt.wire.objects import Object, ObjectStatus

from kvcs_conformance.mutants.local_tracks import track_mutant
from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

# Streams and ends.


@track_mutant(
    "publisher/never-first-object", requires=("MOQT-R007",), reasons=(Reason.STREAM_FLAG,)
)
class NeverFirstObject(LocalTrack):
    """FIRST_OBJECT is never set."""

    def publish(self, item: Object, *, end_of_group: bool = False) -> None:
        for sender in self.senders.values():
            offer = sender.offer
            sender.offer = (  # type: ignore[method-assign]
                lambda item, first=False, offer=offer, **more: offer(item, **more)
            )
        super().publish(item, end_of_group=end_of_group)
        for sender in self.senders.values():
            del sender.offer


@track_mutant(
    "publisher/stream-per-object", requires=("MOQT-R006",), reasons=(Reason.STREAM_SECOND,)
)
class StreamPerObject(LocalTrack):
    """Each Object of the first layer of v has a stream of its own, for who asked for no fill."""

    def publish(self, item: Object, *, end_of_group: bool = False) -> None:
        first = item.location.group == 0 and self.name.name.startswith(b"v")
        for request, sender in self.senders.items():
            outlet = sender._subgroups.get((0, 0)) if first else None
            if outlet is not None and request.parameters.fill is None:
                del sender._subgroups[outlet.key]
                sender._draining.add(outlet)
                outlet.end()
        super().publish(item, end_of_group=end_of_group)


@track_mutant("publisher/datagrams-live", requires=("MOQT-R004",), reasons=(Reason.OBJECT_CHANGED,))
class DatagramsLive(LocalTrack):
    """Who asked for no fill gets the last layer in datagrams; a FETCH says Subgroup 0 of it."""

    def publish(self, item: Object, *, end_of_group: bool = False) -> None:
        senders = self.senders
        if item.location.group == 3 and item.status is ObjectStatus.NORMAL:
            plain = {one: sender for one, sender in senders.items() if one.parameters.fill is None}
            self.senders = {one: sender for one, sender in senders.items() if one not in plain}
            for sender in plain.values():
                sender.offer(replace(item, subgroup=None))
        super().publish(item, end_of_group=end_of_group)
        self.senders = senders


@track_mutant(
    "publisher/resets-whole-subgroups", requires=("MOQT-R164",), reasons=(Reason.STREAM_END,)
)
class ResetsWholeSubgroups(LocalTrack):
    """The stream of a layer that is whole is reset once it has gone out."""

    def end_subgroup(self, group: int, subgroup: int) -> None:
        for sender in self.senders.values():
            outlet = sender._subgroups.get((group, subgroup))
            if outlet is not None:
                outlet.holed = True
        super().end_subgroup(group, subgroup)


@track_mutant("publisher/counts-one-more", requires=("MOQT-R125",), reasons=(Reason.DONE_COUNT,))
class CountsOneMore(LocalTrack):
    """PUBLISH_DONE counts one stream more than there were, if there were any."""

    def finish(self, code: int = PublishDoneCode.TRACK_ENDED, reason: str = "") -> None:
        for sender in self.senders.values():
            sender.streams_opened += sender.streams_opened > 0
        super().finish(code, reason)


@track_mutant(
    "publisher/counts-one-for-none", requires=("MOQT-R124",), reasons=(Reason.DONE_COUNT,)
)
class CountsOneForNone(LocalTrack):
    """PUBLISH_DONE counts one stream when there was none."""

    def finish(self, code: int = PublishDoneCode.TRACK_ENDED, reason: str = "") -> None:
        for sender in self.senders.values():
            if not sender.streams_opened and not sender._subgroups:
                sender.streams_opened = 1
        super().finish(code, reason)


@mutant("publisher/done-first", requires=("MOQT-R117",), reasons=(Reason.DONE_EARLY,))
class DoneFirst(Session):
    """PUBLISH_DONE is sent as soon as the track ends, whatever is still queued."""

    def accept_subscribe(self, request: Request, **more: Any) -> SubscriptionSender:
        sender = super().accept_subscribe(request, **more)
        finish = sender.finish

        def early(code: int, reason: str = "") -> None:
            stream = self._registry.find(request)
            waiting = len(sender._subgroups) + len(sender._draining)
            if stream is not None and waiting:
                count = sender.streams_opened + waiting
                sender._on_done = lambda *_: None
                self._registry.publish_done(request, code, reason, count)
            finish(code, reason)

        sender.finish = early  # type: ignore[method-assign]
        return sender


@mutant("publisher/ends-without-done", requires=("MOQT-R060",), reasons=(Reason.DONE_ABSENT,))
class EndsWithoutDone(Session):
    """A subscription's stream ends without PUBLISH_DONE."""

    def accept_subscribe(self, request: Request, **more: Any) -> SubscriptionSender:
        sender = super().accept_subscribe(request, **more)

        def silent(request: Request, *_: Any) -> None:
            stream = self._registry.find(request)
            if stream is not None:
                stream.finish()

        sender._on_done = silent
        return sender


# What goes on after a cancel.


class _Deaf(Session, ABC):
    """A session that does not hear some of its peer's cancels."""

    @abstractmethod
    def deaf_to(self, request: Request) -> bool:
        """Whether the cancel of this request is not heard."""

    def stop_sending_received(self, stream_id: int, code: int, now: float) -> None:
        if not self._is_deaf_on(stream_id):
            super().stop_sending_received(stream_id, code, now)

    def stream_reset(self, stream_id: int, code: int, now: float) -> None:
        if not self._is_deaf_on(stream_id):
            super().stream_reset(stream_id, code, now)

    def _is_deaf_on(self, stream_id: int) -> bool:
        stream = self._registry.by_stream.get(stream_id)
        return stream is not None and stream.request is not None and self.deaf_to(stream.request)


@mutant("publisher/goes-on-when-cancelled", requires=("MOQT-R116",), reasons=(Reason.STREAM_END,))
class GoesOnWhenCancelled(_Deaf):
    """The streams of a cancelled subscription go on, unless it has a fill."""

    def deaf_to(self, request: Request) -> bool:
        return request.kind is RequestKind.SUBSCRIBE and request.parameters.fill is None


@mutant("publisher/goes-on-filling", requires=("MOQT-R135",), reasons=(Reason.STREAM_END,))
class GoesOnFilling(_Deaf):
    """The fill of a cancelled subscription goes on."""

    def deaf_to(self, request: Request) -> bool:
        return request.kind is RequestKind.SUBSCRIBE and request.parameters.fill is not None


@mutant("publisher/goes-on-fetching", requires=("MOQT-R147",), reasons=(Reason.STREAM_END,))
class GoesOnFetching(_Deaf):
    """The data stream of a cancelled FETCH goes on."""

    def deaf_to(self, request: Request) -> bool:
        return request.kind is RequestKind.FETCH
