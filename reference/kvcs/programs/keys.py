"""Producer keys from PEM files: the private one signs manifests, the public ones verify."""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from kvcs.cose import PrivateKey, PublicKey
from kvcs.errors import InputError
from kvcs.programs.options import read_text


def private_key(file: Path) -> PrivateKey:
    """The P-256 or Ed25519 key in an unencrypted PEM file; InputError for anything else."""
    try:
        key = load_pem_private_key(read_text(file).encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InputError(f"{file}: not an unencrypted private key in PEM form") from None
    if not isinstance(key, (EllipticCurvePrivateKey, Ed25519PrivateKey)):
        raise InputError(f"{file}: a key of P-256 or Ed25519 is needed")
    return key


def public_keys(option: str, arguments: tuple[str, ...]) -> dict[bytes, PublicKey]:
    """Key identifier to public key, from 'KID=FILE' each; InputError for a bad one.

    KID is text, or 0x and hexadecimal digits for octets that are none.
    """
    keys: dict[bytes, PublicKey] = {}
    for argument in arguments:
        kid, equals, name = argument.partition("=")
        if not equals or not kid:
            raise InputError(f"{option} {argument!r}: write KID=FILE")
        file = Path(name)
        try:
            key = load_pem_public_key(read_text(file).encode())
        except (ValueError, UnsupportedAlgorithm):
            raise InputError(f"{file}: not a public key in PEM form") from None
        if not isinstance(key, (EllipticCurvePublicKey, Ed25519PublicKey)):
            raise InputError(f"{file}: a key of P-256 or Ed25519 is needed")
        keys[_octets(option, kid)] = key
    return keys


def _octets(option: str, kid: str) -> bytes:
    if not kid.startswith("0x"):
        return kid.encode()
    try:
        return bytes.fromhex(kid[2:])
    except ValueError:
        raise InputError(f"{option}: {kid!r} is not 0x and pairs of hexadecimal digits") from None
