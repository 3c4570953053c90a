"""Judge words on what an enemy sends: an answer each time, and never a breakdown of the judge."""

from __future__ import annotations

import cbor2
import pytest
from kvcs_conformance.judge import JUDGES, Finding

from tests.harness.evidence import SCENARIO, Event, evidence, obj, whole_track
from tests.harness.test_judge_identity import ASKED

MANIFEST_WORDS = (
    "manifest-first",
    "manifest-versions-numbered",
    "manifest-frequent",
    "manifest-consistent",
    "manifest-signed",
    "digests-listed",
    "digests-kept",
    "segments-contiguous",
    "block-keys-listed",
    "tracks-named",
    "listed-when-changed",
    "names-silent",
    "promise-kept",
)
_MANIFESTS = [
    b"",
    b"\xff",
    b"[" * 90000,
    b'{"segments": ' + b"[" * 70 + b"]" * 70 + b"}",
    b'{"x": NaN}',
    b'{"segments": 5}',
    b'{"segments": [5]}',
    b'{"segments": [{"object_digests": 5}]}',
    b'{"segments": [{"tracks": 5, "segment": [], "object_digests": {"k.raw.s0": [0]}}]}',
    b'{"segments": [{"tracks": ["\\ud800"], "segment": 0, "object_digests": {"k.raw.s0": [[0]]}}]}',
]


@pytest.mark.parametrize("octets", _MANIFESTS)
@pytest.mark.parametrize("track", ["manifest", "manifest.cose"])
def test_no_manifest_breaks_a_judge(octets: bytes, track: str) -> None:
    """Whatever a peer sends as its manifest, every judge word that reads one has an answer."""
    signed = cbor2.dumps([b"", {}, octets, b""])
    version = obj(0, 0, track=track, octets=octets if track == "manifest" else signed)
    told: list[Event] = [("kvcs:asked-to-publish", ASKED)]
    case = evidence(
        "publisher",
        {"consumer": [version, *whole_track(), version], "publisher": told},
        scenario={**SCENARIO, "manifest": track},
        producer={"kid": "", "ed25519": "00" * 32},
    )
    for word in MANIFEST_WORDS:
        found = list(JUDGES[word].function(case, {}))
        assert all(isinstance(one, Finding) for one in found)
