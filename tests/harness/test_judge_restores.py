"""Judge words about restores: reuse, recovery, prefixes and requests, on hand-made evidence."""

from __future__ import annotations

from typing import Any

from kvcs_conformance.judge import JUDGES, Outcome
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import NAMESPACE, OTHER, Event, evidence, message, obj, report

Findings = set[tuple[Outcome, Reason | None]]

UPHELD: Findings = {(Outcome.UPHELD, None)}
UNSEEN: Findings = {(Outcome.UNSEEN, Reason.NO_EVIDENCE)}
DONE = report("done")
KEYS = ["aa" * 32, "bb" * 32, NAMESPACE[3]]
RESTORE = report(
    "restore",
    scope_id=NAMESPACE[1],
    compat_id=NAMESPACE[2],
    block_keys=KEYS,
    block_tokens=4,
    prompt_tokens=13,
    layers=[0, 1],
)
ALL_SENT = [obj(layer, block, sent=True) for layer in (0, 1) for block in (0, 1)]
MINE = NAMESPACE[4]
PLACE: dict[str, Any] = {"track": "k.raw.s0", "layer": 1, "block": 0}


def judged(
    word: str, reports: list[Event], sent: list[Event] = ALL_SENT, **arguments: Any
) -> Findings:
    """The outcomes and reasons of a judge word over a consumer's reports and the relay's log."""
    facts = arguments.pop("facts", {})
    logs = {"consumer": reports, "relay": sent}
    case = evidence("consumer", logs, publishers=("publisher", "second"), **facts)
    return {(f.outcome, f.reason) for f in JUDGES[word].function(case, arguments)}


def against(reason: Reason) -> Findings:
    return {(Outcome.CONTRADICTED, reason)}


def reused(tokens: int, **more: Any) -> Event:
    return report("reused-tokens", tokens=tokens, **more)


def usable(layer: int, **more: Any) -> Event:
    return report("layer-usable", layer=layer, **more)


def accepted(layer: int = 1, block: int = 0, **more: Any) -> Event:
    place = {"track": "k.raw.s0", "layer": layer, "block": block}
    return report("object-accepted", **{**place, "publication": MINE, "label": "a", **more})


def test_reuses() -> None:
    """Exactly the tokens of so many blocks; more, fewer, or ones that never came contradict."""
    word, wrong = "reuses", against(Reason.WRONG_REUSE)
    assert judged(word, [RESTORE, reused(8)], blocks=2) == UPHELD
    assert judged(word, [RESTORE, reused(0)], [], blocks=0) == UPHELD
    assert judged(word, [RESTORE, reused(4)], blocks=2) == wrong
    assert judged(word, [RESTORE, reused(8)], blocks=1) == wrong
    assert judged(word, [RESTORE, reused(8)], ALL_SENT[:3], blocks=2) == wrong
    assert judged(word, [RESTORE, reused(8)], [], blocks=2) == wrong
    assert judged(word, [RESTORE, reused(0)], [asks("Fetch")], blocks=2) == wrong
    assert judged(word, [RESTORE, reused(0)], [], blocks=2) == UNSEEN
    assert judged(word, [RESTORE], blocks=2) == UNSEEN
    assert judged(word, [reused(8)], blocks=2) == UNSEEN


def test_restores_are_told_apart_by_label() -> None:
    """With `of`, only the reports of that step count."""
    first = [report("restore", **{**RESTORE[1], "label": "a"}), reused(4, label="a")]
    second = [report("restore", **{**RESTORE[1], "label": "b"}), reused(8, label="b")]
    assert judged("reuses", [*first, *second], blocks=1, of="a") == UPHELD
    assert judged("reuses", [*first, *second], blocks=2, of="b") == UPHELD
    assert judged("reuses", [*first, *second], blocks=2, of="c") == UNSEEN


def test_recomputes_rest() -> None:
    """What is recomputed begins no later than reuse ends, and ends with the prompt
    (KVCS-7.4-4)."""
    word = "recomputes-rest"
    rest = report("recompute", first_token=4, end_token=13)
    told = report("done", compute_from=4, prompt_tokens=13)
    assert judged(word, [RESTORE, reused(4), rest, DONE]) == UPHELD
    assert judged(word, [RESTORE, reused(4), told]) == UPHELD
    assert judged(word, [RESTORE, reused(8), rest, DONE]) == UPHELD
    assert judged(word, [RESTORE, reused(3), rest, DONE]) == against(Reason.WRONG_REUSE)
    short = report("recompute", first_token=4, end_token=12)
    assert judged(word, [RESTORE, reused(4), short, DONE]) == against(Reason.WRONG_REUSE)
    assert judged(word, [RESTORE, reused(4), DONE]) == UNSEEN
    assert judged(word, [RESTORE, reused(4), rest]) == UNSEEN


def test_segments_not_used() -> None:
    """A layer of the segment, or tokens behind its first block, contradict (KVCS-2-3)."""
    word, facts = "segments-not-used", {"scenario": {"blocks": 2, "appended": [1]}}
    bad = against(Reason.USED_BAD_PUBLICATION)
    assert judged(word, [RESTORE, reused(8), DONE], segments=[1], facts=facts) == UPHELD
    assert judged(word, [RESTORE, reused(12), DONE], segments=[1], facts=facts) == bad
    later = usable(0, segment=1)
    assert judged(word, [RESTORE, later, reused(8), DONE], segments=[1], facts=facts) == bad
    assert judged(word, [RESTORE, reused(8)], segments=[1], facts=facts) == UNSEEN


def test_publication_conflict() -> None:
    """Two payloads sent at one Location: discarded upholds, reused contradicts (MOQT-R180)."""
    word = "publication-conflict"
    twice = [obj(1, 0, sent=True), obj(1, 0, sent=True, octets=b"x" * 80)]
    gone = report("publication-discarded", publication=MINE)
    assert judged(word, [gone, reused(0)], twice) == UPHELD
    used = against(Reason.USED_BAD_PUBLICATION)
    assert judged(word, [reused(8, publication=MINE)], twice) == used
    assert judged(word, [reused(0)], twice) == UNSEEN
    assert judged(word, [gone, reused(0)]) == UNSEEN


def test_object_implausible() -> None:
    """Accepting departs, never fails; discarding upholds (reading A6)."""
    word = "object-implausible"
    discarded = report("object-discarded", **PLACE)
    assert judged(word, [discarded, DONE], **PLACE) == UPHELD
    assert judged(word, [accepted()], **PLACE) == {(Outcome.DEPARTS, Reason.USED_IMPLAUSIBLE)}
    assert judged(word, [DONE], **PLACE) == UNSEEN
    assert judged(word, [accepted()], [], **PLACE) == UNSEEN


def test_layer_usable_last() -> None:
    """Usable before the last Object of the layer contradicts (KVCS-7.4-2)."""
    word = "layer-usable-last"
    whole = [accepted(block=0), accepted(block=1)]
    assert judged(word, [*whole, usable(1)], layer=1) == UPHELD
    early = [whole[0], usable(1), whole[1]]
    assert judged(word, early, layer=1) == against(Reason.USED_BAD_OBJECT)
    assert judged(word, whole, layer=1) == UNSEEN


def test_objects_counted_once() -> None:
    """The same Object accepted twice in one restore contradicts (KVCS-7.2-3)."""
    word = "objects-counted-once"
    assert judged(word, [accepted(), accepted(block=1), DONE]) == UPHELD
    assert judged(word, [accepted(), accepted(label="b"), DONE]) == UPHELD
    assert judged(word, [accepted(), accepted()]) == against(Reason.COUNTED_TWICE)
    assert judged(word, [accepted()]) == UNSEEN
    assert judged(word, [DONE]) == UNSEEN


def test_ends_within() -> None:
    """Done later, or not while a step waited long enough, contradicts (KVCS-7.4-5)."""
    word = "ends-within"
    assert judged(word, [RESTORE, DONE], within="1s") == UPHELD
    assert judged(word, [RESTORE, reused(0), DONE], within="1ms") == against(Reason.WAITED)
    late = {"steps": [{"outcome": "timeout", "at": 0.5, "waited": "5 s for done"}]}
    assert judged(word, [RESTORE], within="4s", facts=late) == against(Reason.WAITED)
    assert judged(word, [RESTORE], within="9s", facts=late) == UNSEEN
    assert judged(word, [RESTORE], within="1s") == UNSEEN
    assert judged(word, [DONE], within="1s") == UNSEEN


def asks(kind: str, *, publication: str = MINE, **parameters: Any) -> Event:
    track = {"namespace": [*NAMESPACE[:4], publication], "name": "k.raw.s0"}
    return message(kind, track=track, parameters=parameters)


def location_filter(kind: int, start: int, delta: int = 0, end: int = 0) -> dict[str, int]:
    return {"type_": kind, "start_group": start, "end_group_delta": delta, "end_object": end}


def test_asked_again() -> None:
    """A second request that covers the Object upholds; none, once done, contradicts
    (KVCS-7.4-4)."""
    word, lost = "asked-again", against(Reason.NOT_RECOVERED)
    first = asks("Fetch", location_filter=location_filter(3, 0, 1))
    again = asks("Fetch", location_filter=location_filter(4, 1, 0, 0))
    other = asks("Fetch", location_filter=location_filter(4, 0, 0, 5))
    later = asks("Fetch", location_filter=location_filter(2, 2))
    assert judged(word, [DONE], [first, again], **PLACE) == UPHELD
    assert judged(word, [DONE], [asks("Subscribe"), first], **PLACE) == UPHELD
    assert judged(word, [DONE], [first, asks("Fetch")], **PLACE) == UPHELD
    assert judged(word, [DONE], [first, other], **PLACE) == lost
    assert judged(word, [DONE], [first, later], **PLACE) == lost
    assert judged(word, [], [first], **PLACE) == UNSEEN
    assert judged(word, [DONE], [], **PLACE) == UNSEEN
    second = asks("Fetch", publication=OTHER[4])
    assert judged(word, [DONE], [first, second], publisher="second", **PLACE) == UPHELD
    assert judged(word, [DONE], [first, again], publisher="second", **PLACE) == lost
    assert judged(word, [DONE], [first, again], at="relay-2", **PLACE) == lost


def test_stops_before_gap() -> None:
    """The layer usable, or tokens reused, contradict."""
    word, used = "stops-before-gap", against(Reason.USED_BAD_OBJECT)
    assert judged(word, [usable(0), reused(0), DONE], layer=1) == UPHELD
    assert judged(word, [usable(1), reused(0), DONE], layer=1) == used
    assert judged(word, [reused(4), DONE], layer=1) == used
    assert judged(word, [reused(0)], layer=1) == UNSEEN


def probe(*prefix: str) -> Event:
    return message("SubscribeNamespace", prefix=list(prefix))


FIELDS = ["6b7663732d31", *NAMESPACE[1:3]]


def test_asks_computed_prefixes() -> None:
    """Fields that do not follow from the prompt contradict, and so does another order
    (KVCS-3.1-6, KVCS-7.1-4)."""
    word = "asks-computed-prefixes"
    shape, order = against(Reason.REQUEST_SHAPE), against(Reason.REQUEST_ORDER)
    whole, two, one = (probe(*FIELDS, key) for key in reversed(KEYS))
    assert judged(word, [RESTORE], [whole]) == UPHELD
    assert judged(word, [RESTORE], [whole, two, one], **{"down-to": 1}) == UPHELD
    assert judged(word, [RESTORE], [whole, whole, two, one, one], **{"down-to": 1}) == UPHELD
    assert judged(word, [RESTORE], [whole, one], **{"down-to": 1}) == UPHELD | order
    assert judged(word, [RESTORE], [two, whole], **{"down-to": 2}) == order
    assert judged(word, [RESTORE], [probe(*FIELDS, "cc" * 32)]) == shape
    assert judged(word, [RESTORE], [whole, probe(*FIELDS[:2])]) == shape
    assert judged(word, [RESTORE], [probe("4b5643532d31", *FIELDS[1:], KEYS[2])]) == shape
    assert judged(word, [RESTORE], []) == UNSEEN


def clauses(sent: list[Event], **arguments: Any) -> dict[Outcome, tuple[str, ...]]:
    """By outcome, the requirements that the findings about the asked prefixes name."""
    case = evidence("consumer", {"consumer": [RESTORE], "relay": sent})
    findings = JUDGES["asks-computed-prefixes"].function(case, arguments)
    return {finding.outcome: finding.requires for finding in findings}


def test_a_wrong_prefix_speaks_of_the_clause_of_its_field_alone() -> None:
    """Number, lengths, encoding and values of the fields have a clause each (KVCS-3.1-1,
    KVCS-3.1-2, KVCS-3.1-3, KVCS-3.1-4, KVCS-3.1-6, KVCS-3.1-7), besides KVCS-7.1-1."""
    version, scope, compat, key = *FIELDS, KEYS[2]
    for prefix, clause in (
        ((version, scope, compat + key), "KVCS-3.1-1"),
        ((version, scope, compat, key, MINE), "KVCS-3.1-1"),
        ((version, scope[2:], compat, key), "KVCS-3.1-2"),
        (("4b5643532d31", scope, compat, key), "KVCS-3.1-3"),
        ((version, *(part.encode().hex() for part in (scope, compat, key))), "KVCS-3.1-4"),
        ((version, scope, compat, "cc" * 32), "KVCS-3.1-6"),
        ((version, scope), "KVCS-3.1-7"),
    ):
        assert clauses([probe(*prefix)]) == {Outcome.CONTRADICTED: (clause, "KVCS-7.1-1")}


def test_a_wrong_order_of_prefixes_speaks_of_the_first_or_of_the_rest() -> None:
    """The longest prefix must come first (KVCS-7.1-1), and then each shorter one (KVCS-7.1-4)."""
    whole, two, one = (probe(*FIELDS, prefix) for prefix in reversed(KEYS))
    longest, shorter = ("KVCS-7.1-1",), ("KVCS-7.1-4",)
    first_right = {Outcome.UPHELD: longest, Outcome.CONTRADICTED: shorter}
    assert clauses([whole, one], **{"down-to": 1}) == first_right
    assert clauses([whole], **{"down-to": 1}) == first_right
    assert clauses([two, one], **{"down-to": 1}) == {Outcome.CONTRADICTED: longest}
    both = {Outcome.CONTRADICTED: (*longest, *shorter)}
    assert clauses([one, two, whole], **{"down-to": 1}) == both


def told(*suffix: str) -> Event:
    return message("Namespace", sent=True, suffix=list(suffix))


def test_asks_only_namespaces_of_kvcs() -> None:
    """A request under a namespace of another shape contradicts (KVCS-3.1-1, KVCS-7.1-2)."""
    word = "asks-only-namespaces-of-kvcs"
    odd = message("Subscribe", track={"namespace": NAMESPACE[:4], "name": "manifest"})
    assert judged(word, [DONE], [told("44" * 15), asks("Subscribe")]) == UPHELD
    assert judged(word, [], [told(), odd]) == against(Reason.NAMESPACE_SHAPE)
    assert judged(word, [DONE], [told("44" * 16)]) == UNSEEN
    assert judged(word, [], [told()]) == UNSEEN


def test_publications_asked() -> None:
    """Only what these publishers publish may be asked for (KVCS-3.1-7)."""
    word = "publications-asked"
    mine, yours = asks("Fetch"), asks("Fetch", publication=OTHER[4])
    assert judged(word, [RESTORE, DONE], [mine], publishers=["publisher"]) == UPHELD
    assert judged(word, [RESTORE, DONE], [], publishers=[]) == UPHELD
    shape = against(Reason.NAMESPACE_SHAPE)
    assert judged(word, [RESTORE, DONE], [mine, yours], publishers=["publisher"]) == shape
    assert judged(word, [RESTORE], [mine], publishers=["publisher"]) == UNSEEN


def test_names_tell_nothing() -> None:
    """The model's name in a field or a track name contradicts (KVCS-11-3)."""
    word = "names-tell-nothing"
    leaky = probe(*FIELDS[:2], b"tiny-gqa".hex(), KEYS[2])
    assert judged(word, [], [probe(*FIELDS, KEYS[2]), asks("Fetch")]) == UPHELD
    assert judged(word, [], [leaky]) == against(Reason.NAMESPACE_LEAKED)
    assert judged(word, [], []) == UNSEEN


def wants(track: str, publication: str = MINE) -> Event:
    return message("Subscribe", track={"namespace": [publication], "name": track})


def test_selects_one_encoding() -> None:
    """k and v of one codec, or one kv; anything else contradicts (KVCS-3.2-5)."""
    word, shape = "selects-one-encoding", against(Reason.REQUEST_SHAPE)
    pair = [wants("k.raw.s0"), wants("v.raw.s0")]
    assert judged(word, [DONE], [wants("manifest"), *pair]) == UPHELD
    assert judged(word, [DONE], [wants("kv.zstd.s0")]) == UPHELD
    assert judged(word, [DONE], []) == UPHELD
    assert judged(word, [DONE], [*pair, wants("kv.zstd.s0")]) == shape
    assert judged(word, [DONE], [wants("k.raw.s0"), wants("v.zstd.s0")]) == shape
    assert judged(word, [DONE], [*pair, wants("kv.zstd.s0", OTHER[4])]) == UPHELD
    assert judged(word, [], pair) == UNSEEN


def test_tracks_not_asked() -> None:
    """Asking for one of them contradicts (KVCS-3.2-2)."""
    word = "tracks-not-asked"
    assert judged(word, [DONE], [wants("k.raw.s0")], tracks=["k.foo.s0"]) == UPHELD
    asked = judged(word, [], [wants("k.foo.s0")], tracks=["k.foo.s0"])
    assert asked == against(Reason.REQUEST_SHAPE)
    assert judged(word, [], [], tracks=["k.foo.s0"]) == UNSEEN


def test_joins_manifest() -> None:
    """Next Object and a fill of the current Group (KVCS-7.2-6)."""
    word, live = "joins-manifest", {"type_": 5}

    def join(**parameters: Any) -> list[Event]:
        return [message("Subscribe", track={"name": "manifest"}, parameters=parameters)]

    fill = {"location_filter": {"type_": 1, "start_group": 1}}
    shape = against(Reason.REQUEST_SHAPE)
    assert judged(word, [], join(location_filter=live, fill=fill)) == UPHELD
    assert judged(word, [], join(location_filter=live)) == shape
    whole = {"location_filter": {"type_": 2}}
    assert judged(word, [], join(location_filter=live, fill=whole)) == shape
    assert judged(word, [], [wants("k.raw.s0")]) == UNSEEN


def test_filters_blocks() -> None:
    """OBJECTID_FILTER 0 .. n-1 where filters are taken, none elsewhere (KVCS-7.3-4)."""
    word, shape = "filters-blocks", against(Reason.REQUEST_SHAPE)
    span = location_filter(3, 0, 1)

    def fetch(*filters: dict[str, Any]) -> list[Event]:
        more: dict[str, Any] = {"range_filters": list(filters)} if filters else {}
        return [asks("Fetch", location_filter=span, **more)]

    right = {"type_": 0x26, "ranges": [[0, 1]]}
    assert judged(word, [], fetch(right), blocks=2) == UPHELD
    assert judged(word, [], fetch(), blocks=0) == UPHELD
    assert judged(word, [], fetch(), blocks=2) == shape
    assert judged(word, [], fetch(right), blocks=0) == shape
    assert judged(word, [], fetch({**right, "ranges": [[0, 2]]}), blocks=2) == shape
    assert judged(word, [], fetch({**right, "type_": 0x25}), blocks=2) == shape
    repair = [asks("Fetch", location_filter=location_filter(4, 0, 1, 0))]
    assert judged(word, [], repair, blocks=2) == UNSEEN


def test_closes_session() -> None:
    """Closed by the consumer with the code upholds; done without it contradicts (MOQT-R148)."""
    word = "closes-session"

    def closed(code: int, *, by_peer: bool = True) -> Event:
        return ("moqt:session_closed", {"code": code, "by_peer": by_peer})

    absent = against(Reason.CLOSE_ABSENT)
    assert judged(word, [], [closed(3)], code=3) == UPHELD
    assert judged(word, [DONE], [closed(0)], code=3) == absent
    assert judged(word, [DONE], [closed(3, by_peer=False)], code=3) == absent
    assert judged(word, [], [], code=3) == UNSEEN


def on_stream(event: Event, stream: int) -> Event:
    return (event[0], {**event[1], "stream": stream})


def test_cancels_request() -> None:
    """A stop or a reset on the request's stream upholds, elsewhere not (MOQT-R146)."""
    word, track = "cancels-request", "k.raw.s0"
    fetch = on_stream(asks("Fetch"), 8)
    stop = ("moqt:stop_received", {"stream": 8, "code": 1})
    reset = ("moqt:reset_received", {"stream": 8, "code": 1})
    elsewhere = ("moqt:stop_received", {"stream": 11, "code": 1})
    assert judged(word, [], [fetch, stop], track=track) == UPHELD
    assert judged(word, [], [fetch, reset], track=track) == UPHELD
    wrong = against(Reason.END_WRONG)
    assert judged(word, [DONE], [fetch, elsewhere], track=track) == wrong
    assert judged(word, [], [fetch], track=track) == UNSEEN
    assert judged(word, [DONE], [], track=track) == UNSEEN


def test_waits_as_told() -> None:
    """Asked again before the Retry Interval is over contradicts (MOQT-R073)."""
    word = "waits-as-told"
    refused = message("RequestError", sent=True, code=9, retry_interval=3)
    early, late = [refused, asks("Fetch")], [refused, obj(0, 0, sent=True), asks("Fetch")]
    told = {"track": "k.raw.s0", "retry": "2ms"}
    assert judged(word, [], late, **told) == UPHELD
    assert judged(word, [], early, **told) == against(Reason.REQUEST_ORDER)
    assert judged(word, [], [refused], **told) == UNSEEN
    assert judged(word, [], [asks("Fetch")], **told) == UNSEEN


def test_objects_sent_once() -> None:
    """The same Object sent twice, by whatever request, contradicts (KVCS-7.2-3)."""
    word = "objects-sent-once"
    manifests = [obj(0, 0, track="manifest", octets=b"{}", sent=True)] * 2
    assert judged(word, [DONE], [*ALL_SENT, *manifests]) == UPHELD
    again = obj(1, 0, sent=True, via="fetch")
    assert judged(word, [], [*ALL_SENT, again]) == against(Reason.OBJECT_DUPLICATE)
    assert judged(word, [], ALL_SENT) == UNSEEN
    assert judged(word, [DONE], manifests) == UNSEEN
