"""Judge words for the signed manifest, with a signature made here by RFC 9052 itself."""

from __future__ import annotations

from typing import Any

import cbor2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from kvcs_conformance.judge import JUDGES, Outcome
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import SCENARIO, Event, answered, asked, evidence, obj

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PRODUCER = {"kid": "6b31", "ed25519": KEY.public_key().public_bytes_raw().hex()}
UPHELD = {(Outcome.UPHELD, None)}
UNSEEN = {(Outcome.UNSEEN, Reason.NO_EVIDENCE)}


def signed(
    header: dict[int, Any], unprotected: dict[int, Any], *, tag: bool = True, flip: int = 0
) -> bytes:
    """A COSE_Sign1 over {}."""
    protected = cbor2.dumps(header)
    signature = bytearray(KEY.sign(cbor2.dumps(["Signature1", protected, b"", b"{}"])))
    signature[0] ^= flip
    parts = [protected, unprotected, b"{}", bytes(signature)]
    return cbor2.dumps(cbor2.CBORTag(18, parts) if tag else parts)


def found(octets: bytes) -> list[tuple[Outcome, Reason | None, tuple[str, ...]]]:
    version = obj(0, 0, track="manifest.cose", octets=octets)
    case = evidence(
        "publisher",
        {"consumer": [version]},
        scenario={**SCENARIO, "manifest": "manifest.cose"},
        producer=PRODUCER,
    )
    findings = JUDGES["manifest-signed"].function(case, {})
    return [(finding.outcome, finding.reason, finding.requires) for finding in findings]


@pytest.mark.parametrize(
    "octets",
    [
        signed({1: -8, 4: b"k1"}, {}),
        signed({1: -8}, {4: b"k1"}),
        signed({1: -19, 4: b"k1"}, {}),
        signed({1: -8, 4: b"k1"}, {}, tag=False),
    ],
)
def test_a_signed_manifest_upholds(octets: bytes) -> None:
    """Tagged or not, kid protected or not, by either name of the algorithm (A8, KVCS-5-11)."""
    assert found(octets) == [(Outcome.UPHELD, None, ())]


@pytest.mark.parametrize(
    ("octets", "requirement"),
    [
        (signed({1: -8, 4: b"k1"}, {}, flip=1), "KVCS-5-11"),
        (signed({4: b"k1"}, {1: -8}), "KVCS-5-11"),
        (signed({1: -7, 4: b"k1"}, {}), "KVCS-5-11"),
        (signed({1: -8}, {}), "KVCS-5-12"),
        (signed({1: -8, 4: b"k2"}, {}), "KVCS-5-12"),
        (b"{}", "KVCS-5-4"),
        (b"", "KVCS-5-4"),
        (cbor2.dumps([b"", {}, b"{}"]), "KVCS-5-4"),
        (signed({1: -8, 4: b"k1"}, {}) + b"\0", "KVCS-5-4"),
        (b"\xd8\x62" + signed({1: -8, 4: b"k1"}, {}, tag=False), "KVCS-5-4"),
        (b"\x84" * 9000, "KVCS-5-4"),
        (signed({1: -8, 4: 7}, {}), "KVCS-5-12"),
        (signed({1: -8}, {4: "k1"}), "KVCS-5-12"),
    ],
)
def test_what_is_wrong_with_a_signature_is_told(octets: bytes, requirement: str) -> None:
    """A broken signature, another algorithm or one outside the protected header, a kid that is
    absent, another or no octets, and what is no COSE_Sign1, has another tag or octets behind it
    contradict their own clause."""
    assert found(octets) == [(Outcome.CONTRADICTED, Reason.MANIFEST_SIGNATURE, (requirement,))]


def test_no_manifest_is_open() -> None:
    """Without a manifest nothing is concluded."""
    case = evidence("publisher", {"consumer": []}, producer=PRODUCER)
    (finding,) = JUDGES["manifest-signed"].function(case, {})
    assert finding.outcome is Outcome.UNSEEN


def test_does_not_exist() -> None:
    """DOES_NOT_EXIST upholds, another code or an OK contradicts, no answer is open (KVCS-5-2)."""

    def outcomes(*events: Event) -> set[tuple[Outcome, Reason | None]]:
        case = evidence("publisher", {"consumer": list(events)})
        findings = JUDGES["does-not-exist"].function(case, {"of": "x"})
        return {(finding.outcome, finding.reason) for finding in findings}

    ask = asked("x", "SUBSCRIBE", "manifest")
    wrong = {(Outcome.CONTRADICTED, Reason.REQUEST_CODE)}
    assert outcomes(ask, answered("RequestError", code=0x10)) == UPHELD
    assert outcomes(ask, answered("RequestError", code=0x1)) == wrong
    assert outcomes(ask, answered("SubscribeOk")) == wrong
    assert outcomes(ask) == UNSEEN
    assert outcomes() == UNSEEN
