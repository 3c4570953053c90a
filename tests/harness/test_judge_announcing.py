"""Judge words for announcements and their refusal, on hand-made evidence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvcs_conformance.judge import JUDGES, Outcome
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import NAMESPACE, Event, answered, asked, evidence, message, obj, report
from tests.harness.test_judge_identity import FENCE

TOKEN = b"token".hex()


def findings(word: str, seen: Iterable[Event], token: str = TOKEN) -> list[tuple[Any, Any]]:
    told = [report("asked-to-publish", label="first", token=token)]
    case = evidence("publisher", {"consumer": list(seen), "publisher": told})
    return [(f.outcome, f.reason) for f in JUDGES[word].function(case, {})]


def announcement(*values: str) -> Event:
    tokens = [{"type": "Token", "alias_type": 3, "value": value} for value in values]
    return message(
        "PublishNamespace", namespace=NAMESPACE, parameters={"authorization_tokens": tokens}
    )


def test_announced_with_token() -> None:
    """The given token upholds, another or none contradicts; without an announcement or a token
    to give it stays open (KVCS-6-1)."""
    word = "announced-with-token"
    absent = [(Outcome.CONTRADICTED, Reason.AUTH_ABSENT)]
    unseen = [(Outcome.UNSEEN, Reason.NO_EVIDENCE)]
    assert findings(word, [announcement(TOKEN)]) == [(Outcome.UPHELD, None)]
    assert findings(word, [announcement("00")]) == absent
    assert findings(word, [announcement()]) == absent
    assert findings(word, [message("PublishNamespace", namespace=NAMESPACE)]) == absent
    assert findings(word, []) == unseen
    assert findings(word, [announcement()], token="") == unseen


def test_publishes_nothing_refused() -> None:
    """No data behind a fence upholds, data contradicts; it stays open without a refusal, or
    without a fence after a request (KVCS-6-1)."""
    word = "publishes-nothing-refused"
    refusal = message("RequestError", sent=True, code=0x1)
    begun = [refusal, asked("data", "SUBSCRIBE"), answered("RequestError", code=0x10)]
    assert findings(word, [*begun, FENCE]) == [(Outcome.UPHELD, None)]
    data = [*begun, obj(0, 0), FENCE]
    assert findings(word, data) == [(Outcome.CONTRADICTED, Reason.OBJECT_UNEXPECTED)]
    unseen = [(Outcome.UNSEEN, Reason.NO_EVIDENCE)]
    assert findings(word, begun) == unseen
    assert findings(word, [*begun[1:], FENCE]) == unseen
