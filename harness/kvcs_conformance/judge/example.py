"""The encoding example of the text: its octets, and an Object that has to begin with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.payload import FIELDS
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

EXAMPLE = bytes.fromhex(
    "4b564f31 01 01 0000 00000000 00000001 0000000000000004 00000004 0001 0000 00000010"
)
"""The header of KVCS A up to its digest: k, layer 0, block 1, tokens 4 to 7, raw, 16 octets."""
_TRACK, _LOCATION = "k.raw.s0", (0, 1)


@judge("header-of-the-example", at=NODE)
def header_of_the_example(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Object 1 of layer 0 of k.raw.s0 begins with the octets that the text's example has before
    its digest. The scenario needs the example's geometry: blocks of 4 tokens and of 16 octets.
    The digest is that of Data, which is not the example's."""
    for seen in evidence.objects(arguments.get("at", "consumer")):
        if (seen.track, seen.location) != (_TRACK, _LOCATION):
            continue
        octets = seen.head[: len(EXAMPLE)]
        if octets == EXAMPLE:
            yield upheld(f"{_TRACK} {_LOCATION} begins as the example does", seen.record)
            return
        wrong = [name for name, part in FIELDS.items() if part.of(octets) != part.of(EXAMPLE)]
        yield contradicted(
            Reason.PAYLOAD_FIELD,
            f"{_TRACK} {_LOCATION} differs from the example in {', '.join(wrong)}",
            expected=EXAMPLE.hex(),
            observed=octets.hex(),
            record=seen.record,
            octets=octets.hex(),
        )
        return
    yield unseen(f"{_TRACK} {_LOCATION} was not seen")
