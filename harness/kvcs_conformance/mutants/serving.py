"""Publishers that break MOQT in their answers, and in which Objects they send to whom."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kvcs.publisher import Publisher
from moqt.origin import LocalTrack
from moqt.session import Request, RequestKind, Session, SubscriptionSender
from moqt.session.fetching import FetchSource
from moqt.session.publication import DESCENDING
from moqt.wire.filters import NEXT_OBJECT
from moqt.wire.messages import NO_PARAMETERS, FetchOk, Parameters
from moqt.wire.names import Location
from moqt.wire.objects import Object

from kvcs_conformance.judge.payload import FIELDS
from kvcs_conformance.mutants.local_tracks import track_mutant
from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

# Answers.


class _Repeating(Session):
    """A session that can send an answer again."""

    def repeat(self, request: Request) -> None:
        """Send the answer to the request once more."""
        stream = self._registry.find(request)
        if stream is not None and request.response is not None:
            stream.send(request.response)


@mutant(
    "publisher/answers-subscribe-twice", requires=("MOQT-R110",), reasons=(Reason.ANSWER_NUMBER,)
)
class AnswersSubscribeTwice(_Repeating):
    """SUBSCRIBE_OK is sent twice."""

    def accept_subscribe(self, request: Request, **more: Any) -> SubscriptionSender:
        sender = super().accept_subscribe(request, **more)
        self.repeat(request)
        return sender


@mutant(
    "publisher/answers-fetch-twice",
    requires=("MOQT-R139", "MOQT-R149"),
    reasons=(Reason.ANSWER_NUMBER, Reason.CLOSE_UNEXPECTED),
)
class AnswersFetchTwice(_Repeating):
    """FETCH_OK is sent twice."""

    def accept_fetch(self, request: Request, message: FetchOk) -> None:
        super().accept_fetch(request, message)
        self.repeat(request)


@mutant(
    "publisher/ends-status-unanswered", requires=("MOQT-R059",), reasons=(Reason.ANSWER_NUMBER,)
)
class EndsStatusUnanswered(Session):
    """The stream of a TRACK_STATUS ends without an answer."""

    def accept(
        self,
        request: Request,
        parameters: Parameters = NO_PARAMETERS,
        track_properties: bytes = b"",
    ) -> None:
        stream = self._registry.find(request)
        if request.kind is RequestKind.TRACK_STATUS and stream is not None:
            stream.finish()
        else:
            super().accept(request, parameters, track_properties)


@mutant("publisher/omits-largest", requires=("MOQT-R090",), reasons=(Reason.LARGEST,))
class OmitsLargest(Session):
    """SUBSCRIBE_OK has no LARGEST_OBJECT."""

    def accept_subscribe(self, request: Request, **more: Any) -> SubscriptionSender:
        largest = more.pop("largest")
        sender = super().accept_subscribe(request, largest=None, **more)
        sender.apply(request.parameters, largest, refilter=True)
        return sender


@mutant(
    "publisher/accepts-fetch-out-of-range",
    requires=("MOQT-R141", "MOQT-R142"),
    reasons=(Reason.REQUEST_CODE,),
)
class AcceptsFetchOutOfRange(Publisher):
    """A FETCH behind Largest, or of a track without Objects, is accepted and brings nothing."""

    def _fetch(self, request: Request) -> None:
        largest = self._track(request).largest
        wanted = request.parameters.location_filter
        start = Location(0, 0)
        if wanted is not None:
            start = Location(wanted.start_group or 0, wanted.start_object or 0)
        if largest is None or start > largest:
            request.session.accept_fetch(request, FetchOk(False, start))
            return
        super()._fetch(request)


@mutant("publisher/one-alias-for-k-and-v", requires=("MOQT-R119",), reasons=(Reason.ALIAS_SHARED,))
class OneAliasForKAndV(Session):
    """The data tracks k and v have the same Track Alias, for who asks for no fill."""

    def accept_subscribe(self, request: Request, **more: Any) -> SubscriptionSender:
        given: dict[bytes, int] = self.__dict__.setdefault("_given", {})
        component = b"" if request.track is None else request.track.name[:1]
        component = b"" if request.parameters.fill is not None else component
        other = given.get({b"k": b"v", b"v": b"k"}.get(component, b""))
        if other is None or component in given:
            sender = super().accept_subscribe(request, **more)
        else:
            choose = self._registry.choose_alias
            self._registry.choose_alias = lambda track, wanted: other  # type: ignore[method-assign]
            try:
                sender = super().accept_subscribe(request, **more)
            finally:
                self._registry.choose_alias = choose  # type: ignore[method-assign]
        given.setdefault(component, sender.alias)
        return sender


# Which Objects.


@track_mutant(
    "publisher/serves-newest-subscription",
    requires=("MOQT-R114",),
    reasons=(Reason.OBJECT_MISSING,),
)
class ServesNewestSubscription(LocalTrack):
    """Of several subscriptions to a track only the newest gets Objects."""

    def publish(self, item: Object, *, end_of_group: bool = False) -> None:
        senders = self.senders
        self.senders = dict([*senders.items()][-1:])
        super().publish(item, end_of_group=end_of_group)
        self.senders = senders


@track_mutant(
    "publisher/accepts-and-sends-nothing",
    requires=("MOQT-R114", "MOQT-R121"),
    reasons=(Reason.OBJECT_MISSING,),
)
class AcceptsAndSendsNothing(LocalTrack):
    """A subscription that asks for no fill and no range is accepted, and no Object follows."""

    def publish(self, item: Object, *, end_of_group: bool = False) -> None:
        senders = self.senders
        self.senders = {
            request: sender
            for request, sender in senders.items()
            if request.parameters.fill or request.parameters.location_filter != NEXT_OBJECT
        }
        super().publish(item, end_of_group=end_of_group)
        self.senders = senders


class _Blind(Publisher):
    """A publisher that does not see some parameters of a SUBSCRIBE."""

    def blind(self, parameters: Parameters) -> Parameters:
        """What it sees."""
        return parameters

    def _serve(self, request: Request) -> None:
        if request.kind is RequestKind.SUBSCRIBE:
            request.parameters = self.blind(request.parameters)
        super()._serve(request)


_STRAY = (Reason.OBJECT_UNEXPECTED,)


@mutant("publisher/ignores-end-of-range", requires=("MOQT-R130",), reasons=_STRAY)
class IgnoresEndOfRange(_Blind):
    """A Location filter of a subscription has its start alone."""

    def blind(self, parameters: Parameters) -> Parameters:
        wanted = parameters.location_filter
        if wanted is None or not wanted.end_group_delta:
            return parameters
        return replace(
            parameters, location_filter=replace(wanted, end_group_delta=wanted.end_group_delta + 9)
        )


@mutant("publisher/sends-while-paused", requires=("MOQT-R131",), reasons=_STRAY)
class SendsWhilePaused(_Blind):
    """Forward 0 is taken for 1, fills aside."""

    def blind(self, parameters: Parameters) -> Parameters:
        if parameters.forward == 0:
            return replace(parameters, forward=1, fill=None)
        return parameters


# Fills.


@mutant(
    "publisher/no-fill",
    requires=("KVCS-7.2-3", "MOQT-R133", "MOQT-R115", "MOQT-R138"),
    reasons=(Reason.FILL_STREAMS, Reason.OBJECT_MISSING),
)
class NoFill(Publisher):
    """A SUBSCRIBE of a data track gets no fill."""

    def _serve(self, request: Request) -> None:
        data = request.track is not None and not request.track.name.startswith(b"manifest")
        if data and request.kind is RequestKind.SUBSCRIBE:
            request.parameters = replace(request.parameters, fill=None)
        super()._serve(request)


@track_mutant(
    "publisher/fills-while-paused", requires=("MOQT-R134",), reasons=(Reason.FILL_STREAMS,)
)
class FillsWhilePaused(LocalTrack):
    """A fill opens although the subscription is paused."""

    def fill(self, request: Request, message_id: int, message: Parameters) -> None:
        paused = request.parameters
        request.parameters = replace(paused, forward=1)
        super().fill(request, message_id, message)
        request.parameters = paused


# Payloads.


class _Marked:
    """A source whose payloads have Flags 1."""

    def __init__(self, source: FetchSource) -> None:
        self._source = source

    def next_item(self) -> Any:
        """See `FetchSource`."""
        item = self._source.next_item()
        if not isinstance(item, Object) or not item.payload:
            return item
        payload = bytearray(item.payload)
        payload[FIELDS["flags"].offset + 1] = 1
        return replace(item, payload=bytes(payload))


@mutant(
    "publisher/marks-what-is-descending", requires=("MOQT-R078",), reasons=(Reason.OBJECT_CHANGED,)
)
class MarksWhatIsDescending(Session):
    """A FETCH in descending order gets payloads with Flags 1."""

    def open_fetch(self, request: Request, source: FetchSource) -> Any:
        descending = request.parameters.group_order == DESCENDING
        return super().open_fetch(request, _Marked(source) if descending else source)
