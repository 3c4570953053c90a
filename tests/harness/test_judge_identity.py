"""Judge words for namespaces, on hand-made evidence; the identities are those of kvsp-p0 §10."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from kvcs_conformance.judge import JUDGES, Outcome
from kvcs_conformance.judge.identity import block_keys, identity
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import Event, evidence, message, obj, report

DESCRIPTOR = {
    "adapters": [],
    "attention": "gqa",
    "block_tokens": 4,
    "byte_order": "little",
    "dtype": "bf16",
    "head_dim": 128,
    "kv_heads": 8,
    "kvsp_profile": "p0",
    "layers": 2,
    "layout": "thd",
    "model": {
        "id": "example/tiny-gqa",
        "weights": "sha256:64b91ca7fe644b145a842e1006d9709c2178300072b068ca382399e95536e646",
    },
    "position": {
        "applied": True,
        "base": "10000",
        "origin": 0,
        "rotary_dim": 128,
        "scaling": None,
        "type": "rope",
    },
    "quant": None,
    "tokenizer": "sha256:5b5df56ea0c5a2ad145c08f6f3f2281ff911e75221579196527f885646a3003d",
    "v_head_dim": 128,
    "windows": None,
}
ASKED = {
    "label": "first",
    "scope_key": bytes(range(32)).hex(),
    "descriptor": DESCRIPTOR,
    "tokens": list(range(1, 11)),
    "salt": "",
    "blocks": 2,
}
FIELDS = [
    b"kvcs-1".hex(),
    "6d1c6481cd428737da312c089db3832a",
    "208d109def3e615b8bceb9e30c6ebdf4081b409f115a942cb805383e02cfbb11",
    "8c0c73e2722f05dee4619cd33739eebeb15e883048b5bccc8b03b4f16bf375d2",
]
KEY_0 = "998eb2d9e89244c215ee183ad5e583b6d85a94452e8297e524bc032556aebf5e"
FENCE: Event = ("kvcs:fence", {"label": "fence"})


def announced(*fields: str, number: int = 0) -> Event:
    """PUBLISH_NAMESPACE of these fields, by default those of the content and an ID."""
    return message("PublishNamespace", namespace=list(fields or (*FIELDS, ident(number))))


def ident(number: int) -> str:
    """A Publication ID that looks random."""
    return f"{(number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC834 % 2**128:032x}"


def found(
    word: str, seen: Iterable[Event], asked: Iterable[dict[str, Any]] = (ASKED,), **arguments: Any
) -> list[tuple[Outcome, Reason | None, tuple[str, ...]]]:
    """What a word says of what the consumer saw, when the publisher was asked for this."""
    told = [report("asked-to-publish", **one) for one in asked]
    case = evidence("publisher", {"consumer": list(seen), "publisher": told})
    return [(f.outcome, f.reason, f.requires) for f in JUDGES[word].function(case, arguments)]


def outcomes(word: str, seen: Iterable[Event], **more: Any) -> set[Outcome]:
    return {outcome for outcome, _, _ in found(word, seen, **more)}


def test_identity_of_the_vector() -> None:
    """The judge's own identities are those that the profile gives as test vectors (§10)."""
    assert FIELDS == [field.hex() for field in identity(ASKED) or ()]
    assert [KEY_0, FIELDS[3]] == [key.hex() for key in block_keys(ASKED)]


def test_identity_with_salt() -> None:
    """A salt enters every key of the chain, as the vector with "tenant-7" shows (§10)."""
    salted = {**ASKED, "salt": b"tenant-7".hex()}
    first = "acba6fbb6277018e7273354ed9a2a8ed5d32e223e6767c7dbe262587ad0d5545"
    assert first == block_keys(salted)[0].hex()


@pytest.mark.parametrize(
    ("fields", "clauses"),
    [
        (FIELDS, ("KVCS-6-1", "KVCS-3.1-1")),
        ([*FIELDS, ident(0), "31"], ("KVCS-3.1-1",)),
        ([b"KVCS-1".hex(), *FIELDS[1:], ident(0)], ("KVCS-3.1-3",)),
        ([*FIELDS, "0123456789abcdef"], ("KVCS-3.1-2",)),
        (
            [FIELDS[0], *(one.encode().hex() for one in (*FIELDS[1:], ident(0)))],
            ("KVCS-3.1-4",),
        ),
    ],
)
def test_announced_fully_contradicted(fields: list[str], clauses: tuple[str, ...]) -> None:
    """A prefix, a sixth field, another version, a short field and hexadecimal text each break
    the requirement that speaks of them (KVCS-3.1-1 to KVCS-3.1-4, KVCS-6-1)."""
    expected = [(Outcome.CONTRADICTED, Reason.NAMESPACE_SHAPE, clauses)]
    assert expected == found("announced-fully", [announced(*fields)])


def test_announced_fully_else() -> None:
    """Five right fields uphold; no announcement leaves it open (KVCS-6-1)."""
    assert {Outcome.UPHELD} == outcomes("announced-fully", [announced()])
    assert {Outcome.UNSEEN} == outcomes("announced-fully", [])


def test_identity_computable_upheld() -> None:
    """Fields that follow from what was asked uphold (KVCS-3.1-6, KVCS-2-1)."""
    assert {Outcome.UPHELD} == outcomes("identity-computable", [announced()])


def test_identity_computable_anchor() -> None:
    """The key of the block before the last as Anchor Key contradicts KVCS-2-1."""
    (finding,) = {
        one
        for one in found("identity-computable", [announced(*FIELDS[:3], KEY_0, ident(0))])
        if one[0] is Outcome.CONTRADICTED
    }
    assert (Reason.NAMESPACE_IDENTITY, ("KVCS-2-1", "KVCS-3.1-6")) == finding[1:]


def test_identity_computable_two_as_one() -> None:
    """Two contents under one identity contradict, as far as two were announced (KVCS-3.1-6)."""
    other = {**ASKED, "tokens": [*range(1, 8), 99]}
    seen = [announced(number=0), announced(number=1)]
    assert Outcome.CONTRADICTED in outcomes("identity-computable", seen, asked=[ASKED, other])
    assert Outcome.UNSEEN in outcomes("identity-computable", seen[:1], asked=[ASKED, other])


def test_identity_computable_nothing_to_name() -> None:
    """A prompt under one block is not announced; that counts behind a fence (KVCS-2-1)."""
    short = {**ASKED, "tokens": [1, 2, 3], "blocks": 0}
    assert {Outcome.UPHELD} == outcomes("identity-computable", [FENCE], asked=[short])
    assert {Outcome.UNSEEN} == outcomes("identity-computable", [], asked=[short])
    assert {Outcome.CONTRADICTED} == outcomes("identity-computable", [announced()], asked=[short])


def test_identity_computable_without_canonical_form() -> None:
    """A descriptor that RFC 8785 cannot write is not announced either (KVCS-3.1-6)."""
    large = {**ASKED, "descriptor": {**DESCRIPTOR, "x": 2**53 + 1}}
    assert {Outcome.UPHELD} == outcomes("identity-computable", [FENCE], asked=[large])
    assert {Outcome.CONTRADICTED} == outcomes("identity-computable", [announced()], asked=[large])


def test_publications_apart() -> None:
    """Two productions with two IDs uphold; with one, they contradict behind a fence; one
    production, or namespaces that are not whole, leave it open (KVCS-2-2)."""
    twice = [ASKED, {**ASKED, "label": "again"}]
    both = [announced(number=0), announced(number=1)]
    assert {Outcome.UPHELD} == outcomes("publications-apart", both, asked=twice)
    assert {Outcome.CONTRADICTED} == outcomes(
        "publications-apart", [announced(), FENCE], asked=twice
    )
    assert {Outcome.UNSEEN} == outcomes("publications-apart", [announced()], asked=twice)
    assert {Outcome.UNSEEN} == outcomes("publications-apart", both)
    assert {Outcome.UNSEEN} == outcomes("publications-apart", [announced(*FIELDS)], asked=twice)


def test_publications_apart_other_fields() -> None:
    """Productions of one content whose Anchor Keys differ contradict (KVCS-2-2)."""
    seen = [announced(), announced(*FIELDS[:3], KEY_0, ident(1))]
    assert {Outcome.CONTRADICTED} == outcomes("publications-apart", seen, asked=[ASKED, ASKED])


def test_publications_apart_two_as_one() -> None:
    """Two contents under one identity, each with an ID of its own, deny the identity alone
    (KVCS-2-2, KVCS-3.1-6)."""
    other = {**ASKED, "tokens": [*range(1, 8), 99]}
    seen = [announced(number=0), announced(number=1)]
    expected = [(Outcome.CONTRADICTED, Reason.NAMESPACE_IDENTITY, ("KVCS-3.1-6",))]
    assert expected == found("publications-apart", seen, asked=[ASKED, other])


def ids(values: Iterable[int]) -> list[Event]:
    return [announced(*FIELDS, f"{value:032x}") for value in values]


def test_publication_ids_random() -> None:
    """IDs without a pattern uphold; counted ones, ones that begin alike and too few of them do
    not (KVCS-3.1-5)."""
    many = [ASKED] * 8
    random = [announced(number=i * i) for i in range(8)]
    assert {Outcome.UPHELD} == outcomes("publication-ids-random", random, asked=many)
    counted = ids(int(ident(3), 16) + i for i in range(8))
    assert {Outcome.CONTRADICTED} == outcomes("publication-ids-random", counted, asked=many)
    stamped = ids((0x0190 << 112) + int(ident(i * i), 16) % 2**112 for i in range(8))
    assert {Outcome.CONTRADICTED} == outcomes("publication-ids-random", stamped, asked=many)
    assert {Outcome.UNSEEN} == outcomes("publication-ids-random", random[:7], asked=many[:7])


def test_publication_ids_repeated() -> None:
    """Eight productions with one ID contradict behind a fence (KVCS-3.1-5)."""
    many = [ASKED] * 8
    assert {Outcome.CONTRADICTED} == outcomes(
        "publication-ids-random", [announced(), FENCE], asked=many
    )
    assert {Outcome.UNSEEN} == outcomes("publication-ids-random", [announced()], asked=many)


@pytest.mark.parametrize(
    "fields",
    [
        [*FIELDS, b"tiny-gqa".hex() + "00" * 8],
        [FIELDS[0], bytes(range(16)).hex(), *FIELDS[2:], ident(0)],
        [*FIELDS, "00000001000000020000000300000004"],
        [*FIELDS[:3], DESCRIPTOR["tokenizer"].removeprefix("sha256:"), ident(0)],  # type: ignore[attr-defined]
    ],
)
def test_names_silent_contradicted(fields: list[str]) -> None:
    """Model name, scope key, tokens and tokenizer in a field are told (KVCS-11-3)."""
    assert {Outcome.CONTRADICTED} == outcomes("names-silent", [announced(*fields)])


def test_names_silent_tracks() -> None:
    """A codec that is named after the model is told, too; right names uphold (KVCS-11-3)."""

    def listing(track: str) -> Event:
        text = json.dumps({"segments": [{"tracks": [track]}]}).encode()
        return obj(0, 0, track="manifest", octets=text)

    assert {Outcome.UPHELD} == outcomes("names-silent", [announced(), listing("k.raw.s0")])
    assert {Outcome.CONTRADICTED} == outcomes(
        "names-silent", [announced(), listing("k.tiny-gqa.s0")]
    )
    assert {Outcome.UNSEEN} == outcomes("names-silent", [])
