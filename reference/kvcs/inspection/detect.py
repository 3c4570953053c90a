"""Which kind of octets these are, and the way to their explanation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moqt.wire.drafts import DRAFT_22
from moqt.wire.errors import NeedMore
from moqt.wire.varint import read_vi64

from kvcs.cose import PublicKey
from kvcs.errors import InputError
from kvcs.inspection.manifests import explain_cose, explain_manifest
from kvcs.inspection.messages import explain_messages, is_message
from kvcs.inspection.naming import explain_namespace, explain_track_name
from kvcs.inspection.payloads import explain_payload
from kvcs.inspection.report import Report
from kvcs.inspection.streams import explain_stream, stream_name
from kvcs.names import DataTrack
from kvcs.payload import MAGIC

KINDS: Mapping[str, str] = {
    "namespace": "KVCS Track Namespace as MOQT writes it",
    "track-name": "KVCS Track Name",
    "payload": "KVCS Object payload",
    "manifest": "manifest, JSON text",
    "manifest.cose": "manifest, COSE_Sign1",
    "message": "MOQT control messages",
    "stream": "MOQT subgroup or fetch stream from its first octet",
}
"""What can be explained."""


def explain(
    octets: bytes,
    kind: str | None = None,
    *,
    location: tuple[int, int] | None = None,
    track: DataTrack | None = None,
    keys: Mapping[bytes, PublicKey] | None = None,
) -> Report:
    """The explanation of octets of `kind`, which is guessed when it is None.

    `location` says where a payload came from, `track` what a payload or stream belongs to; `keys`
    verify a signed manifest. Raises InputError for an unknown kind and for octets whose kind cannot
    be guessed.
    """
    chosen = kind or detect(octets)
    if chosen is None:
        known = ", ".join(KINDS)
        raise InputError(f"cannot tell what these {len(octets)} octets are; name the kind: {known}")
    table: dict[str, Callable[[], Report]] = {
        "namespace": lambda: explain_namespace(octets),
        "track-name": lambda: explain_track_name(octets),
        "payload": lambda: explain_payload(octets, location, track),
        "manifest": lambda: explain_manifest(octets),
        "manifest.cose": lambda: explain_cose(octets, keys),
        "message": lambda: explain_messages(octets, DRAFT_22),
        "stream": lambda: explain_stream(octets, DRAFT_22, track),
    }
    if chosen not in table:
        raise InputError(f"unknown kind {chosen[:40]!a}; known: {', '.join(KINDS)}")
    return table[chosen]()


def detect(octets: bytes) -> str | None:
    """The kind that the octets look like, or None. No two kinds share their first octets."""
    if octets[:4] == MAGIC:
        return "payload"
    if octets.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
        return "manifest"
    if octets[2:7] == b"kvcs-":
        return "namespace"
    if octets[:2] == b"\xd2\x84" or octets[:1] == b"\x84":
        return "manifest.cose"
    if octets and octets.isascii() and octets.decode().isprintable():
        return "track-name"
    if octets and is_message(octets, DRAFT_22):
        return "message"
    try:
        first, _ = read_vi64(octets, 0, len(octets))
    except NeedMore:
        return None
    if stream_name(first, DRAFT_22) is not None:
        return "stream"
    return "message" if first in DRAFT_22.layout_of_type else None
