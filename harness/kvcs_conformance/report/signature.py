"""Signing a certificate: Ed25519 or ECDSA P-256 over its RFC 8785 form without the signature."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from kvcs_conformance.errors import UsageError

_KINDS = "an Ed25519 or a P-256 key in PEM form"
PublicKey = Ed25519PublicKey | EllipticCurvePublicKey


def signed(certificate: Mapping[str, Any], key_file: Path) -> dict[str, Any]:
    """The certificate with its signature; raises UsageError for a key that cannot sign it."""
    octets = signed_octets(certificate)
    key = _private(key_file)
    if isinstance(key, Ed25519PrivateKey):
        algorithm, value = "Ed25519", key.sign(octets)
    else:
        algorithm, value = "ES256", key.sign(octets, ECDSA(hashes.SHA256()))
    signature = {
        "algorithm": algorithm,
        "public_key": _spki(key.public_key()).hex(),
        "value": value.hex(),
    }
    return {**certificate, "signature": signature}


def check_signature(certificate: Mapping[str, Any], expected: PublicKey | None) -> str | None:
    """What is wrong with the signature of a certificate; None when nothing is.

    `expected` is the signer that the reader trusts; without it the key inside is taken, which
    shows that the certificate is whole, not who wrote it.
    """
    signature = certificate.get("signature")
    if signature is None:
        return "it is not signed" if expected is not None else None
    try:
        key = serialization.load_der_public_key(bytes.fromhex(signature["public_key"]))
        value = bytes.fromhex(signature["value"])
    except ValueError:
        return "its signature has no readable key or value"
    if expected is not None and _spki(expected) != bytes.fromhex(signature["public_key"]):
        return "it is signed with another key than the one given"
    octets = signed_octets(certificate)
    try:
        if isinstance(key, Ed25519PublicKey) and signature["algorithm"] == "Ed25519":
            key.verify(value, octets)
        elif _is_p256(key) and signature["algorithm"] == "ES256":
            key.verify(value, octets, ECDSA(hashes.SHA256()))  # type: ignore[union-attr, call-arg, arg-type]
        else:
            return f"its key is not {_KINDS}, or not for {signature['algorithm']}"
    except InvalidSignature:
        return "its signature does not fit: something was changed after it was signed"
    return None


def signed_octets(certificate: Mapping[str, Any]) -> bytes:
    """The octets that a signature covers."""
    return rfc8785.dumps({k: v for k, v in certificate.items() if k != "signature"})


def read_public_key(path: Path) -> PublicKey:
    """A public key from a PEM file (or that of a private one); raises UsageError."""
    octets = _read(path)
    try:
        key: object = serialization.load_pem_public_key(octets)
    except ValueError:
        key = _private(path).public_key()
    if isinstance(key, Ed25519PublicKey) or _is_p256(key):
        return key  # type: ignore[return-value]
    raise UsageError(f"{path}: not {_KINDS}")


def _private(path: Path) -> Ed25519PrivateKey | EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(_read(path), password=None)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path}: not {_KINDS} without a passphrase") from error
    if isinstance(key, Ed25519PrivateKey):
        return key
    if isinstance(key, EllipticCurvePrivateKey) and isinstance(key.curve, SECP256R1):
        return key
    raise UsageError(f"{path}: not {_KINDS}")


def _is_p256(key: object) -> bool:
    return isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)


def _spki(key: PublicKey) -> bytes:
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
