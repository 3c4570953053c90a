"""Consumers that look for publications otherwise than they should."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kvcs.consumer import Consumer, ConsumeRequest
from kvcs.consumer.routes import PublicationView, Source
from kvcs.descriptor import Descriptor
from kvcs.identity import KvspP0
from kvcs.names import MANIFEST, KvcsNamespace
from moqt.session import Request, Session, SessionConfig
from moqt.session.events import Event, NamespaceReceived
from moqt.wire.messages import NO_PARAMETERS, Parameters
from moqt.wire.names import FullTrackName, TrackNamespace

from kvcs_conformance.judge.prefixes import LENGTHS
from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_SHAPE = (Reason.REQUEST_SHAPE,)
_FOUND = (Reason.WRONG_REUSE, Reason.NAMESPACE_SHAPE)


class _Asking(Consumer):
    """A consumer whose SUBSCRIBE_NAMESPACE has another prefix."""

    @classmethod
    def prefix(cls, right: TrackNamespace) -> TrackNamespace:
        """What is asked for."""
        return right

    def __init__(
        self, request: ConsumeRequest, report: Any = None, config: SessionConfig | None = None
    ) -> None:
        change = self.prefix

        class Changing(Session):
            def subscribe_namespace(
                self, prefix: TrackNamespace, parameters: Parameters = NO_PARAMETERS
            ) -> Request:
                return super().subscribe_namespace(change(prefix), parameters)

        config = replace(config or SessionConfig(), session_class=Changing)
        super().__init__(request, report, config)


@mutant("consumer/asks-upper-case", requires=("KVCS-3.1-3", "KVCS-7.1-1"), reasons=_SHAPE)
class AsksUpperCase(_Asking):
    """Field 0 is "KVCS-1"."""

    @classmethod
    def prefix(cls, right: TrackNamespace) -> TrackNamespace:
        return (right[0].upper(), *right[1:])


@mutant("consumer/asks-hexadecimal", requires=("KVCS-3.1-4", "KVCS-7.1-1"), reasons=_SHAPE)
class AsksHexadecimal(_Asking):
    """Fields 1 to 3 are hexadecimal text."""

    @classmethod
    def prefix(cls, right: TrackNamespace) -> TrackNamespace:
        return (right[0], *(field.hex().encode() for field in right[1:]))


@mutant("consumer/cuts-scope-id", requires=("KVCS-3.1-2", "KVCS-7.1-1"), reasons=_SHAPE)
class CutsScopeId(_Asking):
    """The Scope ID has 15 octets."""

    @classmethod
    def prefix(cls, right: TrackNamespace) -> TrackNamespace:
        return (right[0], right[1][:-1], *right[2:])


@mutant("consumer/joins-two-fields", requires=("KVCS-3.1-1", "KVCS-7.1-1"), reasons=_SHAPE)
class JoinsTwoFields(_Asking):
    """Compatibility ID and Anchor Key stand in one field."""

    @classmethod
    def prefix(cls, right: TrackNamespace) -> TrackNamespace:
        return (*right[:2], right[2] + right[3])


@mutant("consumer/asks-for-the-whole-scope", requires=("KVCS-3.1-7", "KVCS-7.1-1"), reasons=_SHAPE)
class AsksForTheWholeScope(_Asking):
    """All publications of the scope are asked for."""

    @classmethod
    def prefix(cls, right: TrackNamespace) -> TrackNamespace:
        return right[:2]


@mutant(
    "consumer/asks-by-model-name",
    requires=("KVCS-3.1-6", "KVCS-7.1-1", "KVCS-11-3"),
    reasons=(Reason.NAMESPACE_LEAKED, Reason.REQUEST_SHAPE),
)
class AsksByModelName(Consumer):
    """The Compatibility ID is the model's name."""

    def __init__(self, request: ConsumeRequest, *arguments: Any) -> None:
        class Plain(KvspP0):
            def compat_id(self, descriptor: Descriptor) -> bytes:
                return str(descriptor["model"]["id"]).encode().ljust(32, b"-")

        super().__init__(replace(request, profile=Plain()), *arguments)


class _Hashing(Consumer):
    """A consumer whose Compatibility ID leaves something out."""

    leaves_out: tuple[str, ...] = ()

    def __init__(self, request: ConsumeRequest, *arguments: Any) -> None:
        leaves_out, plain = self.leaves_out, request.profile

        class Careless(KvspP0):
            def compat_id(self, descriptor: Descriptor) -> bytes:
                right = {**descriptor, **{name: PLAIN[name] for name in leaves_out}}
                return plain.compat_id(right)

        super().__init__(replace(request, profile=Careless()), *arguments)


PLAIN: dict[str, Any] = {"dtype": "bf16", "adapters": []}
"""What every descriptor is taken to have."""


@mutant(
    "consumer/leaves-dtype-out",
    requires=("KVCS-3.1-6", "KVCS-5-17"),
    reasons=(*_FOUND, Reason.USED_BAD_PUBLICATION),
)
class LeavesDtypeOut(_Hashing):
    """The element type does not enter the Compatibility ID."""

    leaves_out = ("dtype",)


@mutant("consumer/leaves-adapters-out", requires=("KVCS-3.1-6",), reasons=_FOUND)
class LeavesAdaptersOut(_Hashing):
    """Adapters do not enter the Compatibility ID."""

    leaves_out = ("adapters",)


@mutant("consumer/escapes-descriptor", requires=("KVCS-3.1-6", "KVCS-7.1-1"), reasons=_SHAPE)
class EscapesDescriptor(Consumer):
    """What is not ASCII in the descriptor is escaped before it is hashed."""

    def __init__(self, request: ConsumeRequest, *arguments: Any) -> None:
        class Escaped(KvspP0):
            def compat_id(self, descriptor: Descriptor) -> bytes:
                text = json.dumps(descriptor, sort_keys=True, separators=(",", ":"))
                return hashlib.sha256(text.encode()).digest()

        super().__init__(replace(request, profile=Escaped()), *arguments)


@mutant("consumer/seeds-keys-by-process", requires=("KVCS-3.1-6", "KVCS-7.1-1"), reasons=_SHAPE)
class SeedsKeysByProcess(Consumer):
    """The chain of Block Keys begins with something of this process."""

    def anchors(self) -> Sequence[tuple[int, bytes]]:
        seed = id(type(self)).to_bytes(8, "big")
        return [(n, hashlib.sha256(seed + key).digest()) for n, key in super().anchors()]


@mutant(
    "consumer/halves-prefixes",
    requires=("KVCS-7.1-4",),
    reasons=(Reason.WRONG_REUSE, Reason.REQUEST_ORDER),
)
class HalvesPrefixes(Consumer):
    """After the whole prompt a half, a quarter and so on are tried."""

    def anchors(self) -> Sequence[tuple[int, bytes]]:
        depths = {len(self.keys) >> shift for shift in range(len(self.keys).bit_length())}
        return [anchor for anchor in super().anchors() if anchor[0] in depths]


@mutant(
    "consumer/tries-whole-prompt-only",
    requires=("KVCS-7.1-4",),
    reasons=(Reason.WRONG_REUSE, Reason.REQUEST_ORDER),
)
class TriesWholePromptOnly(Consumer):
    """No shorter prefix is tried."""

    def anchors(self) -> Sequence[tuple[int, bytes]]:
        return super().anchors()[:1]


@mutant(
    "consumer/asks-any-namespace",
    requires=("KVCS-3.1-1", "KVCS-3.1-2", "KVCS-7.1-2"),
    reasons=(Reason.NAMESPACE_SHAPE,),
)
class AsksAnyNamespace(Consumer):
    """Every namespace that a relay tells of is asked for its manifest."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        told = event.namespace if isinstance(event, NamespaceReceived) else None
        if told is not None and tuple(map(len, told)) != LENGTHS:
            name = FullTrackName(told, MANIFEST.octets)
            session.subscribe(name, self.manifest_parameters())
        super().handle_event(session, event, now)


@mutant(
    "consumer/stops-when-withdrawn",
    requires=("KVCS-7.1-2",),
    reasons=(Reason.DROPPED_GOOD_OBJECT,),
)
class StopsWhenWithdrawn(Consumer):
    """A publication that is withdrawn while it is retrieved is given up."""

    def gone(self, source: Source, namespace: KvcsNamespace) -> None:
        super().gone(source, namespace)
        view = self.publications.get(namespace)
        if view is not None:
            self.discard(view, "withdrawn", "NAMESPACE_DONE")


@mutant(
    "consumer/tries-one-publication",
    requires=("KVCS-7.4-4",),
    reasons=(Reason.NOT_RECOVERED, Reason.WRONG_REUSE),
)
class TriesOnePublication(Consumer):
    """After one publication no other is looked at."""

    def _begin(self, view: PublicationView) -> bool:
        tried = [one for one in self.publications._all.values() if one.tried]
        if tried:
            view.tried = True
            return False
        return super()._begin(view)
