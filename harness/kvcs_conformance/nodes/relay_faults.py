"""The faults of a relay before a consumer, one class per word of `words.faults.RELAY_FAULTS`.

Each has the few hooks that it needs, and says what goes out instead of what would be right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from moqt.session import FetchFailed, FetchItem, FetchSender, FetchState, Request, RequestKind
from moqt.wire.errors import PublishDoneCode, RequestErrorCode
from moqt.wire.messages import FetchOk
from moqt.wire.names import Location, TrackNamespace
from moqt.wire.objects import Object, ObjectStatus, RangeKind, RangeMarker, SubgroupHeader
from moqt.wire.stream_encoder import SubgroupObjectEncoder, encode_subgroup_header

from kvcs_conformance.scenario import seconds

if TYPE_CHECKING:
    from kvcs_conformance.nodes.faulty_relay import FaultyRelay

HEADER_OCTETS, DIGEST_AT = 68, 36
UNBOUND_ALIAS = 4242
_LAST = (1 << 62) - 1
_KINDS = {
    "subscribe": RequestKind.SUBSCRIBE,
    "fetch": RequestKind.FETCH,
    "subscribe-namespace": RequestKind.SUBSCRIBE_NAMESPACE,
}


class Fault:
    """One switch; every hook does what is right unless the fault says otherwise.

    `value` is what the case writes with the word; `skips` and `times` of it bound when it acts.
    """

    def __init__(self, value: Mapping[str, Any]) -> None:
        self.value = value
        self._skips: int = value.get("skips", 0)
        self._left: int | None = value.get("times")

    def acts(self) -> bool:
        """Count one use; False for one too early, or when there were enough."""
        if self._skips:
            self._skips -= 1
            return False
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0

    def about(self, request: Request) -> bool:
        """Whether the request is for the fault's `track` (or any), of the kind `to` (or any)."""
        kind, track = self.value.get("to"), self.value.get("track")
        if kind is not None and request.kind is not _KINDS[kind]:
            return False
        return track in (None, name_of(request))

    def requested(self, relay: FaultyRelay, request: Request) -> bool:
        """A request came; True when it needs no further answer."""
        return False

    def fetch_ok(self, request: Request, message: FetchOk) -> FetchOk | None:
        """The FETCH_OK to send, None for none."""
        return message

    def item(self, request: Request, item: Object, via: str) -> FetchItem | None:
        """What goes out instead of an Object; None: nothing. Streams of subscriptions carry
        Objects only."""
        return item

    def finish(self, request: Request, code: int, reason: str) -> tuple[int, str] | None:
        """The PUBLISH_DONE to send, None for none."""
        return code, reason

    def shows(self, request: Request, namespace: TrackNamespace) -> None:
        """A NAMESPACE was sent."""

    def opened(self, request: Request, sender: FetchSender) -> None:
        """A fetch stream was opened."""

    def properties(self, request: Request, octets: bytes) -> bytes:
        """The Track Properties to send."""
        return octets


class AtObject(Fault):
    """A fault about one Object, or about all of one layer."""

    def names(self, request: Request, item: Object, via: str) -> bool:
        value, location = self.value, item.location
        found = (name_of(request), location.group, location.object, via)
        wanted = (
            value["track"],
            value["layer"],
            value.get("block", location.object),
            value.get("via", via),
        )
        return found == wanted

    def item(self, request: Request, item: Object, via: str) -> FetchItem | None:
        named = self.names(request, item, via)
        if named and (item.status is ObjectStatus.NORMAL or "block" not in self.value):
            return self.instead(item, via) if self.acts() else item
        return item

    def instead(self, item: Object, via: str) -> FetchItem | None:
        """What goes out instead."""
        return item


class Silent(Fault):
    """Never answers."""

    def requested(self, relay: FaultyRelay, request: Request) -> bool:
        return self.about(request) and self.acts()


class Refuses(Fault):
    """Answers with an error code."""

    def requested(self, relay: FaultyRelay, request: Request) -> bool:
        if not (self.about(request) and self.acts()):
            return False
        code = RequestErrorCode[self.value["with"].upper().replace("-", "_")]
        wait = self.value.get("retry")
        interval = 0 if wait is None else round(seconds(wait) * 1000) + 1
        request.session.refuse(request, code, "a fault of the relay", retry_interval=interval)
        return True


class NoFetchOk(Fault):
    """Serves a FETCH without a FETCH_OK."""

    def fetch_ok(self, request: Request, message: FetchOk) -> FetchOk | None:
        return None if self.acts() else message


class FetchEndsEarly(Fault):
    """Believes that what it has is all there is."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        super().__init__(value)
        self._cut: set[Request] = set()

    def requested(self, relay: FaultyRelay, request: Request) -> bool:
        if request.kind is RequestKind.FETCH and self.acts():
            self._cut.add(request)
        return False

    def fetch_ok(self, request: Request, message: FetchOk) -> FetchOk | None:
        if request not in self._cut:
            return message
        return replace(message, end=min(message.end, Location(self.value["layer"], _LAST)))

    def item(self, request: Request, item: Object, via: str) -> FetchItem | None:
        late = request in self._cut and item.location.group > self.value["layer"]
        return FetchState.END if late else item


class Drops(AtObject):
    """Leaves Objects out."""

    def instead(self, item: Object, via: str) -> FetchItem | None:
        return None


class UnknownRange(AtObject):
    """Says that it does not know a layer."""

    def instead(self, item: Object, via: str) -> FetchItem | None:
        if via == "subscription":
            return item
        return RangeMarker(RangeKind.UNKNOWN, Location(item.location.group, item.location.object))


class Resets(AtObject):
    """Resets a stream."""

    def instead(self, item: Object, via: str) -> FetchItem | None:
        return item if via == "subscription" else FetchFailed()


class Stalls(AtObject):
    """Goes silent in the middle."""

    def names(self, request: Request, item: Object, via: str) -> bool:
        value = self.value
        there = Location(value["layer"], value["block"])
        return (
            name_of(request) == value["track"]
            and item.location >= there
            and value.get("via", via) == via
        )

    def instead(self, item: Object, via: str) -> FetchItem | None:
        return None if via == "subscription" else FetchState.WAIT


class Trickles(Fault):
    """Sends, but next to nothing."""

    def requested(self, relay: FaultyRelay, request: Request) -> bool:
        if request.kind is RequestKind.FETCH and self.acts():
            pause = seconds(self.value["by"])
            relay.below(request.session).trickle(lambda action: relay.later(pause, action))
        return False


class FlipsBit(AtObject):
    """Corrupts Data."""

    def instead(self, item: Object, via: str) -> FetchItem | None:
        return flipped(item)


class ReplacesData(AtObject):
    """Changes Data, and its digest with it."""

    def instead(self, item: Object, via: str) -> FetchItem | None:
        return with_digest(flipped(item))


class Late(AtObject):
    """Sends Objects of a subscription later than those that follow them, perhaps changed."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        super().__init__(value)
        self._relay: FaultyRelay | None = None
        self._again = False

    def requested(self, relay: FaultyRelay, request: Request) -> bool:
        self._relay = relay
        return False

    def item(self, request: Request, item: Object, via: str) -> FetchItem | None:
        if via != "subscription" or self._again or not self.names(request, item, via):
            return item
        late = item
        if self.value.get("changed") and item.payload:
            late = with_digest(flipped(item))
        assert self._relay is not None
        self._relay.later(seconds(self.value["by"]), lambda: self._send(request, late))
        return None

    def _send(self, request: Request, item: Object) -> None:
        sender = request.sender
        if sender is None or sender.finished:
            return
        self._again = True
        sender.offer(item, first=item.location.object == 0, adjacent=True)
        self._again = False


class NoMarks(Fault):
    """Forgets the end markers."""

    def item(self, request: Request, item: Object, via: str) -> FetchItem | None:
        return item if item.status is ObjectStatus.NORMAL else None


class NoDone(Fault):
    """Forgets PUBLISH_DONE."""

    def finish(self, request: Request, code: int, reason: str) -> tuple[int, str] | None:
        return (code, reason) if name_of(request).startswith("manifest") else None


class DoneEarly(Fault):
    """Ends a subscription although the track goes on."""

    def item(self, request: Request, item: Object, via: str) -> FetchItem | None:
        if not self.about(request) or via != "subscription":
            return item
        if item.location.group <= self.value["layer"] or not self.acts():
            return item
        code = PublishDoneCode[self.value["code"].upper().replace("-", "_")]
        assert request.sender is not None
        if not request.sender.finished:
            request.sender.finish(code, "a fault of the relay")
        return None


class OkLate(Fault):
    """Lets SUBSCRIBE_OK be overtaken by the Objects."""

    def requested(self, relay: FaultyRelay, request: Request) -> bool:
        if request.kind is RequestKind.SUBSCRIBE and request.stream_id is not None and self.acts():
            let_go = relay.below(request.session).hold(request.stream_id)
            relay.later(seconds(self.value["by"]), let_go)
        return False


class Floods(Fault):
    """Sends Objects of a subscription that there is not."""

    def requested(self, relay: FaultyRelay, request: Request) -> bool:
        if request.kind is not RequestKind.SUBSCRIBE or name_of(request).startswith("manifest"):
            return False
        if not self.acts():
            return False
        transport = relay.below(request.session)
        stream = transport.open_stream(unidirectional=True)
        if stream is None:
            return False
        header = SubgroupHeader(UNBOUND_ALIAS, 0, 0, 128)
        encoder = SubgroupObjectEncoder(header)
        octets = [encode_subgroup_header(header)]
        payload = bytes(196)
        for number in range(self.value["objects"]):
            octets += [encoder.encode(Object(Location(0, number), 0, 128, payload)), payload]
        transport.send(stream, b"".join(octets))
        return False


class Announces(Fault):
    """Tells of a namespace that is none."""

    def requested(self, relay: FaultyRelay, request: Request) -> bool:
        if request.kind is RequestKind.SUBSCRIBE_NAMESPACE:
            session, prefix = request.session, request.namespace or ()
            suffixes: dict[str, tuple[bytes, ...]] = {
                "no-field": (),
                "two-fields": (bytes(range(16)), b"more"),
                "short": (bytes(range(15)),),
                "long": (bytes(range(17)),),
                "hexadecimal": (bytes(range(16)).hex().encode(),),
            }
            shown = (*prefix, *suffixes[self.value["shape"]])
            relay.later(0.001, lambda: session.namespace(request, shown))
        return False


class Withdraws(Fault):
    """Takes a namespace back while its Objects are under way."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        super().__init__(value)
        self._shown: list[tuple[Request, TrackNamespace]] = []

    def shows(self, request: Request, namespace: TrackNamespace) -> None:
        self._shown.append((request, namespace))

    def item(self, request: Request, item: Object, via: str) -> FetchItem | None:
        there = not name_of(request).startswith("manifest")
        if there and item.location.group == self.value["layer"]:
            while self._shown:
                shown, namespace = self._shown.pop()
                shown.session.namespace_done(shown, namespace)
        return item


FAULTS: dict[str, type[Fault]] = {
    "silent": Silent,
    "refuses": Refuses,
    "no-fetch-ok": NoFetchOk,
    "fetch-ends-early": FetchEndsEarly,
    "drops": Drops,
    "unknown-range": UnknownRange,
    "resets": Resets,
    "stalls": Stalls,
    "trickles": Trickles,
    "flips-bit": FlipsBit,
    "replaces-data": ReplacesData,
    "late": Late,
    "no-marks": NoMarks,
    "no-done": NoDone,
    "done-early": DoneEarly,
    "ok-late": OkLate,
    "floods": Floods,
    "announces": Announces,
    "withdraws": Withdraws,
}


def flipped(item: Object) -> Object:
    """The Object with the last bit of its payload flipped."""
    payload = bytearray(item.payload)
    payload[-1] ^= 0x01
    return replace(item, payload=bytes(payload))


def with_digest(item: Object) -> Object:
    """The Object with the Data Digest of the Data that it has now."""
    digest = hashlib.sha256(item.payload[HEADER_OCTETS:]).digest()
    head, data = bytes(item.payload[:DIGEST_AT]), bytes(item.payload[HEADER_OCTETS:])
    return replace(item, payload=head + digest + data)


def name_of(request: Request) -> str:
    """The Track Name of a request, "" for one without."""
    return request.track.name.decode("ascii", "backslashreplace") if request.track else ""
