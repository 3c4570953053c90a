"""Judge words for what a namespace says: its five fields, where they come from, what they hide.

The identities are computed here from the profile's text (kvsp-p0), not by the reference.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.manifest import entries_of, manifests
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

_LENGTHS = (6, 16, 32, 32, 16)
_VERSION = b"kvcs-1"
_FIELDS = ("version", "Scope ID", "Compatibility ID", "Anchor Key")
_FIELD_CLAUSES = (
    ("KVCS-3.1-3",),
    ("KVCS-3.1-6",),
    ("KVCS-3.1-6",),
    ("KVCS-2-1", "KVCS-3.1-6"),
)
_PUBLISHER = "publisher"
_FEW = 8
_SMALL_STEP = 1 << 64


def announcements(evidence: Evidence, node: str) -> list[tuple[Record, tuple[bytes, ...]]]:
    """The namespaces that arrived in PUBLISH_NAMESPACE, each once, in order."""
    found: dict[tuple[bytes, ...], Record] = {}
    for record, message in evidence.messages(node, "PublishNamespace"):
        fields = tuple(bytes.fromhex(part) for part in message["namespace"])
        found.setdefault(fields, record)
    return [(record, fields) for fields, record in found.items()]


def asked_for(evidence: Evidence, publisher: str = _PUBLISHER) -> list[Mapping[str, Any]]:
    """What the publisher was asked to publish, in order."""
    return [record.data for record in evidence.records(publisher, "kvcs:asked-to-publish")]


def compat_id(descriptor: Mapping[str, Any]) -> bytes | None:
    """SHA-256 of the descriptor's RFC 8785 form; None when it has none."""
    import rfc8785

    try:
        return hashlib.sha256(rfc8785.dumps(dict(descriptor))).digest()
    except rfc8785.CanonicalizationError:
        return None


def block_keys(asked: Mapping[str, Any]) -> list[bytes]:
    """The Block Keys of the prompt's complete blocks (kvsp-p0 §5)."""
    scope_key, salt = bytes.fromhex(asked["scope_key"]), bytes.fromhex(asked.get("salt", ""))
    size, tokens = asked["descriptor"]["block_tokens"], asked["tokens"]

    def counted(octets: bytes) -> bytes:
        return struct.pack(">I", len(octets)) + octets

    chain = hmac.digest(scope_key, b"kvsp-p0 block-key", "sha256")
    compat = compat_id(asked["descriptor"]) or b""
    key = hmac.digest(chain, b"\x00" + compat + counted(salt), "sha256")
    keys = []
    for block in range(len(tokens) // size):
        step = struct.pack(">QI", block, size)
        step += struct.pack(f">{size}I", *tokens[block * size : (block + 1) * size])
        key = hmac.digest(chain, b"\x01" + key + step + counted(b""), "sha256")
        keys.append(key)
    return keys


def identity(asked: Mapping[str, Any]) -> tuple[bytes, ...] | None:
    """Fields 0 to 3 of what was asked for; None when there is nothing that could be named."""
    compat = compat_id(asked["descriptor"])
    if compat is None or not asked["blocks"]:
        return None
    scope = hashlib.sha256(b"KVSP-SCOPE-1\x00" + bytes.fromhex(asked["scope_key"])).digest()[:16]
    return (_VERSION, scope, compat, block_keys(asked)[asked["blocks"] - 1])


def _as_text(field: bytes) -> str:
    """The octets of a field as a reader knows them: "kvcs-1", or hexadecimal."""
    return (
        f'"{field.decode()}"' if field.isascii() and field.decode().isprintable() else field.hex()
    )


@judge("announced-fully", at=NODE)
def announced_fully(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """PUBLISH_NAMESPACE names all five fields: "kvcs-1" and 16, 32, 32 and 16 raw octets."""
    found = announcements(evidence, arguments.get("at", "consumer"))
    for record, fields in found:
        lengths = tuple(len(part) for part in fields)
        clauses = _shape_clauses(fields, lengths)
        if clauses:
            yield contradicted(
                Reason.NAMESPACE_SHAPE,
                "PUBLISH_NAMESPACE does not name a whole KVCS namespace",
                expected='five fields of 6, 16, 32, 32 and 16 octets, the first "kvcs-1"',
                observed=f"{len(fields)} fields of {', '.join(map(str, lengths))} octets, "
                f"the first {_as_text(fields[0]) if fields else 'absent'}",
                record=record,
                octets=record.data.get("raw", ""),
                requires=clauses,
            )
        else:
            yield upheld("PUBLISH_NAMESPACE names five fields", record)
    if not found:
        yield unseen("no PUBLISH_NAMESPACE arrived")


def _shape_clauses(fields: tuple[bytes, ...], lengths: tuple[int, ...]) -> tuple[str, ...]:
    """The requirements that the shape of a namespace breaks."""
    if len(fields) < len(_LENGTHS):
        return ("KVCS-6-1", "KVCS-3.1-1")
    if len(fields) > len(_LENGTHS):
        return ("KVCS-3.1-1",)
    if fields[0] != _VERSION:
        return ("KVCS-3.1-3",)
    if lengths == _LENGTHS:
        return ()
    doubled = lengths[1:] == tuple(2 * length for length in _LENGTHS[1:])
    return ("KVCS-3.1-4",) if doubled else ("KVCS-3.1-2",)


@judge("identity-computable", at=NODE, publisher=NODE)
def identity_computable(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Fields 0 to 3 of each announced namespace are what anyone computes from the descriptor, the
    scope key and the tokens that the publisher was given (profile kvsp-p0); the Anchor Key is the
    Block Key of the last complete block of segment 0. What has no complete block, or a descriptor
    without a canonical form, is not announced; a descriptor may be declined, too."""
    asked = asked_for(evidence, arguments.get("publisher", _PUBLISHER))
    found = announcements(evidence, arguments.get("at", "consumer"))
    right = [fields for fields in map(identity, asked) if fields is not None]
    if not asked:
        yield unseen("it is not known what the publisher was asked to publish")
    named: set[tuple[bytes, ...]] = set()
    for record, fields in found:
        if fields[:4] in right:
            named.add(fields[:4])
            yield upheld(f"Publication {fields[-1].hex()} has the identity of its content", record)
            continue
        missing = [one for one in right if one not in named]
        yield _other_identity(record, fields, missing[0] if missing else None)
    lacking = [one for one in right if one not in named]
    if lacking and len(found) >= len(right) and all(fields[:4] in right for _, fields in found):
        yield contradicted(
            Reason.NAMESPACE_IDENTITY,
            "two contents were announced as one",
            expected=f"{len(set(right))} values of fields 0 to 3",
            observed=f"{len(named)} in {len(found)} announcements",
            record=found[-1][0],
            requires=("KVCS-3.1-6",),
        )
    elif lacking and not any(True for _ in _declined(evidence, arguments)):
        yield unseen(f"{len(lacking)} of {len(right)} prefixes were not announced")
    if not right and not found:
        yield from _nothing(evidence, arguments)


def _other_identity(
    record: Record, fields: tuple[bytes, ...], right: tuple[bytes, ...] | None
) -> Finding:
    if right is None:
        return contradicted(
            Reason.NAMESPACE_IDENTITY,
            "a namespace was announced for something that has no identity",
            expected="no announcement",
            observed=f"Anchor Key {fields[3].hex()}"
            if len(fields) > 3
            else f"{len(fields)} fields: {'/'.join(map(_as_text, fields))}",
            record=record,
            octets=record.data.get("raw", ""),
        )
    wrong = next((i for i, part in enumerate(right) if fields[i : i + 1] != (part,)), 0)
    return contradicted(
        Reason.NAMESPACE_IDENTITY,
        f"field {wrong} of the namespace is not the {_FIELDS[wrong]} of the content",
        expected=right[wrong].hex(),
        observed=fields[wrong].hex() if wrong < len(fields) else "absent",
        record=record,
        octets=record.data.get("raw", ""),
        requires=_FIELD_CLAUSES[wrong],
    )


def _declined(evidence: Evidence, arguments: Mapping[str, Any]) -> Iterator[Record]:
    return evidence.records(arguments.get("publisher", _PUBLISHER), "kvcs:not-published")


def _nothing(evidence: Evidence, arguments: Mapping[str, Any]) -> Iterator[Finding]:
    node = arguments.get("at", "consumer")
    if any(True for _ in evidence.records(node, "kvcs:fence")):
        yield upheld("nothing was announced up to a fence")
    else:
        yield unseen("nothing was announced, but no fence says that nothing will be")


@judge("publications-apart", at=NODE)
def publications_apart(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each production has a namespace of its own: as many are announced as were asked for, and
    those of one content differ in the Publication ID alone."""
    node = arguments.get("at", "consumer")
    asked = [one for one in asked_for(evidence) if identity(one) is not None]
    found = announcements(evidence, node)
    contents = {identity(one) for one in asked}
    shown = {fields[:4] for _, fields in found}
    fenced = any(True for _ in evidence.records(node, "kvcs:fence"))
    if len(asked) < 2 or any(len(fields) != len(_LENGTHS) for _, fields in found):
        yield unseen("there are no two productions with whole namespaces")
    elif len(found) < len(asked) and not fenced:
        yield unseen(f"{len(found)} of {len(asked)} productions were announced")
    elif len(found) < len(asked) or len(shown) != len(contents):
        # Two contents under one identity are as many productions, each with its own ID.
        as_one = len(found) == len(asked) and len(shown) < len(contents)
        yield contradicted(
            Reason.NAMESPACE_IDENTITY,
            f"{len(asked)} productions of {len(contents)} contents are not told apart as such",
            expected=f"{len(asked)} namespaces, {len(contents)} values of fields 0 to 3",
            observed=f"{len(found)} namespaces, {len(shown)} values of fields 0 to 3",
            record=found[-1][0] if found else None,
            requires=("KVCS-3.1-6",) if as_one else (),
        )
    else:
        yield upheld(f"{len(found)} productions, each with its Publication ID", found[-1][0])


@judge("publication-ids-random", at=NODE)
def publication_ids_random(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Publication IDs look chosen at random: all differ, no octet of them stays the same, and one
    does not follow from the one before by a small step. Needs eight of them; a loose test that
    fixed, counted and time-made IDs fail."""
    found = announcements(evidence, arguments.get("at", "consumer"))
    ids = [fields[-1] for _, fields in found if tuple(map(len, fields)) == _LENGTHS]
    asked = [one for one in asked_for(evidence) if identity(one) is not None]
    fence = any(True for _ in evidence.records(arguments.get("at", "consumer"), "kvcs:fence"))
    if len(ids) == len(found) < len(asked) and fence and len(asked) >= _FEW:
        text = f"{len(asked)} productions have {len(ids)} Publication IDs"
        yield _not_random(text, "one for each", ids, found)
    elif len(ids) < _FEW:
        yield unseen(f"{len(ids)} Publication IDs are too few to tell")
    elif constant := [i for i in range(min(map(len, ids))) if len({one[i] for one in ids}) == 1]:
        text = f"octets {constant} are the same in all Publication IDs"
        yield _not_random(text, "16 random octets", ids, found)
    elif _counted([int.from_bytes(one, "big") for one in ids]):
        yield _not_random("each Publication ID follows from the last", "random ones", ids, found)
    else:
        yield upheld(f"{len(ids)} Publication IDs without a pattern", found[-1][0])


def _counted(numbers: list[int]) -> bool:
    steps = [abs(after - before) for before, after in pairwise(numbers)]
    return all(step < _SMALL_STEP for step in steps) or len(set(steps)) == 1


def _not_random(
    text: str, right: str, ids: list[bytes], found: list[tuple[Record, tuple[bytes, ...]]]
) -> Finding:
    return contradicted(
        Reason.NAMESPACE_IDENTITY,
        text,
        expected=right,
        observed=", ".join(one.hex() for one in ids[:3]),
        record=found[-1][0] if found else None,
    )


@judge("names-silent", at=NODE)
def names_silent(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Neither a field of a namespace nor a track name that a manifest lists holds the model's
    name, a digest of its weights or tokenizer, the scope key or the tokens: as text, in hex, or as
    octets."""
    node = arguments.get("at", "consumer")
    secrets = [pair for asked in asked_for(evidence) for pair in _secrets(asked)]
    found = announcements(evidence, node)
    names: list[tuple[Record, bytes]] = [
        (record, field) for record, fields in found for field in fields
    ]
    for seen in manifests(evidence, node):
        for entry in entries_of(seen) or ():
            tracks = entry.get("tracks")
            if isinstance(tracks, list):
                names += [(seen.record, str(track).encode(errors="replace")) for track in tracks]
    if not found or not secrets:
        yield unseen("no namespace was announced, or it is not known what it must not say")
        return
    for record, name in names:
        for what, octets in secrets:
            if octets in name.lower() or octets.hex().encode() in name.lower():
                yield contradicted(
                    Reason.NAMESPACE_LEAKED,
                    f"{what} stands in a name that relays see",
                    expected="keyed identifiers, component, codec and segment alone",
                    observed=repr(name),
                    record=record,
                )
                return
    yield upheld(f"{len(names)} names say nothing of {len(secrets)} secrets", found[-1][0])


def _secrets(asked: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """What a name must not say, with the words for it; lower case where it is text."""
    descriptor, tokens = asked["descriptor"], asked["tokens"][:4]
    model = str(descriptor["model"]["id"])
    yield "the model's name", model.encode()
    yield "the model's name", model.rpartition("/")[2].encode()
    yield "the digest of the weights", _digest_of(descriptor["model"]["weights"])
    yield "the digest of the tokenizer", _digest_of(descriptor["tokenizer"])
    yield "the scope key", bytes.fromhex(asked["scope_key"])[:16]
    if len(tokens) == 4:
        for form in (">4I", "<4I", ">4H", "<4H"):
            if max(tokens) < 1 << 16 or "I" in form:
                yield "the tokens", struct.pack(form, *tokens)
        for mark in ",-_":
            yield "the tokens", mark.join(map(str, tokens)).encode()


def _digest_of(member: str) -> bytes:
    return bytes.fromhex(str(member).removeprefix("sha256:"))[:16]
