"""KVCS Track Namespaces and Track Names (KVCS 3.1, 3.2).

A Track Namespace is five raw fields; a Track Name follows a small grammar. Track Names are read
case-sensitively: MOQT compares names octet by octet, although the grammar's literals would match
either case by the letter of RFC 5234 (reading A3 of the catalogue).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TypeAlias

from kvcs.errors import Defect, InputError, NamespaceError, TrackNameError, refuse

KVCS_1 = b"kvcs-1"
SCOPE_ID_OCTETS = 16
COMPAT_ID_OCTETS = 32
BLOCK_KEY_OCTETS = 32
PUBLICATION_ID_OCTETS = 16

NAMESPACE_FIELDS: tuple[tuple[str, int, str], ...] = (
    ("Protocol", len(KVCS_1), "KVCS-3.1-3"),
    ("Scope ID", SCOPE_ID_OCTETS, "KVCS-3.1-2"),
    ("Compatibility ID", COMPAT_ID_OCTETS, "KVCS-3.1-2"),
    ("Anchor Key", BLOCK_KEY_OCTETS, "KVCS-3.1-2"),
    ("Publication ID", PUBLICATION_ID_OCTETS, "KVCS-3.1-2"),
)
"""Name, length in octets and clause of each field, in order."""

MAX_TRACK_NAME_OCTETS = 4096
"""What MOQT allows a Full Track Name in all (MOQT-22 §2.4.1)."""


@dataclass(frozen=True, slots=True)
class KvcsNamespace:
    """The namespace of one publication: four identifiers, raw octets (KVCS 3.1).

    Raises NamespaceError when one of them has the wrong length.
    """

    scope_id: bytes
    compat_id: bytes
    anchor_key: bytes
    publication_id: bytes

    def __post_init__(self) -> None:
        defects = check_namespace(self.fields)
        if defects:
            raise refuse(NamespaceError, "not a KVCS namespace", defects)

    @property
    def fields(self) -> tuple[bytes, ...]:
        """The five Track Namespace Fields, as `moqt` takes them."""
        return (KVCS_1, self.scope_id, self.compat_id, self.anchor_key, self.publication_id)

    def prefix(self, count: int) -> tuple[bytes, ...]:
        """The first `count` fields: 2 is the scope, 4 all publications of one token prefix."""
        if not 1 <= count <= len(NAMESPACE_FIELDS):
            raise InputError(f"a prefix of a KVCS namespace has 1 to 5 fields, not {count}")
        return self.fields[:count]

    def __str__(self) -> str:
        return "/".join([KVCS_1.decode(), *(value.hex() for value in self.fields[1:])])


def check_namespace(fields: Sequence[bytes]) -> list[Defect]:
    """Everything that keeps `fields` from being a KVCS namespace; empty when it is one."""
    defects = []
    if len(fields) != len(NAMESPACE_FIELDS):
        defects.append(
            Defect(
                "namespace-field-count",
                "KVCS-3.1-1",
                f"a KVCS namespace has exactly 5 fields, this one has {len(fields)}",
                "namespace",
            )
        )
    for index, ((name, octets, clause), value) in enumerate(
        zip(NAMESPACE_FIELDS, fields, strict=False)
    ):
        where = f"field {index}"
        if index == 0 and value != KVCS_1:
            what = f'the first field is "kvcs-1" (6b7663732d31), not {bytes(value[:32]).hex()}'
            defects.append(Defect("namespace-protocol", clause, what, where))
        elif len(value) != octets:
            what = f"the {name} has {octets} octets, not {len(value)}"
            if len(value) == 2 * octets and re.fullmatch(rb"[0-9a-fA-F]*", value):
                what += "; it looks like hexadecimal text, the field holds the raw octets"
                clause = "KVCS-3.1-4"
            defects.append(Defect("namespace-field-length", clause, what, where))
    return defects


def parse_namespace(fields: Sequence[bytes]) -> KvcsNamespace:
    """The namespace that five Track Namespace Fields name; NamespaceError says what is wrong."""
    defects = check_namespace(fields)
    if defects:
        raise refuse(NamespaceError, "not a KVCS namespace", defects)
    return KvcsNamespace(*(bytes(value) for value in fields[1:]))


class Component(IntEnum):
    """The registry "KVCS Components" (KVCS 12): value in the payload, name in the track."""

    K = 1
    V = 2
    KV = 3

    @property
    def label(self) -> str:
        """The registered name: "k", "v" or "kv"."""
        return self.name.lower()


_COMPONENTS = {component.label.encode(): component for component in Component}
_CODEC_NAME = re.compile(r"[a-z0-9-]{1,32}")
_SEGMENT = re.compile(rb"0|[1-9][0-9]*")


@dataclass(frozen=True, slots=True, order=True)
class DataTrack:
    """The name of a data track, for example "k.raw.s0" (KVCS 3.2).

    Raises TrackNameError for a codec name or segment number that the grammar does not have.
    """

    component: Component
    codec: str
    segment: int

    def __post_init__(self) -> None:
        if not _CODEC_NAME.fullmatch(self.codec):
            raise TrackNameError(
                f"a codec name is 1 to 32 of a-z, 0-9 and '-', not {self.codec[:40]!r}"
            )
        if self.segment < 0:
            raise TrackNameError(f"a segment number is 0 or more, not {self.segment}")

    @property
    def octets(self) -> bytes:
        """The Track Name as `moqt` takes it."""
        return str(self).encode()

    def __str__(self) -> str:
        return f"{self.component.label}.{self.codec}.s{self.segment}"


class ManifestTrack(Enum):
    """The two reserved Track Names (KVCS 5, 12)."""

    MANIFEST = b"manifest"
    MANIFEST_COSE = b"manifest.cose"

    @property
    def octets(self) -> bytes:
        """The Track Name as `moqt` takes it."""
        return self.value

    def __str__(self) -> str:
        return self.value.decode()


MANIFEST = ManifestTrack.MANIFEST
MANIFEST_COSE = ManifestTrack.MANIFEST_COSE

TrackName: TypeAlias = DataTrack | ManifestTrack


def parse_track_name(name: bytes) -> TrackName:
    """What a Track Name names; TrackNameError says which part is wrong and at which octet."""
    if name == MANIFEST.value:
        return MANIFEST
    if name == MANIFEST_COSE.value:
        return MANIFEST_COSE
    if len(name) > MAX_TRACK_NAME_OCTETS:
        raise _bad_name("track-name-length", f"{len(name)} octets are over MOQT's 4096", 0, name)
    parts = bytes(name).split(b".")
    if len(parts) != 3:
        what = (
            'a Track Name is "manifest", "manifest.cose" or component.codec.sN (three parts), '
            f"this one has {len(parts)}"
        )
        raise _bad_name("track-name-parts", what, 0, name)
    component_part, codec_part, segment_part = parts
    component = _COMPONENTS.get(component_part)
    if component is None:
        hint = "; names are case-sensitive" if component_part.lower() in _COMPONENTS else ""
        what = f"the component is k, v or kv, not {_show(component_part)}{hint}"
        raise _bad_name("track-name-component", what, 0, name, len(component_part))
    at = len(component_part) + 1
    codec = codec_part.decode("latin-1")
    if not _CODEC_NAME.fullmatch(codec):
        what = f"a codec name is 1 to 32 of a-z, 0-9 and '-', not {_show(codec_part)}"
        raise _bad_name("track-name-codec", what, at, name, len(codec_part))
    at += len(codec_part) + 1
    if segment_part[:1] != b"s" or not _SEGMENT.fullmatch(segment_part, 1):
        what = (
            "the segment is 's' and a decimal number without leading zeros, "
            f"not {_show(segment_part)}"
        )
        raise _bad_name("track-name-segment", what, at, name, len(segment_part))
    return DataTrack(component, codec, int(segment_part[1:]))


def _bad_name(
    name: str, what: str, offset: int, track: bytes, octets: int | None = None
) -> TrackNameError:
    end = offset + (len(track) if octets is None else octets) - 1
    where = f"octets {offset}..{end}" if end > offset else f"octet {offset}"
    error = refuse(
        TrackNameError,
        f"not a KVCS Track Name: {_show(track)}",
        [Defect(name, "KVCS-3.2-1", what, where)],
    )
    assert isinstance(error, TrackNameError)
    return error


def _show(octets: bytes) -> str:
    """At most 64 octets as an ASCII literal that is safe to print."""
    return ascii(bytes(octets[:64]))[1:] + ("..." if len(octets) > 64 else "")
