"""Judge words for the signed manifest, which the judge reads and verifies itself (RFC 9052)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge.delivery import LABEL, answer, described
from kvcs_conformance.judge.documents import cbor_map, sign1
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.manifest import manifests
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

_ALG, _KID = 1, 4
_EDDSA = (-8, -19)
_DOES_NOT_EXIST = 0x10


@judge("manifest-signed", at=NODE)
def manifest_signed(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every version is a COSE_Sign1 with its payload inside, EdDSA in the protected header, the
    producer's kid in either header, and a signature that the producer's key verifies (A8)."""
    versions = manifests(evidence, arguments.get("at", "consumer"))
    if not versions:
        yield unseen("no manifest was seen")
    for seen in versions:
        problem = _problem(seen.head, evidence.facts["producer"])
        if problem:
            yield contradicted(
                Reason.MANIFEST_SIGNATURE,
                f"manifest {seen.location}: {problem[0]}",
                expected=problem[1],
                observed=problem[2],
                record=seen.record,
                octets=seen.head[:32].hex(),
                requires=problem[3:],
            )
        else:
            yield upheld(f"manifest {seen.location} is signed by the producer", seen.record)


def _problem(octets: bytes, producer: dict[str, str]) -> tuple[str, ...]:
    """What is wrong (what, expected, observed, requirement), or nothing."""
    import cbor2
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    protected, unprotected, payload, signature = sign1(octets) or (None, None, None, b"")
    header = cbor_map(protected)
    if header is None or not isinstance(unprotected, dict) or not isinstance(payload, bytes):
        return ("no COSE_Sign1", "COSE_Sign1", f"{len(octets)} octets", "KVCS-5-4")
    kid = header.get(_KID, unprotected.get(_KID))
    signed = cbor2.dumps(["Signature1", protected, b"", payload])
    if header.get(_ALG) not in _EDDSA:
        return ("another algorithm", "EdDSA (-8)", f"{header.get(_ALG)!r}", "KVCS-5-11")
    if not isinstance(kid, bytes) or kid.hex() != producer["kid"]:
        return ("another kid", producer["kid"], _told(kid), "KVCS-5-12")
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(producer["ed25519"]))
    try:
        key.verify(signature, signed)
    except (InvalidSignature, TypeError):
        return ("the signature does not verify", "valid", "invalid", "KVCS-5-11")
    return ()


def _told(kid: object) -> str:
    return "none" if kid is None else kid.hex() if isinstance(kid, bytes) else f"{kid!r}"[:80]


@judge("does-not-exist", required=("of",), of=LABEL)
def does_not_exist(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every request of the step is answered with DOES_NOT_EXIST (0x10)."""
    requests = evidence.asked(arguments["of"])
    if not requests:
        yield unseen(f"no request is labelled {arguments['of']!r}")
    for request in requests:
        got = answer(evidence, request)
        if got is None:
            yield unseen(f"{described(request)}: no answer came")
        elif got[1].get("code") != _DOES_NOT_EXIST:
            yield contradicted(
                Reason.REQUEST_CODE,
                f"{described(request)}: answered otherwise",
                expected="REQUEST_ERROR DOES_NOT_EXIST (0x10)",
                observed=f"{got[1]['type']} {got[1].get('code', '')}".strip(),
                record=got[0],
            )
        else:
            yield upheld(f"{described(request)}: DOES_NOT_EXIST", got[0])
