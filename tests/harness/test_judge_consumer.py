"""Judge words for consumers, on hand-made evidence."""

from __future__ import annotations

from typing import Any

from kvcs_conformance.judge import JUDGES, Outcome
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import NAMESPACE, OTHER, Event, evidence, message, obj, payload, report

UPHELD = {(Outcome.UPHELD, None)}
UNSEEN = {(Outcome.UNSEEN, Reason.NO_EVIDENCE)}
DONE = report("done")
PLACE: dict[str, Any] = {"track": "k.raw.s0", "layer": 1, "block": 0}
MINE, YOURS = NAMESPACE[4], OTHER[4]


def found(
    word: str, reports: list[Event], *, sent: list[Event] | None = None, **arguments: Any
) -> set[tuple[Outcome, Reason | None]]:
    """The outcomes and reasons of a judge word over a consumer's reports and the relay's log."""
    logs = {"consumer": reports, "relay": [obj(1, 0, sent=True)] if sent is None else sent}
    case = evidence("consumer", logs, publishers=("publisher", "second"))
    return {(f.outcome, f.reason) for f in JUDGES[word].function(case, arguments)}


def against(reason: Reason) -> set[tuple[Outcome, Reason | None]]:
    return {(Outcome.CONTRADICTED, reason)}


def accepted(publication: str = MINE, **more: Any) -> Event:
    return report("object-accepted", **{**PLACE, "publication": publication, **more})


def test_object_not_used() -> None:
    """Discarded upholds; accepted, or its layer usable, contradicts; neither, or never sent, is
    open (KVCS-4-22, KVCS-4-23)."""
    discarded = report("object-discarded", reason="payload.digest-mismatch", **PLACE)
    usable = report("layer-usable", layer=1)
    word = "object-not-used"
    assert found(word, [discarded, DONE], **PLACE) == UPHELD
    assert found(word, [discarded], **PLACE) == UNSEEN
    assert found(word, [DONE], **PLACE) == UNSEEN
    used = against(Reason.USED_BAD_OBJECT)
    assert found(word, [accepted(), DONE], **PLACE) == used
    assert found(word, [discarded, usable, DONE], **PLACE) == used
    assert found(word, [discarded, report("layer-usable", layer=0), DONE], **PLACE) == UPHELD
    assert found(word, [discarded, DONE], sent=[], **PLACE) == UNSEEN


def test_a_bad_object_that_was_used_is_told_with_the_field_that_betrays_it() -> None:
    """Which check it fails, and the octets of the field at their offset, say what to mend
    (KVCS-4-18 to KVCS-4-22)."""
    for name, value, told, offset, octets in (
        ("magic", 1, "magic is 0x00000001, not 0x4b564f31", 0, 4),
        ("layer", 7, "layer is 0x00000007, not 0x00000001", 8, 4),
        ("block", 7, "block is 0x00000007, not 0x00000000", 12, 4),
        ("data_length", 5, "Data Length is 0x00000005, not 0x00000004", 32, 4),
        ("digest", bytes(32), f"Data Digest is 0x{'00' * 32}, not 0x3a6eb0790f39ac87", 36, 32),
        ("flags", 1, "the Object fails a check and was accepted", 0, 72),
    ):
        bad = obj(1, 0, sent=True, octets=payload(1, 0, **{name: value}))
        case = evidence("consumer", {"consumer": [accepted()], "relay": [bad]})
        (finding,) = JUDGES["object-not-used"].function(case, PLACE)
        assert told in finding.text
        assert (finding.offset, len(finding.octets) // 2) == (offset, octets)


def test_object_used() -> None:
    """Accepted upholds; discarded, or done without it, contradicts (KVCS-4-7)."""
    word = "object-used"
    dropped = against(Reason.DROPPED_GOOD_OBJECT)
    assert found(word, [accepted()], **PLACE) == UPHELD
    assert found(word, [report("object-discarded", **PLACE)], **PLACE) == dropped
    assert found(word, [DONE], **PLACE) == dropped
    assert found(word, [DONE], sent=[], **PLACE) == UNSEEN
    assert found(word, [], **PLACE) == UNSEEN


def test_layers_usable() -> None:
    """Exactly the layers; one too many or one too few contradicts, not done is open
    (KVCS-7.4-2)."""
    zero, one = report("layer-usable", layer=0), report("layer-usable", layer=1)
    word = "layers-usable"
    asked = [message("Fetch", track={"name": "k.raw.s0"})]
    assert found(word, [DONE], sent=asked, layers=[0]) == against(Reason.DROPPED_GOOD_OBJECT)
    assert found(word, [DONE], layers=[0]) == UNSEEN
    assert found(word, [zero, DONE], layers=[0]) == UPHELD
    assert found(word, [zero, one], layers=[0]) == against(Reason.USED_BAD_OBJECT)
    assert found(word, [zero, DONE], layers=[0, 1]) == against(Reason.DROPPED_GOOD_OBJECT)
    assert found(word, [zero], layers=[0, 1]) == UNSEEN
    assert found(word, [zero], layers=[0]) == UNSEEN


OPENED = ("kvcs:opened", {"namespace": NAMESPACE, "layer_digests": [["00" * 32], ["01" * 32]]})


def tensors(layer: int, digest: str, publication: str = MINE) -> Event:
    return report("tensors", layer=layer, sha256=[digest], publication=publication)


def test_tensors_right() -> None:
    """Each block that is handed out has the layer digest of what was published, in the publication
    that is named (KVCS-4-17)."""

    def judged(*reports: Event) -> set[tuple[Outcome, Reason | None]]:
        case = evidence("consumer", {"consumer": reports, "publisher": [OPENED]})
        return {(f.outcome, f.reason) for f in JUDGES["tensors-right"].function(case, {})}

    wrong = against(Reason.TENSORS)
    assert judged(tensors(1, "01" * 32)) == UPHELD
    assert judged(tensors(1, "01" * 32), tensors(0, "02" * 32)) == wrong
    assert judged(tensors(1, "01" * 32, YOURS)) == wrong
    assert judged(tensors(2, "01" * 32)) == wrong
    assert judged(report("tensors", layer=0, sha256=[], publication=MINE)) == UNSEEN
    assert judged() == UNSEEN


def test_publication_discarded() -> None:
    """Reported discarded upholds; anything used contradicts (KVCS-5-17)."""
    told = report("publication-discarded", publication=MINE, reason="manifest.compat-mismatch")
    other = report("publication-discarded", publication=YOURS)
    word = "publication-discarded"
    assert found(word, [told, DONE]) == UPHELD
    assert found(word, [told, report("reused-tokens", tokens=0), DONE]) == UPHELD
    used = against(Reason.USED_BAD_PUBLICATION)
    assert found(word, [told, report("layer-usable", layer=0), DONE]) == used
    assert found(word, [told, report("reused-tokens", tokens=4), DONE]) == used
    assert found(word, [other, DONE]) == UNSEEN
    assert found(word, [told]) == UNSEEN


def mixing(
    word: str, reports: list[Event], *publications: str
) -> set[tuple[Outcome, Reason | None]]:
    """As `found`, when the consumer asked for a data track of these publications."""
    asked = [
        message("Fetch", track={"namespace": [*NAMESPACE[:4], publication], "name": "k.raw.s0"})
        for publication in publications
    ]
    return found(word, reports, sent=asked)


def test_publications_not_mixed() -> None:
    """A layer called usable of a publication that gave only a part of it contradicts; a whole one
    upholds; one publication tried says nothing (KVCS-7.4-3)."""
    usable = report("layer-usable", layer=1, publication=MINE)
    both = (MINE, YOURS)
    word = "publications-not-mixed"
    pieced = [accepted(), accepted(YOURS, block=1), usable]
    assert mixing(word, pieced, *both) == against(Reason.MIXED_PUBLICATIONS)
    whole = [accepted(YOURS, block=1), accepted(), accepted(block=1), usable, DONE]
    assert mixing(word, whole, *both) == UPHELD
    apart = [accepted(), accepted(YOURS, block=1), DONE]
    assert mixing(word, apart, *both) == UPHELD
    assert mixing(word, apart[:2], *both) == UNSEEN
    assert mixing(word, apart, MINE) == UNSEEN


def test_publications_combined() -> None:
    """Objects of two publications and a usable layer show that the promise was taken."""
    usable = report("layer-usable", layer=1)
    word = "publications-combined"
    assert mixing(word, [accepted(), accepted(YOURS, block=1), usable], MINE) == UPHELD
    assert mixing(word, [accepted(), usable], MINE) == UNSEEN


def subscribe(track: str, **parameters: Any) -> Event:
    return message("Subscribe", track={"name": track}, parameters=parameters)


ABSENT = message("RequestError", sent=True, code=0x10)


def test_manifest_cose_asked_first() -> None:
    """manifest.cose first, manifest only behind DOES_NOT_EXIST (KVCS-7.2-4, KVCS-7.2-5)."""
    cose, plain = subscribe("manifest.cose"), subscribe("manifest")
    word = "manifest-cose-asked-first"
    order = against(Reason.REQUEST_ORDER)
    assert found(word, [], sent=[cose]) == UPHELD
    assert found(word, [], sent=[cose, ABSENT, plain]) == UPHELD
    assert found(word, [], sent=[plain]) == order
    assert found(word, [], sent=[cose, plain, ABSENT]) == order
    unauthorised = message("RequestError", sent=True, code=0x1)
    assert found(word, [], sent=[cose, unauthorised, plain]) == order
    assert found(word, [], sent=[]) == UNSEEN


def test_manifest_not_asked() -> None:
    """With authenticity required, asking for the plain manifest contradicts (KVCS-7.2-5)."""
    word = "manifest-not-asked"
    assert found(word, [DONE], sent=[subscribe("manifest.cose")]) == UPHELD
    assert found(word, [DONE], sent=[subscribe("manifest")]) == against(Reason.REQUEST_ORDER)
    assert found(word, [], sent=[]) == UNSEEN


def parts(word: str, sent: list[Event], **arguments: Any) -> list[tuple[str, bool]]:
    """The one requirement that each finding is about, and whether it is upheld."""
    case = evidence("consumer", {"consumer": [], "relay": sent})
    findings = list(JUDGES[word].function(case, arguments))
    return [(" ".join(f.requires), f.outcome is Outcome.UPHELD) for f in findings]


NEXT = {"type": "LocationFilter", "type_": 5}
START = {"type": "LocationFilter", "type_": 2}


def test_joins_exactly_once() -> None:
    """Both filters must be there, as the text has them, and each speaks of its own clause
    (KVCS-7.2-1, KVCS-7.2-2)."""
    word = "joins-exactly-once"
    live, filled = "KVCS-7.2-1", "KVCS-7.2-2"
    fill = {"location_filter": START}
    right = subscribe("k.raw.s0", location_filter=NEXT, fill=fill)
    assert parts(word, [right]) == [(live, True), (filled, True)]
    unfilled = subscribe("k.raw.s0", location_filter=NEXT)
    assert parts(word, [unfilled]) == [(live, True), (filled, False)]
    assert parts(word, [subscribe("k.raw.s0", fill=fill)]) == [(live, False), (filled, True)]
    later = {"location_filter": {**START, "start_group": 1}}
    wrong = subscribe("k.raw.s0", location_filter=NEXT, fill=later)
    assert parts(word, [wrong]) == [(live, True), (filled, False)]
    assert found(word, [], sent=[right, wrong]) == UPHELD | against(Reason.REQUEST_SHAPE)
    assert found(word, [], sent=[subscribe("manifest")]) == UNSEEN


def test_fetches_layers() -> None:
    """LOCATION_FILTER 0x03 from {a, 0} over b-a more Groups (KVCS-7.3-1), and ascending
    (KVCS-7.3-2): each speaks of its own clause."""
    wanted = {"type": "LocationFilter", "type_": 3, "start_group": 1, "end_group_delta": 2}

    def fetch(**parameters: Any) -> list[Event]:
        return [message("Fetch", track={"name": "k.raw.s0"}, parameters=parameters)]

    word, layers = "fetches-layers", [1, 3]
    span, order = "KVCS-7.3-1", "KVCS-7.3-2"
    right, unordered = fetch(location_filter=wanted, group_order=1), fetch(location_filter=wanted)
    assert parts(word, right, layers=layers) == [(span, True), (order, True)]
    assert parts(word, unordered, layers=layers) == [(span, True), (order, False)]
    assert parts(word, fetch(group_order=1), layers=layers) == [(span, False), (order, True)]
    assert parts(word, right, layers=[1, 2]) == [(span, False), (order, True)]
    assert found(word, [], sent=[], layers=layers) == UNSEEN


def test_asks_longest_prefix_first() -> None:
    """Four fields of the whole prompt first; another prefix first, or a wider one at any time,
    contradicts (KVCS-7.1-1)."""

    def ask(*prefix: str) -> Event:
        return message("SubscribeNamespace", prefix=list(prefix))

    word = "asks-longest-prefix-first"
    right, shorter = ask(*NAMESPACE[:4]), ask(*NAMESPACE[:3], "66" * 32)
    shape = against(Reason.REQUEST_SHAPE)
    assert found(word, [], sent=[right]) == UPHELD
    assert found(word, [], sent=[right, shorter]) == UPHELD
    assert found(word, [], sent=[shorter, right]) == shape
    assert found(word, [], sent=[right, ask(*NAMESPACE[:2])]) == shape
    assert found(word, [], sent=[]) == UNSEEN
