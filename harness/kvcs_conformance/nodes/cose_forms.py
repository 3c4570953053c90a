"""Forms of "manifest.cose", right and wrong, written down octet by octet.

Nothing here goes through the reference's signer except the signature itself, so that a form is
what its name says whatever the reference would write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import cbor2
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    derive_private_key,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from kvcs.publisher.spec import Signer

ALG, KID = 1, 4
EDDSA, ES256, ES384 = -8, -7, -35
SIGN1_TAG, SIGN_TAG, MAC0_TAG = 18, 98, 17


def p256_key(seed: bytes) -> EllipticCurvePrivateKey:
    """A P-256 key that the seed gives."""
    number = int.from_bytes(hashlib.sha256(seed).digest(), "big") >> 1
    return derive_private_key(number + 1, SECP256R1())


def signed(form: str, text: bytes, signer: Signer) -> bytes:
    """The octets of this form of a manifest."""
    assert isinstance(signer.key, Ed25519PrivateKey)
    return FORMS[form](text, signer.key, signer.kid)


def _signature(key: Ed25519PrivateKey, protected: bytes, text: bytes) -> bytes:
    return key.sign(_to_be_signed(protected, text))


def _to_be_signed(protected: bytes, text: bytes) -> bytes:
    return cbor2.dumps(["Signature1", protected, b"", text])


def _structure(
    text: bytes,
    key: Ed25519PrivateKey,
    protected: bytes,
    unprotected: dict[int, object] | None = None,
) -> list[object]:
    return [protected, unprotected or {}, text, _signature(key, protected, text)]


def _protected(kid: bytes | None, algorithm: int | None = EDDSA) -> bytes:
    header: dict[int, object] = {} if algorithm is None else {ALG: algorithm}
    return cbor2.dumps(header if kid is None else {**header, KID: kid})


def _tagged(structure: object, tag: int = SIGN1_TAG) -> bytes:
    return cbor2.dumps(cbor2.CBORTag(tag, structure))


def _plain(text: bytes, key: Ed25519PrivateKey, kid: bytes) -> list[object]:
    return _structure(text, key, _protected(kid))


def _es256(text: bytes, key: Ed25519PrivateKey, kid: bytes) -> bytes:
    protected = _protected(kid[::-1], ES256)
    signer = p256_key(kid)
    r, s = decode_dss_signature(signer.sign(_to_be_signed(protected, text), ECDSA(SHA256())))
    return _tagged([protected, {}, text, r.to_bytes(32, "big") + s.to_bytes(32, "big")])


def _detached(text: bytes, key: Ed25519PrivateKey, kid: bytes) -> bytes:
    protected, unprotected, _, signature = _plain(text, key, kid)
    return _tagged([protected, unprotected, None, signature])


def _sign(text: bytes, key: Ed25519PrivateKey, kid: bytes) -> bytes:
    """COSE_Sign: the signers stand in an array of their own."""
    protected = _protected(kid)
    to_sign = cbor2.dumps(["Signature", b"", protected, b"", text])
    return _tagged([b"", {}, text, [[protected, {}, key.sign(to_sign)]]], SIGN_TAG)


def _label_twice(text: bytes, key: Ed25519PrivateKey, kid: bytes) -> bytes:
    """A map of three pairs, two of which have the label of "kid"."""
    pairs = [(ALG, EDDSA), (KID, b"another"), (KID, kid)]
    protected = b"\xa3" + b"".join(
        cbor2.dumps(label) + cbor2.dumps(value) for label, value in pairs
    )
    return _tagged(_structure(text, key, protected))


def _altered(text: bytes, key: Ed25519PrivateKey, kid: bytes) -> bytes:
    protected, unprotected, _, signature = _plain(text, key, kid)
    other = text.replace(b'"complete": false', b'"complete":  true')
    return _tagged([protected, unprotected, other + b" ", signature])


FORMS: dict[str, Callable[[bytes, Ed25519PrivateKey, bytes], bytes]] = {
    "untagged": lambda text, key, kid: cbor2.dumps(_plain(text, key, kid)),
    "kid-unprotected": lambda text, key, kid: _tagged(
        _structure(text, key, _protected(None), {KID: kid})
    ),
    "es256": _es256,
    "followed": lambda text, key, kid: _tagged(_plain(text, key, kid)) + b"\x00",
    "detached": _detached,
    "mac0": lambda text, key, kid: _tagged(_plain(text, key, kid), MAC0_TAG),
    "sign": _sign,
    "label-twice": _label_twice,
    "algorithm-unprotected": lambda text, key, kid: _tagged(
        _structure(text, key, _protected(kid, None), {ALG: EDDSA})
    ),
    "algorithm-other": lambda text, key, kid: _tagged(
        _structure(text, key, _protected(kid, ES384))
    ),
    "kid-absent": lambda text, key, kid: _tagged(_structure(text, key, _protected(None))),
    "kid-unknown": lambda text, key, kid: _tagged(_structure(text, key, _protected(b"nobody's"))),
    "other-key": lambda text, key, kid: _tagged(
        _plain(text, Ed25519PrivateKey.from_private_bytes(hashlib.sha256(kid).digest()), kid)
    ),
    "payload-altered": _altered,
}
"""What `cose: {as: …}` writes."""
