"""Tampering with what a right publisher sends, word by word as `cases.words.TAMPERS` has them.

An altered Object keeps everything else right: the manifest still lists the digest of the untouched
Data, and header and length are touched only where the word says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kvcs.manifest import Manifest
from kvcs.names import TrackName
from kvcs.publisher.publication import Publication
from moqt.wire.objects import Object, ObjectStatus

from kvcs_conformance.cases.words.publisher import TAMPERS
from kvcs_conformance.evidence.read import HEADER_OCTETS
from kvcs_conformance.judge.payload import FIELDS


def tampering(base: type[Publication], tampers: Iterable[Mapping[str, Any]]) -> type[Publication]:
    """A subclass of `base` that alters what the entries of `tampers` name."""
    entries = [
        (word, value) for entry in tampers for word, value in entry.items() if word in TAMPERS
    ]
    if not entries:
        return base
    objects = [(word, value) for word, value in entries if "track" in value]
    unsigned = any(word == "signature-broken" for word, _ in entries)
    members = {
        value["member"]: value["value"] for word, value in entries if word == "descriptor-member"
    }

    class TamperedPublication(base):  # type: ignore[misc, valid-type]
        """What goes out is altered as the case says."""

        def publish(self, track: TrackName, item: Object) -> None:
            for word, value in objects:
                if _names(value, track, item):
                    altered = alter(word, value, item)
                    if altered is None:
                        return
                    item = altered
            super().publish(track, item)

        def manifest_for(self) -> Manifest:
            manifest: Manifest = super().manifest_for()
            return replace(manifest, compat={**manifest.compat, **members})

        def manifest_octets(self, manifest: Manifest) -> bytes:
            octets: bytes = super().manifest_octets(manifest)
            if unsigned:  # the signature is the last element of a COSE_Sign1
                octets = octets[:-1] + bytes([octets[-1] ^ 0x01])
            return octets

    return TamperedPublication


def _names(value: Mapping[str, Any], track: TrackName, item: Object) -> bool:
    return (
        item.status is ObjectStatus.NORMAL
        and str(track) == value["track"]
        and item.location == (value["layer"], value["block"])
    )


def alter(word: str, value: Mapping[str, Any], item: Object) -> Object | None:
    """The Object that goes out instead; None for none at all."""
    payload = bytearray(item.payload)
    if word == "withheld":
        return None
    if word == "data-bit-flipped":
        payload[-1] ^= 0x01
    elif word == "data-replaced":
        payload[-1] ^= 0x01
        field = FIELDS["digest"]
        digest = hashlib.sha256(payload[HEADER_OCTETS:]).digest()
        payload[field.offset : field.offset + field.length] = digest
    elif word == "header-field":
        field = FIELDS[value["field"]]
        payload[field.offset : field.offset + field.length] = int(value["value"]).to_bytes(
            field.length, "big"
        )
    elif word == "cut":
        del payload[len(payload) - value["octets"] :]
    elif word == "padded":
        payload += bytes(value["octets"])
    return replace(item, payload=bytes(payload))
