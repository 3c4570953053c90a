"""Known failures and flakes: an overlay on a result, never a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kvcs_conformance.cases.load import Case
from kvcs_conformance.source import Document, read_yaml
from kvcs_conformance.verdicts import GOOD, ExitCode, Reason, Verdict, exit_code

_TEXT = {"type": "string", "minLength": 1}
_OPEN = sorted(set(Verdict) - GOOD - {Verdict.NOT_RUN, Verdict.NOT_APPLICABLE})

SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["case", "kind", "link", "expires"],
        "properties": {
            "case": {**_TEXT, "description": "id of a case, or a glob over ids"},
            "kind": {
                "enum": ["failure", "flake"],
                "description": "a failure must not pass, a flake may",
            },
            "peer": {**_TEXT, "description": "only in runs with this peer in some role"},
            "on": {"enum": ["memory", "quic"], "description": "only in runs on this link"},
            "verdict": {
                "enum": [verdict.value for verdict in _OPEN],
                "description": "only this verdict is known; default: fail",
            },
            "reason": {
                "enum": [reason.value for reason in Reason],
                "description": "only this reason is known; default: any",
            },
            "link": {
                "type": "string",
                "pattern": "^https?://[^ ]+$",
                "examples": ["https://example.org/issues/7"],
                "description": "where it is being worked on",
            },
            "expires": {
                "type": "string",
                "format": "date",
                "description": "the last day on which the entry counts",
            },
            "note": _TEXT,
        },
    },
}


@dataclass(frozen=True)
class Known:
    """One entry; `place` is its file and line."""

    case: str
    kind: str
    link: str
    expires: date
    place: str
    peer: str | None = None
    on: str | None = None
    verdict: str = Verdict.FAIL.value
    reason: str | None = None
    note: str = ""

    def concerns(self, entry: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
        """Whether it is about this case of this run."""
        return (
            fnmatchcase(entry["id"], self.case)
            and self.peer in (None, *result["peers"].values())
            and self.on in (None, result["link"])
        )

    def state(self, entry: Mapping[str, Any], today: date) -> str:
        """What it says of an entry of the result: `known`, `expired`, `unexpected-pass`, or
        `differs` when the case fails in another way."""
        if today > self.expires:
            return "expired"
        if entry["verdict"] in GOOD:
            return "unexpected-pass" if self.kind == "failure" else "known"
        same = entry["verdict"] == self.verdict and self.reason in (None, entry["reason"])
        return "known" if same else "differs"


def load_known(path: Path, cases: Iterable[Case]) -> tuple[Known, ...]:
    """Read an overlay; raises DataError with file and line, for a case that is none too."""
    from kvcs_conformance.cases.check import check_schema

    document = read_yaml(path)
    if document.data is None:
        return ()
    if isinstance(document.data, list):
        for entry in document.data:
            if isinstance(entry, dict) and isinstance(entry.get("expires"), date):
                entry["expires"] = entry["expires"].isoformat()
    check_schema(document, SCHEMA)
    names = [case.id for case in cases]
    return tuple(_known(document, i, entry, names) for i, entry in enumerate(document.data))


def _known(document: Document, i: int, entry: Mapping[str, Any], names: list[str]) -> Known:
    if not any(fnmatchcase(name, entry["case"]) for name in names):
        raise document.error((i, "case"), f"no case matches {entry['case']!r}")
    try:
        expires = date.fromisoformat(entry["expires"])
    except ValueError:
        told = f"{entry['expires']!r} is no date; write YYYY-MM-DD"
        raise document.error((i, "expires"), told) from None
    line = document.error((i,), "").line
    return Known(**{**entry, "expires": expires, "place": f"{document.path}:{line}"})


def overlay(result: dict[str, Any], known: Iterable[Known], today: date) -> dict[str, Any]:
    """The result with what is known of its cases: verdicts and summary are as they were.

    Of several entries about one case the first that is neither expired nor different counts.
    """
    entries = tuple(known)
    return {**result, "cases": [_marked(case, result, entries, today) for case in result["cases"]]}


def _marked(
    case: dict[str, Any], result: Mapping[str, Any], known: tuple[Known, ...], today: date
) -> dict[str, Any]:
    if case["verdict"] in (Verdict.NOT_RUN, Verdict.NOT_APPLICABLE):
        return case
    found = [(one, one.state(case, today)) for one in known if one.concerns(case, result)]
    if not found:
        return case
    one, state = min(found, key=lambda pair: pair[1] in ("expired", "differs"))
    told = {"kind": one.kind, "state": state, "link": one.link, "expires": str(one.expires)}
    if one.note:
        told["note"] = one.note
    marked = {**case, "known": told}
    return {**marked, "unexpected": True} if state == "unexpected-pass" else marked


def is_known(case: Mapping[str, Any]) -> bool:
    """Whether what is wrong with a case is known."""
    return bool(case.get("known", {}).get("state") == "known")


def exit_code_of(result: Mapping[str, Any]) -> ExitCode:
    """The exit code of a run: what is known counts for nothing, an unexpected pass is a failure."""
    if any(case.get("unexpected") for case in result["cases"]):
        return ExitCode.FAIL
    return exit_code(Verdict(c["verdict"]) for c in result["cases"] if not is_known(c))
