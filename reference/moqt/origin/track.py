"""A Track that is published here."""

from __future__ import annotations

from dataclasses import dataclass

from moqt.session import Request, SubscriptionSender
from moqt.tracks import MalformedTrack, TrackStore
from moqt.tracks.answering import answerable
from moqt.tracks.serving import fill_source, publish_parameters, sent_properties
from moqt.wire.errors import LocalProtocolError, PublishDoneCode
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object, ObjectStatus
from moqt.wire.properties import PropertyType, integer_property


@dataclass(slots=True)
class OpenSubgroup:
    """A subgroup that is not ended yet: its last Object so far, and its END_OF_GROUP bit."""

    last: int
    end_of_group: bool


class LocalTrack:
    """The Track's Objects and its subscriptions.

    `properties` are the octets of the Track Properties. Whatever was not published at or below
    Largest when a FETCH or fill is read does not exist: publish Locations in ascending order.
    """

    def __init__(
        self, name: FullTrackName, properties: bytes = b"", default_priority: int | None = None
    ) -> None:
        self.name = name
        self.properties = properties
        self.default_priority = (
            integer_property(properties, PropertyType.DEFAULT_PUBLISHER_PRIORITY, 128)
            if default_priority is None
            else default_priority
        )
        self.store = TrackStore(complete=True)
        self.done: tuple[int, str] | None = None
        self.senders: dict[Request, SubscriptionSender] = {}
        self._open: dict[tuple[int, int], OpenSubgroup] = {}

    @property
    def largest(self) -> Location | None:
        """Largest Object (MOQT-22 §3.1.4)."""
        return self.store.largest

    @property
    def ended(self) -> bool:
        """Whether the Track has its final Object: FETCH_OK says End Of Track up to there."""
        complete = self.done is not None and self.done[0] == PublishDoneCode.TRACK_ENDED
        return complete or self.store.end is not None

    def publish(self, item: Object, *, end_of_group: bool = False) -> None:
        """Publish one Object; it goes to every subscription whose filters it passes.

        `end_of_group`, given with the first Object of a subgroup, sets the header bit: the
        subgroup holds the Group's largest Object. Raises LocalProtocolError for an Object that
        contradicts what was published, or after `finish`.
        """
        if self.done is not None:
            raise LocalProtocolError(f"the Track ended before the Object at {item.location}")
        try:
            self.store.add(item)
        except MalformedTrack as error:
            raise LocalProtocolError(error.reason) from error
        self.store.published(item.location)
        first = False
        if item.subgroup is not None:
            key = item.location.group, item.subgroup
            subgroup = self._open.get(key)
            first = subgroup is None
            if subgroup is None:
                subgroup = self._open[key] = OpenSubgroup(0, end_of_group)
            subgroup.last = item.location.object
            end_of_group = subgroup.end_of_group
        for sender in self.senders.values():
            sender.offer(item, first=first, end_of_group=end_of_group)
        if item.status is ObjectStatus.END_OF_GROUP and item.subgroup is not None:
            self.end_subgroup(item.location.group, item.subgroup)

    def end_subgroup(self, group: int, subgroup: int) -> None:
        """All Objects of the subgroup are published: its streams end with FIN."""
        state = self._open.pop((group, subgroup), None)
        if state is None:
            return
        self.store.end_subgroup(group, subgroup, state.last, end_of_group=state.end_of_group)
        for sender in self.senders.values():
            sender.end_subgroup(group, subgroup)

    def finish(self, code: int = PublishDoneCode.TRACK_ENDED, reason: str = "") -> None:
        """No more Objects; every subscription gets PUBLISH_DONE once all is sent."""
        if self.done is not None:
            return
        for group, subgroup in tuple(self._open):
            self.end_subgroup(group, subgroup)
        self.done = (code, reason)
        for sender in self.senders.values():
            sender.finish(code, reason)

    def subscribe(self, request: Request) -> None:
        """Accept a SUBSCRIBE, and open the fill that it asks for."""
        if not answerable(request):
            return
        sender = request.session.accept_subscribe(
            request,
            largest=self.largest,
            track_properties=self.properties,
            default_priority=self.default_priority,
        )
        self._joined(request, sender)
        self.fill(request, request.id, request.parameters)
        self._finish_late(sender)

    def publish_to(self, wanted: Request) -> None:
        """PUBLISH the Track to who sent a SUBSCRIBE_TRACKS, unless its session ends."""
        if not wanted.session.takes_requests:
            return
        parameters = publish_parameters(wanted.parameters, self.largest)
        sender = wanted.session.publish(
            self.name,
            parameters,
            sent_properties(wanted.parameters, self.properties),
            default_priority=self.default_priority,
        )
        self._joined(sender.request, sender)
        self._finish_late(sender)

    def fill(self, request: Request, message_id: int, message: Parameters) -> None:
        """Open the fill that the SUBSCRIBE or REQUEST_UPDATE `message_id` asks for."""
        sender = self.senders.get(request)
        if sender is None or sender.finished:
            return
        source = fill_source(self.store, message, request.parameters, self.properties, self.largest)
        if source is not None:
            source.wake = sender.open_fill(message_id, source).wake

    def left(self, request: Request) -> None:
        """The subscription is over."""
        self.senders.pop(request, None)

    def _joined(self, request: Request, sender: SubscriptionSender) -> None:
        request.context = self
        self.senders[request] = sender

    def _finish_late(self, sender: SubscriptionSender) -> None:
        if self.done is not None:
            sender.finish(*self.done)
