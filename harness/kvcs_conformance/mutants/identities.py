"""Publishers whose namespaces do not follow from the content, or whose productions share one."""

from __future__ import annotations

import hashlib
import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kvcs.descriptor import Descriptor, unknown_members
from kvcs.identity import KvspP0, Sections
from kvcs.manifest import Manifest, block_keys_sha256
from kvcs.names import Component, KvcsNamespace
from kvcs.payload import Octets
from kvcs.publisher import PublicationSpec, Publisher
from kvcs.publisher.production import SegmentProduction
from kvcs.publisher.publication import Publication
from moqt.wire.names import TrackNamespace

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_SHAPE = (Reason.NAMESPACE_SHAPE,)
_IDENTITY = (Reason.NAMESPACE_IDENTITY,)


class _Shown(KvcsNamespace):
    """A namespace whose fields are others than they should be."""

    change: Callable[[TrackNamespace], TrackNamespace] = staticmethod(lambda fields: fields)

    def __post_init__(self) -> None:
        """Nothing is checked."""

    @property
    def fields(self) -> tuple[bytes, ...]:
        return type(self).change(super().fields)


class _Renaming(Publisher, ABC):
    """Publishes under another namespace than the right one."""

    def open(self, spec: PublicationSpec) -> Publication:
        shown = type("_Renamed", (_Shown,), {"change": staticmethod(self.shown)})
        values = {name: getattr(spec, name) for name in spec.__dataclass_fields__}

        class Renamed(PublicationSpec):
            def namespace(self, keys: Sequence[bytes]) -> KvcsNamespace:
                right = super().namespace(keys)
                renamed: KvcsNamespace = shown(*right.fields[1:])
                return renamed

        return super().open(Renamed(**values))

    @abstractmethod
    def shown(self, namespace: TrackNamespace) -> TrackNamespace:
        """The namespace that is published under instead."""


@mutant("publisher/announces-prefix-only", requires=("KVCS-6-1", "KVCS-3.1-1"), reasons=_SHAPE)
class AnnouncesPrefixOnly(_Renaming):
    """The namespace has no Publication ID."""

    def shown(self, namespace: TrackNamespace) -> TrackNamespace:
        return namespace[:4]


@mutant(
    "publisher/announces-hexadecimal",
    requires=("KVCS-3.1-4", "KVCS-3.1-6", "KVCS-5-16"),
    reasons=(*_SHAPE, *_IDENTITY, Reason.MANIFEST_INCONSISTENT),
)
class AnnouncesHexadecimal(_Renaming):
    """The fields of the namespace are hexadecimal text."""

    def shown(self, namespace: TrackNamespace) -> TrackNamespace:
        return (namespace[0], *(field.hex().encode() for field in namespace[1:]))


@mutant("publisher/announces-six-fields", requires=("KVCS-3.1-1",), reasons=_SHAPE)
class AnnouncesSixFields(_Renaming):
    """The namespace has a sixth field, which counts the sessions."""

    def shown(self, namespace: TrackNamespace) -> TrackNamespace:
        return (*namespace, b"1")


@mutant("publisher/announces-short-id", requires=("KVCS-3.1-2",), reasons=_SHAPE)
class AnnouncesShortId(_Renaming):
    """The Publication ID has 8 octets."""

    def shown(self, namespace: TrackNamespace) -> TrackNamespace:
        return (*namespace[:4], namespace[4][:8])


@mutant(
    "publisher/announces-upper-case",
    requires=("KVCS-3.1-3", "KVCS-3.1-6"),
    reasons=(*_SHAPE, *_IDENTITY),
)
class AnnouncesUpperCase(_Renaming):
    """Field 0 of the namespace is "KVCS-1"."""

    def shown(self, namespace: TrackNamespace) -> TrackNamespace:
        return (b"KVCS-1", *namespace[1:])


@mutant("publisher/counts-publication-ids", requires=("KVCS-3.1-5",), reasons=_IDENTITY)
class CountsPublicationIds(Publisher):
    """Publication IDs are counted up from a random start."""

    def choose_publication_id(self) -> bytes:
        if not self.publications:
            self._last = int.from_bytes(super().choose_publication_id(), "big")
        self._last = (self._last + 1) % 2**128
        return self._last.to_bytes(16, "big")


@mutant(
    "publisher/names-model-in-id",
    requires=("KVCS-3.1-5", "KVCS-11-3"),
    reasons=(Reason.NAMESPACE_IDENTITY, Reason.NAMESPACE_LEAKED),
)
class NamesModelInId(Publisher):
    """The Publication ID begins with the model's name."""

    def choose_publication_id(self) -> bytes:
        return b"tiny-gqa" + super().choose_publication_id()[:8]


@mutant(
    "publisher/derives-publication-id",
    requires=("KVCS-2-2", "KVCS-3.1-5", "KVCS-3.4-4", "MOQT-R013"),
    reasons=(Reason.NAMESPACE_IDENTITY, Reason.OBJECT_CHANGED),
)
class DerivesPublicationId(Publisher):
    """The Publication ID is a digest of the content, so that each production of it has the same;
    a later production takes the place of the one before."""

    def open(self, spec: PublicationSpec) -> Publication:
        content = spec.namespace(spec.block_keys(spec.tokens)).fields[:4]
        spec = replace(spec, publication_id=hashlib.sha256(b"".join(content)).digest()[:16])
        namespace = (*content, spec.publication_id)
        self.publications.pop(namespace, None)
        for track in [name for name in self.tracks if name.namespace == namespace]:
            self.remove_track(track)
        return super().open(spec)


class _Profile(KvspP0):
    """A profile that sorts no members."""

    def compat_id(self, descriptor: Descriptor) -> bytes:
        return hashlib.sha256(json.dumps(dict(descriptor)).encode()).digest()


class _ByCodePoint(KvspP0):
    """A profile that takes any descriptor, and sorts members by code point."""

    def compat_id(self, descriptor: Descriptor) -> bytes:
        text = json.dumps(
            dict(descriptor), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        return hashlib.sha256(text.encode()).digest()

    def sections(self, descriptor: Descriptor) -> Sections:
        strange = unknown_members(descriptor)
        return super().sections({n: v for n, v in descriptor.items() if f"$.{n}" not in strange})


class _LeakingScope(KvspP0):
    """A profile whose Scope ID is the beginning of the scope key."""

    def scope_id(self, scope_key: bytes) -> bytes:
        return scope_key[:16]


class _OtherProfile(Publisher):
    profile: KvspP0

    def open(self, spec: PublicationSpec) -> Publication:
        return super().open(replace(spec, profile=self.profile))


@mutant(
    "publisher/hashes-descriptor-as-written",
    requires=("KVCS-3.1-6", "KVCS-5-7", "KVCS-5-16"),
    reasons=(*_IDENTITY, Reason.MANIFEST_INCONSISTENT, Reason.MANIFEST_SEGMENTS),
)
class HashesDescriptorAsWritten(_OtherProfile):
    """The Compatibility ID is over the descriptor's JSON as it is, not over its canonical form."""

    profile = _Profile()


@mutant("publisher/sorts-by-code-point", requires=("KVCS-3.1-6",), reasons=_IDENTITY)
class SortsByCodePoint(_OtherProfile):
    """The canonical form takes any member, sorts by code point instead of by UTF-16 units, and
    writes numbers as its language does."""

    profile = _ByCodePoint()


@mutant(
    "publisher/scope-key-in-clear",
    requires=("KVCS-3.1-6", "KVCS-11-3"),
    reasons=(Reason.NAMESPACE_IDENTITY, Reason.NAMESPACE_LEAKED),
)
class ScopeKeyInClear(_OtherProfile):
    """The Scope ID is the first half of the scope key itself."""

    profile = _LeakingScope()


@mutant("publisher/adapter-as-salt", requires=("KVCS-3.1-6",), reasons=_IDENTITY)
class AdapterAsSalt(Publisher):
    """Adapters go into the block keys like a salt, and not into the descriptor."""

    def open(self, spec: PublicationSpec) -> Publication:
        adapters = spec.descriptor["adapters"]
        if not adapters:
            return super().open(spec)
        descriptor: Mapping[str, Any] = {**spec.descriptor, "adapters": []}
        return super().open(replace(spec, descriptor=descriptor, salt=adapters[0].encode()))


@mutant(
    "publisher/keeps-identity-after-update",
    requires=("KVCS-3.1-6",),
    reasons=(*_IDENTITY, Reason.MANIFEST_INCONSISTENT),
)
class KeepsIdentityAfterUpdate(Publisher):
    """The descriptor is that of the first publication, whatever weights the model has since."""

    def open(self, spec: PublicationSpec) -> Publication:
        first = next(iter(self.publications.values()), None)
        if first is not None and spec.layers == first.spec.layers:
            model = first.spec.descriptor["model"]
            spec = replace(spec, descriptor={**spec.descriptor, "model": model})
        return super().open(spec)


@mutant(
    "publisher/seeds-chain-by-process",
    requires=("KVCS-2-1", "KVCS-3.1-6", "KVCS-5-7"),
    reasons=(*_IDENTITY, Reason.MANIFEST_SEGMENTS),
)
class SeedsChainByProcess(Publisher):
    """The chain of Block Keys begins with a number that every process draws anew."""

    def open(self, spec: PublicationSpec) -> Publication:
        return super().open(replace(spec, salt=spec.salt + _OF_THIS_PROCESS))


_OF_THIS_PROCESS = secrets.token_bytes(8)


class _Crossed(PublicationSpec):
    """The last two Block Keys of segment 0 change places."""

    def block_keys(self, tokens: Sequence[int]) -> list[bytes]:
        keys = super().block_keys(tokens)
        last = len(keys) if self.blocks is None else self.blocks
        if last > 1:
            keys[last - 2], keys[last - 1] = keys[last - 1], keys[last - 2]
        return keys


@mutant("publisher/anchor-a-block-short", requires=("KVCS-2-1", "KVCS-3.1-6"), reasons=_IDENTITY)
class AnchorABlockShort(Publication):
    """The Anchor Key is that of the last block but one."""

    def __init__(self, publisher: Publisher, spec: PublicationSpec) -> None:
        values = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
        self._right = spec.block_keys(spec.tokens)
        super().__init__(publisher, _Crossed(**values))

    def manifest_for(self) -> Manifest:
        manifest = super().manifest_for()
        listed = [
            replace(
                entry,
                block_keys_sha256=block_keys_sha256(
                    self._right[entry.first_block : entry.first_block + entry.blocks]
                ),
            )
            for entry in manifest.segments
        ]
        return replace(manifest, segments=tuple(listed))


@mutant(
    "publisher/fills-up-last-block",
    requires=("KVCS-2-1", "KVCS-2-3", "KVCS-3.1-6", "KVCS-4-11"),
    reasons=(*_IDENTITY, Reason.MANIFEST_SEGMENTS, Reason.ORDER_OBJECTS, Reason.MARK_GROUP),
)
class FillsUpLastBlock(Publisher):
    """Tokens behind the last complete block are published as a block filled up with zeros."""

    def open(self, spec: PublicationSpec) -> Publication:
        tail = len(spec.tokens) % spec.block_tokens
        if tail and spec.blocks is not None:
            tokens = [*spec.tokens, *[0] * (spec.block_tokens - tail)]
            spec = replace(spec, tokens=tokens, blocks=spec.blocks + 1)
        return super().open(spec)

    class publication_class(Publication):  # noqa: N801  it stands for the attribute
        """It takes what it is handed, and makes up the rest."""

        def open_segment(
            self, first_block: int | None = None, blocks: int | None = None
        ) -> SegmentProduction:
            return super().open_segment()

        def put_layer(
            self, segment: int, layer: int, sections: Mapping[Component, Sequence[Octets]]
        ) -> None:
            missing = self.segments[segment].blocks - len(sections[Component.K])
            filler = [bytes(self._sizes.k_octets)] * missing
            super().put_layer(
                segment, layer, {kind: [*data, *filler] for kind, data in sections.items()}
            )
