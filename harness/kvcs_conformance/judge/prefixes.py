"""Judge words for how a consumer finds publications, by the log of our relays before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.restores import CONSUMER, LABEL, NUMBER, RELAY, asked, finished, wanted
from kvcs_conformance.verdicts import Reason

PROTOCOL = b"kvcs-1".hex()
LENGTHS = (6, 16, 32, 32, 16)
"""Octets of the five fields (KVCS-3.1-2)."""


@judge("asks-longest-prefix-first", publisher=NODE)
def asks_longest_prefix_first(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The first SUBSCRIBE_NAMESPACE of the consumer has the first four fields of the publication,
    which is anchored at the whole prompt, and none has fewer than four."""
    name = arguments.get("publisher", "publisher")
    right = evidence.facts["publications"][name]["namespace"][:4]
    probes = list(evidence.messages(RELAY, "SubscribeNamespace"))
    if not probes:
        yield unseen("no SUBSCRIBE_NAMESPACE was sent")
        return
    wide = next((entry for entry in probes if len(entry[1]["prefix"]) < len(right)), None)
    first = probes[0] if probes[0][1]["prefix"] != right else None
    if wrong := wide or first:
        yield contradicted(
            Reason.REQUEST_SHAPE,
            "SUBSCRIBE_NAMESPACE asks for something else than the whole prompt first",
            expected="/".join(right),
            observed="/".join(wrong[1]["prefix"]),
            record=wrong[0],
            octets=wrong[0].data.get("raw", ""),
        )
    else:
        yield upheld(f"the longest prefix first, {len(probes)} asked in all", probes[0][0])


@judge("asks-computed-prefixes", of=LABEL, down_to=NUMBER)
def asks_computed_prefixes(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every SUBSCRIBE_NAMESPACE has four fields, "kvcs-1", the Scope ID, the Compatibility ID and
    a Block Key that follow from scope key, descriptor and tokens; with `down-to`, the prefixes are
    asked one block shorter each time, from the whole prompt down to so many blocks."""
    want = wanted(evidence, arguments)
    probes = list(asked(evidence, "SubscribeNamespace"))
    if want is None or not probes:
        yield unseen("no SUBSCRIBE_NAMESPACE was sent")
        return
    fields = [PROTOCOL, want.data["scope_id"], want.data["compat_id"]]
    keys = want.data["block_keys"]
    for record, message in probes:
        prefix = message["prefix"]
        if prefix[:3] != fields or len(prefix) != 4 or prefix[3] not in keys:
            yield contradicted(
                Reason.REQUEST_SHAPE,
                "SUBSCRIBE_NAMESPACE has other fields than scope key, descriptor and tokens give",
                expected="/".join([*fields, "a Block Key of the prompt"]),
                observed="/".join(prefix),
                record=record,
                octets=record.data.get("raw", ""),
                requires=(*_prefix_clauses(prefix, fields), "KVCS-7.1-1"),
            )
            return
    # The first asking of each: who has several sessions asks on all of them.
    depths = list(dict.fromkeys(keys.index(message["prefix"][3]) + 1 for _, message in probes))
    right = list(range(len(keys), arguments.get("down-to", len(keys)) - 1, -1))
    if "down-to" in arguments and depths != right:
        clauses = ["KVCS-7.1-1"] if depths[0] != right[0] else []
        if depths != list(range(depths[0], right[-1] - 1, -1)):
            clauses.append("KVCS-7.1-4")
        yield contradicted(
            Reason.REQUEST_ORDER,
            "the prefixes were not asked one block shorter each time",
            expected=f"prefixes of {', '.join(map(str, right))} blocks",
            observed=f"of {', '.join(map(str, depths))}",
            record=probes[-1][0],
            requires=tuple(clauses),
        )
        if "KVCS-7.1-1" not in clauses:
            held = upheld("the whole prompt was asked for first", probes[0][0])
            yield replace(held, requires=("KVCS-7.1-1",))
    else:
        yield upheld(f"prefixes of {', '.join(map(str, depths))} blocks asked", probes[0][0])


def _prefix_clauses(prefix: list[str], fields: list[str]) -> tuple[str, ...]:
    """The requirements on a namespace that a prefix breaks whose first fields should be these."""
    if len(prefix) < 4 and prefix == fields[: len(prefix)]:
        return ("KVCS-3.1-7",)
    if len(prefix) != 4:
        return ("KVCS-3.1-1",)
    lengths = tuple(len(field) // 2 for field in prefix)
    clauses = []
    if prefix[0] != PROTOCOL:
        clauses.append("KVCS-3.1-3")
    if lengths[1:] == tuple(2 * length for length in LENGTHS[1:4]):
        clauses.append("KVCS-3.1-4")
    elif lengths[1:] != LENGTHS[1:4]:
        clauses.append("KVCS-3.1-2")
    return tuple(clauses) or ("KVCS-3.1-6",)


def _well_formed(namespace: list[str]) -> bool:
    return tuple(len(field) // 2 for field in namespace) == LENGTHS and namespace[0] == PROTOCOL


@judge("asks-only-namespaces-of-kvcs", of=LABEL)
def asks_only_namespaces_of_kvcs(
    evidence: Evidence, arguments: dict[str, Any]
) -> Iterator[Finding]:
    """Told of a namespace that has not the five fields of KVCS, the consumer asks nothing of it.
    Counts once the consumer is done."""
    told = [
        record
        for record, message in evidence.messages(RELAY, "Namespace", sent=True)
        if not _suffix_right(message["suffix"])
    ]
    wrong = next(
        (
            (record, message)
            for record, message in asked(evidence, "Subscribe", "Fetch")
            if not _well_formed(message["track"]["namespace"])
        ),
        None,
    )
    if wrong:
        yield contradicted(
            Reason.NAMESPACE_SHAPE,
            "a namespace of another shape was asked for a track",
            expected="nothing asked of it: five fields of 6, 16, 32, 32 and 16 octets",
            observed="/".join(wrong[1]["track"]["namespace"]),
            record=wrong[0],
            octets=wrong[0].data.get("raw", ""),
        )
    elif not told:
        yield unseen("the consumer was told of no such namespace")
    elif not finished(evidence, arguments):
        yield unseen("the consumer did not come to its end")
    else:
        yield upheld("told of such a namespace, and asked nothing of it", told[0])


def _suffix_right(suffix: list[str]) -> bool:
    return [len(field) // 2 for field in suffix] == [16]


@judge("publications-asked", required=("publishers",), publishers={"type": "array"}, of=LABEL)
def publications_asked(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Tracks are asked for of the publications of these publishers only, and, without `publishers`
    in the list, of none at all. Counts once the consumer is done."""
    right = {
        evidence.facts["publications"][name]["namespace"][-1]: name
        for name in arguments["publishers"]
    }
    found: dict[str, str] = {}
    for record, message in asked(evidence, "Subscribe", "Fetch"):
        publication = message["track"]["namespace"][-1]
        if publication not in right:
            yield contradicted(
                Reason.NAMESPACE_SHAPE,
                "a publication was asked that is not of the prefix",
                expected=f"publications of {', '.join(arguments['publishers']) or 'nobody'}",
                observed="/".join(message["track"]["namespace"]),
                record=record,
                octets=record.data.get("raw", ""),
            )
            return
        found[publication] = right[publication]
    done = finished(evidence, arguments)
    if done is None or not list(evidence.reports(CONSUMER, "restore")):
        yield unseen("the consumer did not come to its end")
    else:
        yield upheld(f"asked: {', '.join(sorted(found.values())) or 'no publication'}", done)


@judge("names-tell-nothing", of=LABEL)
def names_tell_nothing(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Names that the consumer asks for hold neither the model's name nor token ids: their fields
    have the lengths of keyed identifiers, and track names are of the grammar."""
    names = [
        (record, message.get("prefix") or message["track"]["namespace"], message.get("track"))
        for record, message in asked(evidence, "SubscribeNamespace", "Subscribe", "Fetch")
    ]
    if not names:
        yield unseen("the consumer asked for nothing")
        return
    for record, fields, track in names:
        text = "/".join(fields) + (track["name"].encode().hex() if track else "")
        secret = next((word for word in _secrets(evidence) if word in text), None)
        if secret:
            yield contradicted(
                Reason.NAMESPACE_LEAKED,
                "a name tells what the cache is of",
                expected="keyed identifiers",
                observed=f"{bytes.fromhex(secret).decode()!r} in {text}",
                record=record,
                octets=record.data.get("raw", ""),
            )
            return
    yield upheld(f"{len(names)} requests with names that tell nothing", names[0][0])


def _secrets(evidence: Evidence) -> list[str]:
    """What must not stand in a name, in hex: the parts of the model's name."""
    from kvcs_conformance.scenario import MODEL

    return [part.encode().hex() for part in (MODEL, *MODEL.split("/"))]
