"""The signature of a manifest: COSE_Sign1 with ES256 or EdDSA (KVCS 5, RFC 9052, RFC 9053).

KVCS leaves open whether the structure is tagged and where "kid" stands (reading A8): both tagged
and untagged, protected and unprotected are read; we write tag 18 and a protected "kid". The
algorithm counts in the protected header only. Nothing in a manifest names its publication, so a
deployment may bind the signature to one through `external_aad`, on both sides alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import cbor2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.hashes import SHA256

from kvcs.cbor import Item, Major, read_cbor
from kvcs.errors import Defect, InputError, SignatureError
from kvcs.payload import Octets

PrivateKey: TypeAlias = EllipticCurvePrivateKey | Ed25519PrivateKey
PublicKey: TypeAlias = EllipticCurvePublicKey | Ed25519PublicKey

SIGN1_TAG = 18
SIGNATURE_OCTETS = 64


class Algorithm(IntEnum):
    """COSE algorithms that sign a manifest; ED25519 is RFC 9864's exact name for EDDSA here."""

    ES256 = -7
    EDDSA = -8
    ED25519 = -19


class Label(IntEnum):
    """Header labels that this reader understands (RFC 9052 §3.1)."""

    ALG = 1
    CRIT = 2
    CONTENT_TYPE = 3
    KID = 4


_OTHER_TAGS = {
    16: "COSE_Encrypt0",
    17: "COSE_Mac0",
    96: "COSE_Encrypt",
    97: "COSE_Mac",
    98: "COSE_Sign",
}


@dataclass(frozen=True, slots=True)
class Sign1:
    """A COSE_Sign1 as it was read; nothing in it is verified yet."""

    tagged: bool
    protected: bytes
    algorithm: int
    kid: bytes | None
    payload: bytes
    signature: bytes
    tree: Item


def sign(
    payload: Octets,
    key: PrivateKey,
    kid: bytes,
    algorithm: Algorithm | None = None,
    *,
    tagged: bool = True,
    protected_kid: bool = True,
    external_aad: bytes = b"",
) -> bytes:
    """The COSE_Sign1 of a manifest (KVCS-5-11, KVCS-5-12).

    `algorithm` defaults to what the key can: ES256 for P-256, EDDSA for Ed25519. Raises InputError
    for another key or pair. ES256 is not deterministic: signing twice gives different octets.
    """
    if algorithm is None:
        ed25519 = isinstance(key, Ed25519PrivateKey)
        algorithm = Algorithm.EDDSA if ed25519 else Algorithm.ES256
    if not _fits(algorithm, key.public_key()):
        raise InputError(f"{algorithm.name} does not go with {_describe(key.public_key())}")
    header: dict[int, int | bytes] = {Label.ALG.value: algorithm.value}
    unprotected: dict[int, bytes] = {}
    (header if protected_kid else unprotected)[Label.KID.value] = kid
    protected = cbor2.dumps(header, canonical=True)
    message = _to_be_signed(protected, external_aad, bytes(payload))
    if isinstance(key, Ed25519PrivateKey):
        signature = key.sign(message)
    else:
        r, s = decode_dss_signature(key.sign(message, ECDSA(SHA256())))
        signature = r.to_bytes(32) + s.to_bytes(32)
    structure = [protected, unprotected, bytes(payload), signature]
    return cbor2.dumps(cbor2.CBORTag(SIGN1_TAG, structure) if tagged else structure)


def read_sign1(octets: Octets) -> Sign1:
    """A COSE_Sign1 taken apart and checked for form, not for its signature (KVCS-5-4).

    Raises SignatureError for everything that two readers could see differently, for a detached
    payload, other COSE structures, and critical headers that we do not understand.
    """
    whole = bytes(octets)
    tree = read_cbor(whole)
    array, tagged = tree, False
    if tree.major is Major.TAG:
        if tree.value != SIGN1_TAG:
            name = _OTHER_TAGS.get(tree.number, "something else")
            raise _malformed("cose-tag", f"tag {tree.number} is {name}, COSE_Sign1 is 18", tree)
        array, tagged = tree.items[0], True
    if array.major is not Major.ARRAY or len(array.items) != 4:
        raise _malformed("cose-structure", "COSE_Sign1 is an array of four", array)
    protected, unprotected, payload, signature = array.items
    if protected.major is not Major.OCTETS:
        raise _malformed("cose-protected", "the protected header is a byte string", protected)
    if unprotected.major is not Major.MAP:
        raise _malformed("cose-unprotected", "the unprotected header is a map", unprotected)
    if payload.is_null:
        raise _malformed(
            "cose-detached", "the payload is detached, the manifest is missing", payload
        )
    if payload.major is not Major.OCTETS:
        raise _malformed("cose-payload", "the payload is a byte string", payload)
    if signature.major is not Major.OCTETS or signature.end - signature.body != SIGNATURE_OCTETS:
        raise _malformed("cose-signature-form", "the signature has 64 octets", signature)
    secured = _protected_header(whole, protected)
    open_header = {key.value: value for key, value in unprotected.pairs}
    for label in secured.keys() & open_header.keys():
        what = f"label {label!a} is in both headers"
        raise _malformed("cose-label-twice", what, unprotected)
    _check_critical(secured, open_header, array)
    algorithm = secured.get(Label.ALG)
    if algorithm is None:
        where = " but in the unprotected one" if Label.ALG in open_header else ""
        what = f"the algorithm is not in the protected header{where}"
        raise _malformed("cose-algorithm", what, protected)
    if algorithm.major not in (Major.UNSIGNED, Major.NEGATIVE):
        raise _malformed("cose-algorithm", "the algorithm is an integer", protected)
    kid = secured.get(Label.KID) or open_header.get(Label.KID)
    if kid is not None and kid.major is not Major.OCTETS:
        raise _malformed("cose-kid", "kid is a byte string", array)
    return Sign1(
        tagged=tagged,
        protected=protected.octets,
        algorithm=algorithm.number,
        kid=None if kid is None else kid.octets,
        payload=payload.octets,
        signature=signature.octets,
        tree=tree,
    )


def verify(octets: Octets, keys: Mapping[bytes, PublicKey], *, external_aad: bytes = b"") -> bytes:
    """The payload of a COSE_Sign1 that the key named by its "kid" has signed (KVCS-10-4).

    Raises SignatureError for a malformed structure, an absent or unknown "kid", an algorithm other
    than ES256 and EdDSA, one that the key's type does not go with, and a wrong signature.
    """
    message = read_sign1(octets)
    if message.kid is None:
        raise _unverified(
            "cose-kid-missing", "KVCS-5-12", "there is no kid, so no key to verify with"
        )
    key = keys.get(message.kid)
    if key is None:
        what = f"kid {message.kid[:32].hex()} names none of the {len(keys)} producer keys"
        raise _unverified("cose-kid-unknown", "KVCS-5-13", what)
    if message.algorithm not in Algorithm._value2member_map_:
        what = f"algorithm {message.algorithm} is neither ES256 (-7) nor EdDSA (-8, -19)"
        raise _unverified("cose-algorithm", "KVCS-5-11", what)
    algorithm = Algorithm(message.algorithm)
    if not _fits(algorithm, key):
        what = f"{algorithm.name} does not go with {_describe(key)} of this kid"
        raise _unverified("cose-key-type", "KVCS-5-11", what)
    signed = _to_be_signed(message.protected, external_aad, message.payload)
    try:
        if isinstance(key, Ed25519PublicKey):
            key.verify(message.signature, signed)
        else:
            r = int.from_bytes(message.signature[:32])
            s = int.from_bytes(message.signature[32:])
            key.verify(encode_dss_signature(r, s), signed, ECDSA(SHA256()))
    except InvalidSignature:
        raise _unverified("cose-signature", "KVCS-10-4", "the signature is wrong") from None
    return message.payload


def _protected_header(whole: bytes, protected: Item) -> dict[int | bytes | str, Item]:
    if not protected.octets:
        return {}
    header = read_cbor(whole, protected.body, protected.end)
    if header.major is not Major.MAP:
        raise _malformed("cose-protected", "the protected header holds a map", protected)
    return {key.value: value for key, value in header.pairs}


def _check_critical(
    secured: Mapping[int | bytes | str, Item], unsecured: Mapping[int | bytes | str, Item], at: Item
) -> None:
    if Label.CRIT in unsecured:
        raise _malformed("cose-critical", "crit is in the protected header only", at)
    critical = secured.get(Label.CRIT)
    if critical is None:
        return
    if critical.major is not Major.ARRAY or not critical.items:
        raise _malformed("cose-critical", "crit is an array of at least one label", at)
    for label in critical.items:
        known = label.major is Major.UNSIGNED and label.value in Label._value2member_map_
        if not known or label.value not in secured:
            what = f"the critical header {label.value!a} is not understood"
            raise _malformed("cose-critical", what, at)


def _to_be_signed(protected: bytes, external_aad: bytes, payload: bytes) -> bytes:
    """The Sig_structure of RFC 9052 §4.4."""
    return cbor2.dumps(["Signature1", protected, external_aad, payload])


def _fits(algorithm: Algorithm, key: PublicKey) -> bool:
    if algorithm is Algorithm.ES256:
        return isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)
    return isinstance(key, Ed25519PublicKey)


def _describe(key: PublicKey) -> str:
    return (
        f"a {key.curve.name} key" if isinstance(key, EllipticCurvePublicKey) else "an Ed25519 key"
    )


def _malformed(name: str, what: str, item: Item) -> SignatureError:
    where = f"octets {item.start}..{item.end - 1}"
    return SignatureError(
        f"not a COSE_Sign1 manifest: {what}", [Defect(name, "KVCS-5-4", what, where)]
    )


def _unverified(name: str, clause: str, what: str) -> SignatureError:
    return SignatureError(
        f"unauthenticated manifest: {what}", [Defect(name, clause, what, "COSE_Sign1")]
    )
