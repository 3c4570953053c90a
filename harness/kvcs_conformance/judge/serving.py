"""Judge words for how a publisher of KVCS serves its subscribers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge.delivery import LABEL, described
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.streams import messages_on, subgroup_streams
from kvcs_conformance.verdicts import Reason


@judge("first-object-marked", required=("of",), of=LABEL)
def first_object_marked(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """FIRST_OBJECT is set on each subgroup stream that begins with block 0, the first Object of a
    layer, and on no other. The subscriptions must have been there before the Objects."""
    for request in evidence.asked(arguments["of"]):
        streams = [one for one in subgroup_streams(evidence, request) if one.objects]
        wrong = next(
            (
                one
                for one in streams
                if bool(one.header.get("first_object")) is not (one.objects[0].object == 0)
            ),
            None,
        )
        if not streams:
            yield unseen(f"{described(request)}: no subgroup stream brought an Object")
        elif wrong is not None:
            begins = wrong.objects[0].object == 0
            yield contradicted(
                Reason.STREAM_FLAG,
                f"{described(request)}: FIRST_OBJECT is wrong on {wrong}",
                expected="set" if begins else "clear",
                observed="clear" if begins else "set",
                record=wrong.record,
            )
        else:
            yield upheld(f"{described(request)}: FIRST_OBJECT right on {len(streams)} streams")


@judge("aliases-differ", required=("of",), of=LABEL)
def aliases_differ(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The SUBSCRIBE_OKs of the step's requests give different Tracks different Track Aliases.
    Needs two Tracks."""
    aliases: dict[int, str] = {}
    for request in evidence.asked(arguments["of"]):
        for record, message in messages_on(evidence, request):
            if message["type"] != "SubscribeOk":
                continue
            alias = message["track_alias"]
            other = aliases.setdefault(alias, request.track)
            if other != request.track:
                yield contradicted(
                    Reason.ALIAS_SHARED,
                    f"{described(request)}: its Track Alias is that of {other}",
                    expected="an alias of its own",
                    observed=f"Track Alias {alias}",
                    record=record,
                )
                return
    if len(set(aliases.values())) < 2:
        yield unseen("fewer than two Tracks got a SUBSCRIBE_OK")
    else:
        yield upheld(f"{len(aliases)} Tracks, {len(aliases)} aliases")
