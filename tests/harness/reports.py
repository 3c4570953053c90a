"""Results and folders written down by hand, for reports to be made from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance import datafiles
from kvcs_conformance.evidence.files import case_folder, write_json
from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.evidence.write import list_files, write_evidence
from kvcs_conformance.verdicts import Verdict

from tests.harness.evidence import evidence, message, obj, report

CATALOGUE = catalogues.load()

HOSTILE = (
    "<script>alert(1)</script> ]]> \x1b[31mred\x07 \u202egnp.exe \x00\r\n---\n... # \\ | `` @you"
)
"""What a peer could put into a reason phrase to break a terminal or a file."""

REASON = {
    "fail": "payload.digest-mismatch",
    "advise": "property.absent",
    "pass-nonstrict": "object.subgroup",
    "unsupported": "feature.unsupported",
    "inconclusive": "evidence.absent",
    "blocked": "twin.failed",
    "harness-error": "harness.internal",
}
OUTCOME = {"fail": "contradicted", "advise": "contradicted", "pass-nonstrict": "departs"}


def case(name: str, verdict: str = "pass", **more: Any) -> dict[str, Any]:
    """One entry of a result; the role is the first part of the name."""
    finding: dict[str, Any] = {"outcome": "upheld", "text": "as it should be"}
    if verdict != "pass":
        finding = {"outcome": OUTCOME.get(verdict, "unseen"), "text": f"what makes it {verdict}"}
    finding |= {"requires": ["KVCS-4-22"], **more.pop("finding", {})}
    return {
        "id": name,
        "title": f"The title of {name}",
        "sut": name.split("/")[0],
        "requires": ["KVCS-4-22"],
        "level": "MUST",
        "verdict": verdict,
        "reason": REASON.get(verdict),
        "blame": name.split("/")[0] if verdict == "fail" else "",
        "observed": {"draft": "22", "transport": "memory"},
        "duration_s": 0.25,
        "evidence": f"cases/{name}",
        "findings": [finding],
        **more,
    }


def result(cases: Iterable[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """A result with these cases, right by its schema."""
    entries = list(cases)
    summary: dict[str, int] = {}
    for entry in entries:
        summary[entry["verdict"]] = summary.get(entry["verdict"], 0) + 1
    made = {
        "schema": 1,
        "catalogue": {"kvcs": "00", "moqt": "22", "sha256": "ab" * 32},
        "peers": {"publisher": "reference", "relay": "reference", "consumer": "reference"},
        "link": "memory",
        "seed": 7,
        "summary": summary,
        "cases": entries,
        **more,
    }
    schema = json.loads((datafiles.folder("reports") / "results.schema.json").read_text())
    Draft202012Validator(schema).validate(made)
    return made


def every_verdict() -> dict[str, Any]:
    """One case of each verdict, a known failure, a known flake and an unexpected pass."""
    roles = ("publisher", "relay", "consumer")
    cases = [case(f"{roles[i % 3]}/every/{v.value}", v.value) for i, v in enumerate(Verdict)]
    known = {
        "kind": "failure",
        "state": "known",
        "link": "https://x.test/1",
        "expires": "2030-01-01",
    }
    cases += [
        case("relay/known/failure", "fail", known=known),
        case("relay/known/flake", "inconclusive", known={**known, "kind": "flake"}),
        case("relay/known/expired", "fail", known={**known, "state": "expired"}),
        case(
            "relay/known/passes",
            "pass",
            known={**known, "state": "unexpected-pass"},
            unexpected=True,
        ),
    ]
    return result(cases)


def hostile() -> dict[str, Any]:
    """Cases whose every text from a peer is hostile, and one that is very long."""
    bad = {
        "text": HOSTILE,
        "expected": HOSTILE,
        "observed": HOSTILE * 400,
        "node": "consumer",
        "index": 3,
    }
    return result(
        [
            case("consumer/hostile/fail", "fail", finding=bad, title=HOSTILE),
            case("relay/hostile/open", "harness-error", finding={"text": "\ud800" + HOSTILE}),
            case("relay/hostile/advise", "advise", finding={"text": "x" * 100_000}),
        ],
        peers={"publisher": HOSTILE, "relay": "relay/known-bad", "consumer": "reference"},
    )


def crossing() -> Evidence:
    """A publisher, a relay and a consumer between whom one request and one layer go."""
    asked = {"request_id": 1, "track": {"namespace": [], "name": "k.raw.s0"}}
    ask, answer = {"stream": 4, "raw": "0301"}, {"stream": 4, "raw": "0400"}

    def told(kind: str, sent: bool, extra: dict[str, Any], **fields: Any) -> Any:
        name, data = message(kind, sent=sent, **fields)
        return (name, {**data, **extra})

    objects = [obj(0, 0, stream=3), obj(0, 1, stream=3), obj(0, 2, status="END_OF_GROUP", stream=3)]
    sent = [(name.replace("received", "sent"), data) for name, data in objects]
    fin = ("moqt:fin_sent", {"stream": 3})
    return evidence(
        "relay",
        {
            "consumer": [
                told("Subscribe", True, ask, **asked),
                ("moqt:stream_opened", {"stream": 4, "kind": "request", "header": None}),
                report("padding", reason=HOSTILE),
                report("padding", reason=HOSTILE),
                told("SubscribeOk", False, answer, track_alias=0),
                *objects,
                ("moqt:fin_received", {"stream": 3}),
                ("moqt:session_closed", {"code": 0, "reason": HOSTILE, "by_peer": False}),
            ],
            "relay": [
                told("Subscribe", False, ask, **asked),
                told("SubscribeOk", True, answer, track_alias=0),
                *sent,
                fin,
                ("moqt:reset_sent", {"stream": 8, "code": 1}),
                ("moqt:stop_sent", {"stream": 8, "code": 1}),
            ],
            "publisher": [],
        },
        nodes={
            "publisher": {"kind": "publisher"},
            "relay": {"kind": "relay"},
            "consumer": {"kind": "scripted"},
        },
        records={"consumer": 10, "relay": 8, "publisher": 0},
    )


def write_run(out: Path, made: Mapping[str, Any]) -> Path:
    """A folder with this result, and the same evidence for each of its cases."""
    for entry in made["cases"]:
        home = case_folder(out, entry["id"])
        write_json(home / "case.json", {})
        write_evidence(home, crossing(), "by hand")
        list_files(home)
    (out / "results.json").write_text(json.dumps(made))  # a lone surrogate is legal JSON
    return out
