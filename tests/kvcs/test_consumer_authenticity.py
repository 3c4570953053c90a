"""Signed manifests: which track is asked for, and what may be used when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from kvcs.cose import PrivateKey
from kvcs.names import MANIFEST, MANIFEST_COSE
from kvcs.publisher import Publisher, Signer
from moqt.session import Request, RequestKind, SessionConfig
from moqt.wire.errors import RequestErrorCode, RequestRefused

from tests.kvcs.chain import QUICK, Restored, Scene, produce, put_layer, request, restore, spec

EDDSA = Ed25519PrivateKey.from_private_bytes(bytes(32))
ES256 = derive_private_key(12345, SECP256R1())
STRANGER = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
KID = b"producer-1"


def trusting(*sources: str, key: PrivateKey = EDDSA) -> dict[str, Any]:
    return {"authentic": True, "producers": {KID: key.public_key()}}


@pytest.mark.parametrize("key", [EDDSA, ES256])
def test_a_signed_publication_is_restored(key: PrivateKey) -> None:
    """KVCS-10-3 to KVCS-10-5: signature and digest list, with either algorithm."""
    scene = Scene()
    produce(scene.publisher().open(spec(signer=Signer(key, KID))))
    restored = restore(scene, request("origin", **trusting(key=key)))
    assert 12 == restored.reused
    assert {"manifest.cose"} == {item["track"] for item in restored.named("manifest")}


def test_nothing_is_used_before_a_signed_digest_lists_it() -> None:
    """KVCS-10-5: layers wait for the version that lists them."""
    scene = Scene()
    publication = scene.publisher().open(spec(signer=Signer(EDDSA, KID), manifest_interval=2))
    publication.open_segment()
    for layer in range(4):
        scene.network.at(
            1.0 + layer,
            lambda layer=layer: put_layer(publication, 0, layer),  # type: ignore[misc]
        )
    scene.network.at(4.5, lambda: publication.complete_segment(0))
    restored = restore(scene, request("origin", **trusting()))
    times = {item["layer"]: item["time"] for item in restored.named("layer-usable")}
    assert {0, 2} <= {item["layer"] for item in restored.named("object-held")}
    assert times[0] > 2.0
    assert times[2] > 4.0
    assert 12 == restored.reused


class Watching(Publisher):
    """Keeps the names of the tracks that were subscribed to; refuses some."""

    refusals: dict[bytes, RequestErrorCode] = {}  # noqa: RUF012

    def authorise(self, request: Request) -> None:
        if request.kind is RequestKind.SUBSCRIBE and request.track is not None:
            self.asked: list[bytes] = [*getattr(self, "asked", []), request.track.name]
            code = self.refusals.get(request.track.name)
            if code is not None:
                raise RequestRefused("refused", code)


def watched(
    scene: Scene, signer: Signer | None = None, code: RequestErrorCode | None = None
) -> Watching:
    publisher = Watching()
    if code is not None:
        publisher.refusals = {MANIFEST_COSE.octets: code}
    scene.network.listen("origin", publisher, SessionConfig())
    produce(publisher.open(spec(signer=signer)))
    return publisher


def manifests_asked(publisher: Watching) -> list[bytes]:
    return [name for name in publisher.asked if name.startswith(b"manifest")]


def test_manifest_cose_is_asked_for_first_and_alone_when_it_exists() -> None:
    """KVCS-7.2-4: no SUBSCRIBE for "manifest" then."""
    scene = Scene()
    publisher = watched(scene, Signer(EDDSA, KID))
    restore(scene, request("origin"))
    assert [b"manifest.cose"] == manifests_asked(publisher)


def test_manifest_is_used_when_the_signed_one_does_not_exist() -> None:
    """KVCS-7.2-5: DOES_NOT_EXIST, and authenticity is not required."""
    scene = Scene()
    publisher = watched(scene)
    restored = restore(scene, request("origin"))
    assert [b"manifest.cose", b"manifest"] == manifests_asked(publisher)
    assert 12 == restored.reused


@pytest.mark.parametrize(
    "code",
    [RequestErrorCode.UNAUTHORIZED, RequestErrorCode.TIMEOUT, RequestErrorCode.INTERNAL_ERROR],
)
def test_no_other_refusal_leads_to_the_unsigned_manifest(code: RequestErrorCode) -> None:
    """KVCS-7.2-5, A13: a refusal is no statement that the track does not exist."""
    scene = Scene()
    publisher = watched(scene, code=code)
    restored = restore(scene, request("origin"))
    assert [b"manifest.cose"] == manifests_asked(publisher)
    assert 0 == restored.reused


def test_required_authenticity_never_falls_back() -> None:
    """KVCS-7.2-5: not even on DOES_NOT_EXIST."""
    scene = Scene()
    publisher = watched(scene)
    restored = restore(scene, request("origin", **trusting()))
    assert [b"manifest.cose"] == manifests_asked(publisher)
    assert 0 == restored.reused


def wrong_signature(scene: Scene) -> Restored:
    produce(scene.publisher().open(spec(signer=Signer(STRANGER, KID))))
    return restore(scene, request("origin", **trusting()))


def test_a_strangers_signature_gives_nothing() -> None:
    """KVCS-10-4, KVCS-5-13: the version is refused, and no Object is asked for."""
    restored = wrong_signature(Scene())
    assert "manifest.signature" == restored.last("manifest-refused")["reason"]
    assert 0 == restored.count("object-accepted") + restored.count("object-held")
    assert "recompute" == restored.last("done")["outcome"]


def test_a_consistent_forgery_of_data_and_digest_is_found() -> None:
    """KVCS-10-5: the relay replaced Data and Data Digest; the signed list disagrees."""

    scene = Scene()
    signer = Signer(EDDSA, KID)
    good = scene.publisher("good").open(spec(signer=signer))
    produce(good)
    forged = scene.publisher("bad").open(spec(signer=signer))
    forged.manifest_octets = good.manifest_octets  # type: ignore[method-assign]
    forged.manifest_for = good.manifest_for  # type: ignore[method-assign]
    produce(forged, flavour=5)
    restored = restore(
        scene, request("bad", "good", **trusting(), budgets=replace(QUICK, recovery=5.0))
    )
    assert {"manifest.digest-mismatch"} == set(restored.reasons)
    assert 12 == restored.reused


def test_the_two_manifest_tracks_exclude_each_other() -> None:
    """KVCS-5-2: exactly one exists."""
    scene = Scene()
    signed = scene.publisher("signed").open(spec(signer=Signer(EDDSA, KID)))
    plain = scene.publisher("plain").open(spec())
    assert MANIFEST_COSE is signed.manifest_track
    assert MANIFEST is plain.manifest_track
    assert 1 == len(signed.publisher.tracks)
