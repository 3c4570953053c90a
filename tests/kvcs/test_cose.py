"""The manifest's signature: public vectors, two libraries, everything that must not verify."""

from __future__ import annotations

import contextlib
from typing import Any

import cbor2
import cwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    SECP384R1,
    EllipticCurvePublicNumbers,
    derive_private_key,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from kvcs.cbor import read_cbor
from kvcs.cose import Algorithm, PublicKey, read_sign1, sign, verify
from kvcs.errors import InputError, SignatureError

PAYLOAD = b'{"kvcs":1}'
P256 = derive_private_key(7, SECP256R1())
P384 = derive_private_key(7, SECP384R1())
ED25519 = Ed25519PrivateKey.from_private_bytes(bytes(32))
KEYS: dict[bytes, PublicKey] = {b"es": P256.public_key(), b"ed": ED25519.public_key()}
SIGNED = sign(PAYLOAD, ED25519, b"ed")

# RFC 9052, appendix C.2.1: kid "11", ES256, kid unprotected, tag 18.
RFC_SIGN1 = bytes.fromhex(
    "d28443a10126a10442313154546869732069732074686520636f6e74656e742e58408eb33e4ca31d1c465ab05aac"
    "34cc6b23d58fef5c083106c4d25a91aef0b0117e2af9a291aa32e14ab834dc56ed2a223444547e01f11d3b0916e5"
    "a4c345cacb36"
)
RFC_KEY = EllipticCurvePublicNumbers(
    0xBAC5B11CAD8F99F9C72B05CF4B9E26D244DC189F745228255A219A86D6A09EFF,
    0x20138BF82DC1B6D562BE0FA54AB7804A3A64B6D72CCFED6B6FB6ED28BBFC117E,
    SECP256R1(),
).public_key()


def structure(
    protected: Any, unprotected: Any, payload: Any = PAYLOAD, *, key: Any = ED25519
) -> bytes:
    """A COSE_Sign1 with any headers and a signature that fits them; headers may be octets."""
    secured = protected if isinstance(protected, bytes) else cbor2.dumps(protected)
    signed = cbor2.dumps(["Signature1", secured, b"", PAYLOAD])
    open_header = unprotected if isinstance(unprotected, bytes) else cbor2.dumps(unprotected)
    return b"".join(
        (
            b"\xd2\x84",
            cbor2.dumps(secured),
            open_header,
            cbor2.dumps(payload),
            cbor2.dumps(key.sign(signed)),
        )
    )


def names(octets: bytes) -> list[str]:
    """What `verify` finds wrong."""
    with pytest.raises(SignatureError) as caught:
        verify(octets, KEYS)
    return [defect.name for defect in caught.value.defects]


def test_the_vector_of_the_rfc_verifies() -> None:
    """A public ES256 vector with an unprotected kid (KVCS-5-11, KVCS-5-12, A8)."""
    assert b"This is the content." == verify(RFC_SIGN1, {b"11": RFC_KEY})


def test_the_vector_of_the_rfc_untagged() -> None:
    """Without tag 18 it is the same structure (KVCS-5-4)."""
    assert b"This is the content." == verify(RFC_SIGN1[1:], {b"11": RFC_KEY})
    assert not read_sign1(RFC_SIGN1[1:]).tagged


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("tagged", [True, False])
@pytest.mark.parametrize("protected_kid", [True, False])
def test_what_we_sign_verifies(algorithm: Algorithm, tagged: bool, protected_kid: bool) -> None:
    """Each algorithm, form and place of kid (KVCS-5-11, KVCS-5-12)."""
    key, kid = (P256, b"es") if algorithm is Algorithm.ES256 else (ED25519, b"ed")
    octets = sign(PAYLOAD, key, kid, algorithm, tagged=tagged, protected_kid=protected_kid)
    assert PAYLOAD == verify(octets, KEYS)
    message = read_sign1(octets)
    assert (algorithm, tagged, kid) == (message.algorithm, message.tagged, message.kid)


def test_the_algorithm_follows_from_the_key() -> None:
    """P-256 signs with ES256 and Ed25519 with EdDSA unless told otherwise (KVCS-5-11)."""
    assert -7 == read_sign1(sign(PAYLOAD, P256, b"es")).algorithm
    assert -8 == read_sign1(SIGNED).algorithm


@pytest.mark.parametrize(("key", "kid"), [(P256, b"es"), (ED25519, b"ed")])
def test_another_library_agrees(key: Any, kid: bytes) -> None:
    """cwt verifies what we sign, and we verify what cwt signs (KVCS-5-4)."""
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    theirs = cwt.COSE.new(alg_auto_inclusion=True, kid_auto_inclusion=True)
    octets = theirs.encode(PAYLOAD, cwt.COSEKey.from_pem(pem, kid=kid.decode()))
    assert PAYLOAD == verify(octets, KEYS)
    reader = cwt.COSEKey.from_pem(public.decode(), kid=kid.decode())
    assert PAYLOAD == theirs.decode(sign(PAYLOAD, key, kid, protected_kid=False), reader)


def test_a_signature_bound_to_a_publication() -> None:
    """With external_aad the same manifest does not verify for another publication (A8)."""
    octets = sign(PAYLOAD, ED25519, b"ed", external_aad=b"publication X")
    assert PAYLOAD == verify(octets, KEYS, external_aad=b"publication X")
    for other in (b"publication Y", b""):
        with pytest.raises(SignatureError, match="signature is wrong"):
            verify(octets, KEYS, external_aad=other)


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [(P256, Algorithm.EDDSA), (ED25519, Algorithm.ES256), (P384, Algorithm.ES256), (P384, None)],
)
def test_an_algorithm_that_the_key_cannot_is_refused(key: Any, algorithm: Any) -> None:
    """ES256 goes with P-256, EdDSA with Ed25519, and nothing else signs (KVCS-5-11)."""
    with pytest.raises(InputError, match="does not go with"):
        sign(PAYLOAD, key, b"x", algorithm)


def test_every_flipped_bit_is_noticed() -> None:
    """Payload, signature, headers: no bit can change unnoticed (KVCS-10-4)."""
    for bit in range(8 * len(SIGNED)):
        octets = bytearray(SIGNED)
        octets[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SignatureError):
            verify(octets, KEYS)


@pytest.mark.parametrize("tail", [b"\x00", b"\xf6", SIGNED])
def test_octets_after_the_structure_are_refused(tail: bytes) -> None:
    """Field case 29: nothing may follow the COSE_Sign1."""
    assert ["cbor-trailing"] == names(SIGNED + tail)


def test_the_structures_built_here_would_verify() -> None:
    """The positive twin of the refusals below."""
    assert PAYLOAD == verify(structure({1: -8, 4: b"ed"}, {}), KEYS)
    assert PAYLOAD == verify(structure({1: -8}, {4: b"ed"}), KEYS)
    assert PAYLOAD == verify(structure({1: -8, 2: [4], 3: 50, 4: b"ed"}, {"x": [1]}), KEYS)


@pytest.mark.parametrize(
    ("protected", "unprotected", "defect"),
    [
        ({4: b"ed"}, {1: -8}, "cose-algorithm"),
        ({4: b"ed"}, {}, "cose-algorithm"),
        (b"", {1: -8, 4: b"ed"}, "cose-algorithm"),
        ({1: "EdDSA", 4: b"ed"}, {}, "cose-algorithm"),
        ({1: 0, 4: b"ed"}, {}, "cose-algorithm"),
        ({1: -35, 4: b"ed"}, {}, "cose-algorithm"),
        ({1: -7, 4: b"ed"}, {}, "cose-key-type"),
        ({1: -8, 4: b"es"}, {}, "cose-key-type"),
        ({1: -8}, {}, "cose-kid-missing"),
        ({1: -8, 4: b"zz"}, {}, "cose-kid-unknown"),
        ({1: -8, 4: b""}, {}, "cose-kid-unknown"),
        ({1: -8, 4: "ed"}, {}, "cose-kid"),
        ({1: -8, 4: b"ed"}, {4: b"ed"}, "cose-label-twice"),
        ({1: -8, 4: b"ed"}, {1: -8}, "cose-label-twice"),
        ({1: -8, 2: [99], 4: b"ed", 99: 0}, {}, "cose-critical"),
        ({1: -8, 2: [3], 4: b"ed"}, {}, "cose-critical"),
        ({1: -8, 2: [], 4: b"ed"}, {}, "cose-critical"),
        ({1: -8, 4: b"ed"}, {2: [4]}, "cose-critical"),
        (b"\x80", {4: b"ed"}, "cose-protected"),
        ({1: -8, 4: b"ed"}, [], "cose-unprotected"),
        (b"\xa3\x01\x27\x04\x42ed\x04\x42es", {}, "cbor-label-twice"),
        (b"\xa3\x01\x27\x04\x42ed\x18\x04\x42es", {}, "cbor-label-twice"),
        (b"\xa3\x01\x27\x04\x42ed\xf5\x26", {}, "cbor-label"),
        (b"\xa3\x01\x27\x04\x42ed\xf9\x3c\x00\x26", {}, "cbor-label"),
        ({1: -8}, b"\xa2\x04\x42ed\x04\x42es", "cbor-label-twice"),
        ({1: -8}, b"\xbf\x04\x42ed\xff", "cbor-indefinite"),
        (b"\xa2\x01\x27\x04\x42ed\x00", {}, "cbor-trailing"),
        (b"\xbf\x01\x27\x04\x42ed\xff", {}, "cbor-indefinite"),
    ],
)
def test_headers_that_must_not_verify(protected: Any, unprotected: Any, defect: str) -> None:
    """Misplaced or foreign algorithms, kid, crit, twin labels, each under a signature that is
    right otherwise (KVCS-5-11, KVCS-5-12, KVCS-10-4, field case 29)."""
    assert [defect] == names(structure(protected, unprotected))


@pytest.mark.parametrize(
    ("octets", "defect"),
    [
        (structure({1: -8, 4: b"ed"}, {}, None), "cose-detached"),
        (structure({1: -8, 4: b"ed"}, {}, "text"), "cose-payload"),
        (SIGNED[:-66] + b"\x40", "cose-signature-form"),
        (b"\xd1" + SIGNED[1:], "cose-tag"),
        (b"\xd8\x62" + SIGNED[1:], "cose-tag"),
        (b"\xd9\xd9\xf7" + SIGNED, "cose-tag"),
        (b"\xd2" + SIGNED, "cose-structure"),
        (b"\xd2\x83" + SIGNED[2:-66], "cose-structure"),
        (b"\xa0", "cose-structure"),
        (b"", "cbor-truncated"),
        (SIGNED[:-1], "cbor-truncated"),
        (b"\x9f" + SIGNED[2:] + b"\xff", "cbor-indefinite"),
        (b"\xd2\x84\x5f\x41\xa0\xff", "cbor-indefinite"),
        (b"\x9b" + b"\xff" * 8, "cbor-truncated"),
        (b"\x5b" + b"\xff" * 8, "cbor-truncated"),
        (b"\x1c", "cbor-head"),
        (b"\xf8\x10", "cbor-simple"),
        (b"\x61\xff", "cbor-text"),
        (b"\x81" * 100 + b"\x00", "cbor-depth"),
    ],
)
def test_other_structures_are_refused(octets: bytes, defect: str) -> None:
    """COSE_Mac0, COSE_Sign, a detached payload, indefinite lengths and broken CBOR (KVCS-5-4)."""
    assert [defect] == names(octets)


def test_a_key_of_another_scope_does_not_verify() -> None:
    """The same kid with another key is a wrong signature (KVCS-5-13)."""
    other = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
    assert ["cose-signature"] == names(sign(PAYLOAD, other, b"ed"))


def test_kid_selects_among_several_keys() -> None:
    """Each of two producers is verified with its own key (KVCS-5-12)."""
    other = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
    keys: dict[bytes, PublicKey] = {**KEYS, b"other": other.public_key()}
    assert PAYLOAD == verify(sign(PAYLOAD, other, b"other"), keys)
    assert PAYLOAD == verify(SIGNED, keys)


def test_defects_name_the_octets() -> None:
    """A label that stands twice inside the protected header is told where it stands."""
    octets = structure(b"\xa3\x01\x27\x04\x42ed\x04\x42es", {})
    with pytest.raises(SignatureError) as caught:
        verify(octets, KEYS)
    (defect,) = caught.value.defects
    assert f"octet {octets.index(bytes.fromhex('04426573'))}" == defect.where


@given(st.binary(max_size=100))
@settings(max_examples=150, deadline=None)
def test_any_octets_are_refused(octets: bytes) -> None:
    """Arbitrary octets give SignatureError and nothing else."""
    with pytest.raises(SignatureError):
        verify(octets, KEYS)
    with contextlib.suppress(SignatureError):
        read_cbor(octets)


@given(st.integers(0, len(SIGNED)), st.binary(max_size=6))
@settings(max_examples=150, deadline=None)
def test_any_change_of_a_signed_structure_is_refused(at: int, octets: bytes) -> None:
    """Overwritten octets never verify unless they are the same ones."""
    changed = SIGNED[:at] + octets + SIGNED[at + len(octets) :]
    if changed != SIGNED:
        with pytest.raises(SignatureError):
            verify(changed, KEYS)
