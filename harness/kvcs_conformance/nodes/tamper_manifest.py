"""What a publisher before a consumer says wrongly: of its manifest, its signature, its name.

The words are `cases.words.faults.TAMPERS`; those of `nodes.tamper` can stand beside them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from kvcs.manifest import Manifest, block_keys_sha256, encode_manifest
from kvcs.names import KvcsNamespace, TrackName
from kvcs.publisher import Publisher
from kvcs.publisher.publication import Publication
from kvcs.publisher.spec import PublicationSpec
from moqt.wire.objects import Object, ObjectStatus

from kvcs_conformance.cases.words.faults import TAMPERS
from kvcs_conformance.evidence.read import HEADER_OCTETS
from kvcs_conformance.judge.payload import FIELDS
from kvcs_conformance.nodes.cose_forms import signed

_DIGESTS_OF = "k.raw.s0"


def misstating(base: type[Publication], tampers: Iterable[Mapping[str, Any]]) -> type[Publication]:
    """A subclass of `base` that says wrongly what the entries of `tampers` name."""
    entries = [
        (word, value) for entry in tampers for word, value in entry.items() if word in TAMPERS
    ]
    if not entries:
        return base
    members = [value for word, value in entries if word == "manifest-member"]
    of_segment = [value for word, value in entries if word == "segment-member"]
    texts = [value["as"] for word, value in entries if word == "manifest-text"]
    digests = [value["as"] for word, value in entries if word == "digests"]
    forms = [value["as"] for word, value in entries if word == "cose"]
    names = [value["as"] for word, value in entries if word == "namespace"]
    blocks = [value["blocks"] for word, value in entries if word == "anchor-not-last"]
    objects = [(word, value) for word, value in entries if "layer" in value]

    class MisstatingPublication(base):  # type: ignore[misc, valid-type]
        """What it says is altered as the case says."""

        def __init__(self, publisher: Publisher, spec: PublicationSpec) -> None:
            self._sent: dict[tuple[str, int, int], bytes] = {}
            super().__init__(publisher, _renamed(spec, names[0]) if names else spec)

        def publish(self, track: TrackName, item: Object) -> None:
            if item.status is ObjectStatus.NORMAL:
                place = (str(track), *item.location)
                self._sent[place] = bytes(item.payload)
                for word, value in objects:
                    if (value["track"], value["layer"], value["block"]) == place:
                        payload = _altered(word, value, item, self._sent)
                        item = replace(item, payload=payload)
            super().publish(track, item)

        def manifest_for(self) -> Manifest:
            manifest: Manifest = super().manifest_for()
            return _shortened(manifest, self.keys, blocks[0]) if blocks else manifest

        def manifest_octets(self, manifest: Manifest) -> bytes:
            if not (members or of_segment or texts or digests or forms):
                octets: bytes = super().manifest_octets(manifest)
                return octets
            document = json.loads(encode_manifest(manifest))
            for value in members:
                _set(document, value)
            for value in of_segment:
                for entry in document.get("segments", ()):
                    if entry["segment"] == value["segment"]:
                        _set(entry, value)
            for how in digests:
                for entry in document["segments"]:
                    DIGESTS[how](entry)
            text = json.dumps(document).encode()
            for how in texts:
                text = TEXTS[how](document)
            signer = self.spec.signer
            if signer is None:
                return text
            return signed(forms[0], text, signer) if forms else signer.sign(text)

    return MisstatingPublication


def _set(entry: dict[str, Any], value: Mapping[str, Any]) -> None:
    if value.get("absent"):
        entry.pop(value["member"], None)
    else:
        entry[value["member"]] = value["value"]


TEXTS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "reordered": lambda document: json.dumps(_reversed(document), indent=3).encode(),
    "array": lambda document: json.dumps([document]).encode(),
    "followed": lambda document: json.dumps(document).encode() + b" {}",
    "byte-order-mark": lambda document: b"\xef\xbb\xbf" + json.dumps(document).encode(),
    "member-twice": lambda document: b'{"kvcs": 1, ' + json.dumps(document).encode()[1:],
    "not-utf-8": lambda document: (
        json.dumps({"note": "?", **document}).encode().replace(b'"?"', b'"\xff"')
    ),
}
"""Ways to write the manifest."""


def _reversed(value: Any) -> Any:
    """The same JSON value, members in another order."""
    if isinstance(value, dict):
        return {name: _reversed(value[name]) for name in reversed(value)}
    return [_reversed(item) for item in value] if isinstance(value, list) else value


def _of_track(change: Callable[[list[list[str]]], None]) -> Callable[[dict[str, Any]], None]:
    """Change the listed digests of one track, once there are any."""

    def apply(entry: dict[str, Any]) -> None:
        groups = entry.get("object_digests", {}).get(_DIGESTS_OF)
        if groups:
            change(groups)

    return apply


def _swap_layers(groups: list[list[str]]) -> None:
    if len(groups) > 1:
        groups[0], groups[1] = groups[1], groups[0]


def _cut_layer(groups: list[list[str]]) -> None:
    del groups[0][-1]


def _cut_digest(groups: list[list[str]]) -> None:
    groups[0][0] = groups[0][0][:-1]


DIGESTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "short-array": _of_track(_cut_layer),
    "one-layer-more": _of_track(lambda groups: groups.append(groups[-1])),
    "layers-swapped": _of_track(_swap_layers),
    "digit-missing": _of_track(_cut_digest),
    "absent": lambda entry: entry.pop("object_digests", None) and None,
}
"""Ways to list digests wrongly, or not at all."""


def _shortened(manifest: Manifest, keys: list[bytes], blocks: int) -> Manifest:
    """The manifest with a segment 0 of so many blocks, right in itself."""
    first, *rest = manifest.segments
    listed = {
        track: tuple(group[:blocks] for group in groups)
        for track, groups in (first.object_digests or {}).items()
    }
    short = replace(
        first,
        blocks=blocks,
        block_keys_sha256=block_keys_sha256(keys[:blocks]),
        object_digests=listed,
    )
    return replace(manifest, segments=(short, *rest))


def _altered(
    word: str, value: Mapping[str, Any], item: Object, sent: Mapping[tuple[str, int, int], bytes]
) -> bytes:
    payload = bytes(item.payload)
    if word == "header-little-endian":
        head = bytearray(payload[:HEADER_OCTETS])
        for name, field in FIELDS.items():
            if name != "digest":
                span = slice(field.offset, field.offset + field.length)
                head[span] = head[span][::-1]
        return bytes(head) + payload[HEADER_OCTETS:]
    other = sent[(value["track"], *value["of"])]
    if word == "payload-of":
        return other
    data = other[HEADER_OCTETS:]
    return payload[: FIELDS["digest"].offset] + hashlib.sha256(data).digest() + data


def _renamed(spec: PublicationSpec, how: str) -> PublicationSpec:
    """The spec of a publication under a namespace of another shape."""

    class Renamed(PublicationSpec):
        def namespace(self, keys: Any) -> KvcsNamespace:
            right = super().namespace(keys)
            shape = NAMESPACES[how](right.fields)

            class Odd(KvcsNamespace):
                def __post_init__(self) -> None:
                    return

                @property
                def fields(self) -> tuple[bytes, ...]:
                    return shape

            return Odd(right.scope_id, right.compat_id, right.anchor_key, right.publication_id)

    return Renamed(**{field.name: getattr(spec, field.name) for field in fields(spec)})


NAMESPACES: dict[str, Callable[[tuple[bytes, ...]], tuple[bytes, ...]]] = {
    "kvcs-2": lambda right: (b"kvcs-2", *right[1:]),
    "upper-case": lambda right: (b"KVCS-1", *right[1:]),
    "hexadecimal": lambda right: (right[0], *(field.hex().encode() for field in right[1:])),
    "six-fields": lambda right: (*right, b"more"),
    "scope-neighbour": lambda right: (
        right[0],
        right[1][:-1] + bytes([right[1][-1] ^ 0x01]),
        *right[2:],
    ),
}
"""Shapes of a namespace that a publisher must not have."""
