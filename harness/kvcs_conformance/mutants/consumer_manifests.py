"""Consumers that read a manifest, its signature or its tracks otherwise than they should."""

from __future__ import annotations

import codecs
import json
from collections.abc import Sequence
from typing import Any

import cbor2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from kvcs.consumer import Consumer, ConsumeRequest
from kvcs.consumer.manifests import ManifestLog, Refusal
from kvcs.consumer.routes import Publications, PublicationView
from kvcs.consumer.selection import knows
from kvcs.cose import read_sign1, verify
from kvcs.errors import KvcsError, SignatureError
from kvcs.manifest import Manifest, Segment
from kvcs.names import Component, DataTrack, KvcsNamespace, ManifestTrack
from kvcs.payload import Octets
from kvcs.strict_json import parse_json
from moqt.wire.filters import FROM_START
from moqt.wire.messages import Parameters

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_USED = (Reason.USED_BAD_PUBLICATION,)
_DROPPED = (Reason.DROPPED_GOOD_OBJECT,)
_SHAPE = (Reason.REQUEST_SHAPE,)


class _Reading(Consumer):
    """A consumer that reads manifests by `log_class`."""

    log_class: type[ManifestLog] = ManifestLog

    def __init__(self, request: ConsumeRequest, *arguments: Any) -> None:
        super().__init__(request, *arguments)
        log_class = self.log_class

        class Own(Publications):
            def add(self, namespace: KvcsNamespace, *, vouched: bool) -> PublicationView:
                view = super().add(namespace, vouched=vouched)
                view.log.__class__ = log_class
                return view

        self.publications = Own(request, self.keys)


class _Mending(ManifestLog):
    """Reads the JSON, mends it, and goes on with the result."""

    def _text(self, track: ManifestTrack, octets: Octets) -> Octets:
        text = super()._text(track, octets)
        try:
            parse_json(memoryview(text))
            document = json.loads(bytes(text))
            self.mend(document)
        except (KvcsError, KeyError, TypeError, AttributeError):
            return text
        return json.dumps(document).encode()

    def mend(self, document: dict[str, Any]) -> None:
        """Change the document."""


class _Loose(ManifestLog):
    def _text(self, track: ManifestTrack, octets: Octets) -> Octets:
        raw = bytes(super()._text(track, octets)).removeprefix(codecs.BOM_UTF8)
        document, _ = json.JSONDecoder().raw_decode(raw.decode(errors="replace"))
        found = document[0] if isinstance(document, list) else document
        return json.dumps(found).encode()


@mutant("consumer/reads-json-loosely", requires=("KVCS-5-3",), reasons=_USED)
class ReadsJsonLoosely(_Reading):
    """A byte order mark, repeated members, wrong octets, an array around the object and text behind
    it are passed over."""

    log_class = _Loose


class _Sorted(_Mending):
    def mend(self, document: dict[str, Any]) -> None:
        if list(document) != sorted(document):
            document.clear()


@mutant(
    "consumer/wants-sorted-members",
    requires=("KVCS-5-3", "KVCS-5-5", "KVCS-5-17"),
    reasons=_DROPPED,
)
class WantsSortedMembers(_Reading):
    """A manifest whose members do not come in the order of their names is refused."""

    log_class = _Sorted


class _Ordered(ManifestLog):
    def _judge(self, manifest: Manifest) -> Refusal | None:
        if list(manifest.compat) != sorted(manifest.compat):
            return Refusal("manifest.compat-mismatch", "members out of order", fatal=True)
        return super()._judge(manifest)


@mutant("consumer/hashes-compat-as-written", requires=("KVCS-5-17",), reasons=_DROPPED)
class HashesCompatAsWritten(_Reading):
    """The Compatibility ID depends on the order in which the manifest has the members."""

    log_class = _Ordered


class _AnyVersion(_Mending):
    def mend(self, document: dict[str, Any]) -> None:
        document["kvcs"] = 1


@mutant("consumer/takes-any-manifest-version", requires=("KVCS-5-5",), reasons=_USED)
class TakesAnyManifestVersion(_Reading):
    """The member "kvcs" is not looked at."""

    log_class = _AnyVersion


class _Sizes(_Mending):
    def mend(self, document: dict[str, Any]) -> None:
        document["layers"] = document["compat"]["layers"]
        document["block_tokens"] = document["compat"]["block_tokens"]


@mutant("consumer/takes-sizes-from-compat", requires=("KVCS-5-5",), reasons=_USED)
class TakesSizesFromCompat(_Reading):
    """ "layers" and "block_tokens" may be absent, or say otherwise than "compat"."""

    log_class = _Sizes


class _NothingMore(_Mending):
    known = frozenset(("kvcs", "compat", "layers", "block_tokens", "deterministic", "segments"))

    def mend(self, document: dict[str, Any]) -> None:
        if document.keys() - self.known:
            document.clear()


@mutant("consumer/refuses-unknown-members", requires=("KVCS-5-5",), reasons=_DROPPED)
class RefusesUnknownMembers(_Reading):
    """A manifest with a member that the text does not name is refused."""

    log_class = _NothingMore


class _Segments(_Mending):
    def mend(self, document: dict[str, Any]) -> None:
        for entry in document["segments"]:
            entry["complete"] = bool(entry.get("complete"))
            other = f".s{entry['segment'] + 1}"
            entry["tracks"] = [
                name.replace(other, f".s{entry['segment']}") for name in entry["tracks"]
            ]


@mutant("consumer/mends-segment-entries", requires=("KVCS-5-6",), reasons=_USED)
class MendsSegmentEntries(_Reading):
    """ "complete" may be anything, and tracks may be named for another segment."""

    log_class = _Segments


class _Renumbering(_Mending):
    def mend(self, document: dict[str, Any]) -> None:
        block = 0
        for number, entry in enumerate(document["segments"]):
            if "segment" in entry:
                entry["segment"], entry["first_block"] = number, block
            block += entry["blocks"]


@mutant("consumer/renumbers-segments", requires=("KVCS-2-3",), reasons=_USED)
class RenumbersSegments(_Reading):
    """Segments are taken to follow one another, whatever their numbers and first blocks are."""

    log_class = _Renumbering


class _NoDigests(_Mending):
    def mend(self, document: dict[str, Any]) -> None:
        for entry in document["segments"]:
            entry.pop("object_digests", None)


@mutant(
    "consumer/ignores-digest-lists",
    requires=("KVCS-5-9",),
    reasons=(Reason.USED_BAD_PUBLICATION, Reason.USED_BAD_OBJECT),
)
class IgnoresDigestLists(_Reading):
    """object_digests are not read."""

    log_class = _NoDigests


class _Blind(ManifestLog):
    """A log that does not see some of the defects."""

    blind_to: frozenset[str] = frozenset()

    def _judge(self, manifest: Manifest) -> Refusal | None:
        refusal = super()._judge(manifest)
        return None if refusal is not None and refusal.reason in self.blind_to else refusal


class _AnyAnchor(_Blind):
    blind_to = frozenset({"manifest.anchor-key"})


@mutant("consumer/skips-anchor-check", requires=("KVCS-2-1",), reasons=_USED)
class SkipsAnchorCheck(_Reading):
    """The Anchor Key is not compared with the last block of segment 0."""

    log_class = _AnyAnchor


class _AnyKeys(_Blind):
    blind_to = frozenset({"manifest.block-keys"})

    def usable_segments(self, *, vouched: bool) -> list[Segment]:
        return list(self.current.segments) if self.current else []


@mutant("consumer/skips-block-keys", requires=("KVCS-5-7",), reasons=_USED)
class SkipsBlockKeys(_Reading):
    """block_keys_sha256 is not compared with the consumer's own Block Keys."""

    log_class = _AnyKeys


class _LooseCose(ManifestLog):
    def _text(self, track: ManifestTrack, octets: Octets) -> Octets:
        if track is ManifestTrack.MANIFEST:
            return super()._text(track, octets)
        try:
            value = cbor2.loads(bytes(octets))
            protected, unprotected, payload, signature = getattr(value, "value", value)
            kid = {**unprotected, **cbor2.loads(protected)}[4]
            key = self._producers[kid]
            if not isinstance(key, Ed25519PublicKey):
                return super()._text(track, octets)
            key.verify(signature, cbor2.dumps(["Signature1", protected, b"", payload]))
        except (ValueError, KeyError, TypeError, InvalidSignature) as error:
            raise SignatureError(str(error)) from error
        return bytes(payload)


@mutant("consumer/reads-cose-loosely", requires=("KVCS-5-4", "KVCS-10-4"), reasons=_USED)
class ReadsCoseLoosely(_Reading):
    """Any tag will do, octets behind the structure and labels that come twice are passed over, and
    the algorithm may stand anywhere or nowhere."""

    log_class = _LooseCose


class _Tagged(ManifestLog):
    def _text(self, track: ManifestTrack, octets: Octets) -> Octets:
        if track is ManifestTrack.MANIFEST_COSE and not read_sign1(octets).tagged:
            raise SignatureError("the structure is not tagged")
        return super()._text(track, octets)


@mutant("consumer/wants-a-tag", requires=("KVCS-5-4",), reasons=_DROPPED)
class WantsATag(_Reading):
    """A COSE_Sign1 without its tag is refused."""

    log_class = _Tagged


class _AnyProducer(ManifestLog):
    def _text(self, track: ManifestTrack, octets: Octets) -> Octets:
        try:
            return super()._text(track, octets)
        except SignatureError:
            kid = read_sign1(octets).kid
            if kid is None:
                raise
            for key in self._producers.values():
                try:
                    return verify(octets, {kid: key})
                except KvcsError:
                    continue
            raise


@mutant("consumer/tries-every-key", requires=("KVCS-10-4",), reasons=_USED)
class TriesEveryKey(_Reading):
    """A kid that names no producer is verified with the keys of all of them."""

    log_class = _AnyProducer


class _AnyMember(ManifestLog):
    def _text(self, track: ManifestTrack, octets: Octets) -> Octets:
        kid = read_sign1(octets).kid if track is ManifestTrack.MANIFEST_COSE else None
        return (
            read_sign1(octets).payload if kid in self._producers else super()._text(track, octets)
        )


@mutant("consumer/believes-the-kid", requires=("KVCS-5-13", "KVCS-10-4"), reasons=_USED)
class BelievesTheKid(_Reading):
    """A manifest that names a known producer is taken for this producer's."""

    log_class = _AnyMember


@mutant("consumer/knows-one-key", requires=("KVCS-5-13",), reasons=_DROPPED)
class KnowsOneKey(Consumer):
    """Of the producer keys of the scope only the first is kept."""

    def __init__(self, request: ConsumeRequest, *arguments: Any) -> None:
        from dataclasses import replace

        first = dict(list(request.producers.items())[:1])
        super().__init__(replace(request, producers=first), *arguments)


class _AnyCase(_Mending):
    def mend(self, document: dict[str, Any]) -> None:
        for entry in document["segments"]:
            names = [name.lower().replace(".s00", ".s0") for name in entry["tracks"]]
            entry["tracks"] = list(dict.fromkeys(names))


@mutant("consumer/reads-names-in-any-form", requires=("KVCS-3.2-1",), reasons=_SHAPE)
class ReadsNamesInAnyForm(_Reading):
    """Track names may be in upper case and have leading zeros."""

    log_class = _AnyCase


@mutant("consumer/fails-on-unknown-codec", requires=("KVCS-3.2-2",), reasons=_DROPPED)
class FailsOnUnknownCodec(Consumer):
    """A segment that offers a codec which the consumer does not know is not used at all."""

    def select(self, segment: Segment) -> tuple[DataTrack, ...] | None:
        if not all(knows(self.request.profile, track.codec) for track in segment.tracks):
            return None
        return super().select(segment)


@mutant("consumer/selects-unknown-codec", requires=("KVCS-3.2-2",), reasons=_SHAPE)
class SelectsUnknownCodec(Consumer):
    """The last "kv" track is selected, whatever its codec."""

    def select(self, segment: Segment) -> tuple[DataTrack, ...] | None:
        joint = [track for track in segment.tracks if track.component is Component.KV]
        return (joint[-1],) if joint else super().select(segment)


@mutant("consumer/asks-every-track", requires=("KVCS-3.2-5",), reasons=_SHAPE)
class AsksEveryTrack(Consumer):
    """All tracks of a segment are asked for."""

    def select(self, segment: Segment) -> tuple[DataTrack, ...] | None:
        return tuple(segment.tracks) or None


@mutant("consumer/mixes-codecs", requires=("KVCS-3.2-5",), reasons=_SHAPE)
class MixesCodecs(Consumer):
    """The "k" track of one codec is taken with the "v" track of another."""

    def select(self, segment: Segment) -> tuple[DataTrack, ...] | None:
        found = super().select(segment)
        if found is not None:
            return found
        kinds = {track.component: track for track in segment.tracks}
        pair: Sequence[Component] = (Component.K, Component.V)
        return tuple(kinds[kind] for kind in pair) if kinds.keys() >= {*pair} else None


@mutant("consumer/asks-all-manifests", requires=("KVCS-7.2-6",), reasons=_SHAPE)
class AsksAllManifests(Consumer):
    """The fill of the manifest's subscription begins with the first version."""

    def manifest_parameters(self) -> Parameters:
        from dataclasses import replace

        return replace(super().manifest_parameters(), fill=Parameters(location_filter=FROM_START))
