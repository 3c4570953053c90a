"""The publisher's side of one subscription (MOQT-22 §3.1, §3.3, §9.9, §11.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from moqt.session.backlog import BacklogWatch
from moqt.session.core import Core
from moqt.session.events import StreamStopped, SubscriptionCut, Via
from moqt.session.fetching import FailedSource, FetchSender, FetchSource
from moqt.session.outlets import DatagramOutlet, SubgroupOutlet
from moqt.session.parameters import smallest_timeout
from moqt.session.requests import Request, RequestState
from moqt.session.scheduler import Lane, Outlet, Scheduler
from moqt.session.states import DRAINING, RESET_WITH
from moqt.wire.errors import LocalProtocolError, PublishDoneCode, StreamError
from moqt.wire.filters import passes, resolve
from moqt.wire.messages import NO_PARAMETERS, Parameters
from moqt.wire.names import Location
from moqt.wire.objects import FetchHeader, Object, SubgroupHeader
from moqt.wire.properties import PropertyType, integer_property

if TYPE_CHECKING:
    from moqt.session.session import Session

DEFAULT_PRIORITY = 128
ASCENDING, DESCENDING = 1, 2

OnDone: TypeAlias = Callable[[Request, int, str, int], None]
"""Called with code, reason and stream count when all streams are closed."""


class SubscriptionSender:
    """Sends the Objects of one Track to one subscription.

    `alias` is what the subscriber was told. `largest` is the Largest Object reported in
    SUBSCRIBE_OK, PUBLISH or a resuming update: fills end there. `backlog` counts queued octets of
    Objects, without fills; `streams_opened` what PUBLISH_DONE reports: streams whose header went
    out. The header is not made reliable: no transport of ours has RESET_STREAM_AT (MOQT-22
    §11.3.2, R166, a SHOULD), so a reset may overtake it, and the subscriber not see the stream.
    `fills_asked` holds FILL_PARAMETERS by the Request ID of the message that carried them.
    """

    def __init__(
        self,
        core: Core,
        scheduler: Scheduler,
        request: Request,
        alias: int,
        *,
        track_properties: bytes,
        told: bytes,
        largest: Location | None,
        default_priority: int,
        on_done: OnDone,
    ) -> None:
        """`told`: the Track Properties that the subscriber was sent, maybe none."""
        self.core = core
        self.scheduler = scheduler
        self.request = request
        self.alias = alias
        self.track_properties = track_properties
        self.largest = largest
        self.backlog = 0
        self.on_less: Callable[[], None] = lambda: None
        self.streams_opened = 0
        self.lane = Lane(DEFAULT_PRIORITY)
        self._default_priority = default_priority
        self._known_priority = integer_property(
            told, PropertyType.DEFAULT_PUBLISHER_PRIORITY, DEFAULT_PRIORITY
        )
        self._highest = largest
        self._on_done = on_done
        self._subgroups: dict[tuple[int, int], SubgroupOutlet] = {}
        self._draining: set[SubgroupOutlet] = set()
        self._shut: set[tuple[int, int]] = set()
        self._datagrams = DatagramOutlet(self)
        self._fills: dict[int, FetchSender] = {}
        self.fills_asked: dict[int, Parameters] = {}
        self._finish: tuple[int, str] | None = None
        self._watch = BacklogWatch(core, self._cut)
        self._start = Location(0, 0)
        self._end: Location | None = None
        self.apply(request.parameters, largest, refilter=True)

    @property
    def session(self) -> Session:
        """The session that it belongs to."""
        return self.core.session

    @property
    def finished(self) -> bool:
        """Whether `finish` was called, the session cut it, or the subscriber left."""
        return (
            self._finish is not None
            or self.core.closed
            or self.request.state is RequestState.TERMINATED
        )

    @property
    def reported(self) -> Location | None:
        """The largest Location that was offered or reported."""
        return self._highest

    # Settings.

    def apply(
        self,
        parameters: Parameters,
        largest: Location | None,
        *,
        refilter: bool,
        resumed: bool = False,
    ) -> None:
        """Take over the subscription's current parameters.

        `refilter`: evaluate the Location filter against `largest`, the Largest Object now.
        `resumed`: subgroups that the subscriber had stopped may open again.
        """
        if resumed:
            self._shut.clear()
        self._forward = parameters.forward != 0
        self._filters = parameters.range_filters
        self._order = parameters.group_order or integer_property(
            self.track_properties, PropertyType.DEFAULT_PUBLISHER_GROUP_ORDER, ASCENDING
        )
        self._times = parameters.object_delivery_timeout, parameters.subgroup_delivery_timeout
        if refilter:
            self._start, self._end = resolve(parameters.location_filter, largest, bounded=False)
        if largest is not None:
            self.largest = largest
            self._highest = max(largest, self._highest or largest)
        priority = parameters.subscriber_priority
        if priority is not None and priority != self.lane.priority:
            self.scheduler.reprioritise(self.lane, priority)

    def group_rank(self, group: int) -> int:
        """Groups in the order of the subscription, lower first."""
        return -group if self._order == DESCENDING else group

    def priority_field(self, priority: int) -> int | None:
        """What a header says of a priority: nothing where the subscriber knows it."""
        return None if priority == self._known_priority else priority

    # Objects.

    def offer(
        self,
        item: Object,
        *,
        first: bool = False,
        end_of_group: bool = False,
        adjacent: bool = False,
    ) -> bool:
        """Queue an Object if the subscription wants it; True when it was queued.

        `first`: it is the first one ever published in its subgroup. `end_of_group`: its subgroup
        (or the datagram) holds the largest Object of its Group; it counts where a header is
        written. `adjacent`: no Object of the subgroup lies between it and the one before, so that
        it may continue the stream. Raises LocalProtocolError for an Object that contradicts its
        subgroup's stream.
        """
        if self._highest is None or item.location > self._highest:
            self._highest = item.location
        if self.finished or not self._wants(item):
            if not self._forward and item.subgroup is not None:
                self._missed(item.location.group, item.subgroup)
            return False
        if item.subgroup is None:
            timeout = self._timeouts(item)
            self._datagrams.add(
                item,
                end_of_group=end_of_group,
                timeout=min((t for t in timeout if t is not None), default=None),
            )
        elif not self._to_subgroup(item, item.subgroup, first, end_of_group, adjacent):
            return False
        self._watch.grown(self.backlog)
        return not self.finished

    def _wants(self, item: Object) -> bool:
        location = item.location
        return (
            self._forward
            and location >= self._start
            and (self._end is None or location <= self._end)
            and (not self._filters or passes(self._filters, item, self.track_properties))
        )

    def _to_subgroup(
        self, item: Object, subgroup: int, first: bool, end_of_group: bool, adjacent: bool
    ) -> bool:
        group, object_id = item.location
        key = (group, subgroup)
        if key in self._shut:
            return False
        outlet = self._subgroups.get(key)
        if outlet is not None:
            if outlet.ending:
                raise LocalProtocolError(f"subgroup {subgroup} of Group {group} was ended")
            following = object_id == outlet.last + 1 or (adjacent and object_id > outlet.last)
            if following:
                outlet.add(item)
                return True
            # Not the next Object: a stream must not leave a hole open (MOQT-22 §11.3.2).
            self._end_unfinished(outlet)
        header = SubgroupHeader(
            self.alias,
            group,
            subgroup,
            self.priority_field(item.priority),
            properties=True,
            end_of_group=end_of_group,
            first_object=first,
        )
        self._subgroups[key] = SubgroupOutlet(self, item, header, *self._timeouts(item))
        return True

    def _missed(self, group: int, subgroup: int) -> None:
        """A paused subscription lacks an Object: FIN must not say that its subgroup is whole."""
        outlet = self._subgroups.get((group, subgroup))
        if outlet is not None:
            outlet.holed = True

    def _end_unfinished(self, outlet: SubgroupOutlet) -> None:
        del self._subgroups[outlet.key]
        self._draining.add(outlet)
        outlet.end_unfinished()

    def _timeouts(self, first: Object) -> tuple[float | None, float | None]:
        """Object and subgroup delivery timeouts of a subgroup, in seconds (MOQT-22 §5.2)."""
        kinds = (
            PropertyType.OBJECT_DELIVERY_TIMEOUT,
            PropertyType.SUBGROUP_DELIVERY_TIMEOUT,
        )
        of_object, of_subgroup = (
            smallest_timeout(
                ours,
                integer_property(
                    first.properties, kind, integer_property(self.track_properties, kind, 0)
                ),
            )
            for kind, ours in zip(kinds, self._times, strict=True)
        )
        return of_object, of_subgroup

    def end_subgroup(self, group: int, subgroup: int) -> None:
        """All Objects of the subgroup were offered: FIN follows the last one."""
        outlet = self._subgroups.get((group, subgroup))
        if outlet is not None and outlet.holed:
            self._end_unfinished(outlet)
        elif outlet is not None:
            outlet.end()
        self._shut.discard((group, subgroup))

    def reset_subgroup(self, group: int, subgroup: int, code: int) -> None:
        """Give up the subgroup's stream; a later Object of it may open a new one."""
        if outlet := self._subgroups.get((group, subgroup)):
            outlet.abandon(code, reopen=True)

    # Fills.

    def open_fill(self, request_id: int, source: FetchSource) -> FetchSender:
        """Serve the fill that the message with this Request ID asked for, up to `largest`.

        For a range that is not empty, on a subscription that is not paused (MOQT-22 §3.4.1).
        After the subscription's end the sender is gone at once.
        """
        if request_id in self._fills:
            raise LocalProtocolError(f"the fill of request {request_id} is open already")
        asked = self.fills_asked.pop(request_id, NO_PARAMETERS)
        order = asked.group_order or self._order
        priority = asked.subscriber_priority
        lane = self.lane
        if priority is not None and priority != lane.priority:
            lane = Lane(priority)
        sender = FetchSender(
            self.core,
            self.scheduler,
            lane,
            self.request,
            request_id,
            source,
            self._fill_closed,
            via=Via.FILL,
            ascending=order != DESCENDING,
            fill_rank=int(order != self._order),
            default_priority=self._default_priority,
        )
        if self.finished:
            sender.drop(StreamError.CANCELLED)
        else:
            self._fills[request_id] = sender
            self.core.open_fills += 1
        return sender

    def fill_failed(self, request_id: int, code: int) -> None:
        """A fill that cannot be served: its header, then a reset."""
        self.open_fill(request_id, FailedSource(code))

    def _fill_closed(self, fill: FetchSender) -> None:
        if self._fills.pop(fill.request_id, None) is not None:
            self.core.open_fills -= 1
        self.streams_opened += fill.started
        self._check_done()

    # What outlets report.

    def open_stream(
        self, outlet: Outlet, kind: str, header: SubgroupHeader | FetchHeader
    ) -> int | None:
        """A unidirectional stream for `outlet`, or None without credit."""
        stream_id = self.core.transport.open_stream(unidirectional=True)
        if stream_id is not None:
            self.core.outlets[stream_id] = outlet
            self.core.note("moqt:stream_opened", stream=stream_id, kind=kind, header=header)
        return stream_id

    def note_sent(self, stream_id: int | None, item: Object) -> None:
        """Trace an Object that goes out."""
        self.core.note_item("moqt:object_sent", self.request, stream_id, item, Via.SUBSCRIPTION)

    def progress(self, written: int) -> None:
        """Octets went to the transport."""
        self.backlog -= written
        self._watch.shrunk(self.backlog)
        self.on_less()

    def datagrams_gone(self) -> None:
        """No datagram waits any more."""
        self._check_done()

    def closed(self, outlet: SubgroupOutlet, *, reopen: bool, abandoned: bool = False) -> None:
        """A subgroup stream ended; not `reopen`: its subgroup gets no other stream."""
        self.scheduler.withdraw(outlet)
        if self._subgroups.get(outlet.key) is outlet:
            del self._subgroups[outlet.key]
        self._draining.discard(outlet)
        if abandoned and not reopen:
            self._shut.add(outlet.key)
        if outlet.stream_id is not None:
            self.core.outlets.pop(outlet.stream_id, None)
        self.on_less()
        self._check_done()

    def stream_stopped(self, stream_id: int, code: int) -> None:
        """The subscriber stopped a subgroup stream."""
        self.core.emit(StreamStopped(self.request, stream_id, code))

    # The end.

    def finish(self, code: int, reason: str = "") -> None:
        """End the subscription: PUBLISH_DONE after all streams are closed (MOQT-22 §9.9).

        TRACK_ENDED, GOING_AWAY and EXPIRED deliver what is queued and running fills first, then
        reset subgroups that were not ended; any other code resets everything at once.
        """
        if self.finished:
            return
        self._finish = (code, reason)
        if code in DRAINING:
            for outlet in tuple(self._subgroups.values()):
                if not outlet.ending:
                    self._end_unfinished(outlet)
        else:
            self._reset_all(RESET_WITH.get(code, StreamError.CANCELLED))
        self._check_done()

    def cancelled(self, code: int) -> None:
        """The subscriber or we cancelled the request: reset every stream (MOQT-22 §3.1.2)."""
        self._finish = self._finish or (PublishDoneCode.INTERNAL_ERROR, "")
        self._reset_all(code)
        self._watch.stop()

    def _reset_all(self, code: int) -> None:
        for outlet in (*self._subgroups.values(), *self._draining):
            outlet.abandon(code, reopen=False)
        for fill in tuple(self._fills.values()):
            fill.drop(code)
        self._datagrams.clear()

    def _cut(self, reason: str) -> None:
        if not self.finished:
            self.core.emit(SubscriptionCut(self.request, PublishDoneCode.TOO_FAR_BEHIND, reason))
            self.finish(PublishDoneCode.TOO_FAR_BEHIND, reason)

    def _check_done(self) -> None:
        if (
            self._finish is None
            or self._subgroups
            or self._draining
            or self._fills
            or self._datagrams.has_work
            or self.request.state is RequestState.TERMINATED
        ):
            return
        self._watch.stop()
        self._on_done(self.request, *self._finish, self.streams_opened)
