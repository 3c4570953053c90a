"""Why a case has its verdict, in a screenful, from the saved result and evidence alone."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.errors import UsageError
from kvcs_conformance.evidence.files import LOG_SUFFIX, case_folder
from kvcs_conformance.evidence.read import Record, read_evidence
from kvcs_conformance.verdicts import REASONS, Reason

_WIDTH = 98
_EVENTS_BEFORE = 8
_OCTETS_SHOWN = 64


def explain(out: Path, result: Mapping[str, Any], name: str, catalogue: Catalogue) -> str:
    """The explanation of one case; raises UsageError when the run has no such case."""
    case = next((case for case in result["cases"] if case["id"] == name), None)
    if case is None:
        known = ", ".join(case["id"] for case in result["cases"])
        raise UsageError(f"the run in {out} has no case {name!r}; it has {known}")
    return "\n".join(_lines(out, result, case, catalogue))


def _lines(
    out: Path, result: Mapping[str, Any], case: Mapping[str, Any], catalogue: Catalogue
) -> Iterator[str]:
    reason = case["reason"]
    yield f"{case['id']}: {case['verdict']}" + (f" ({reason})" if reason else "")
    yield from _wrap(case["title"], "  ")
    if reason:
        yield from _wrap(REASONS[Reason(reason)], "  ")
    findings = case["findings"]
    decisive = next((f for f in findings if f["outcome"] != "upheld"), None)
    yield ""
    yield "clause"
    spoken = (decisive or {}).get("requires") or case["requires"]
    for requirement in spoken[:3]:
        if requirement in catalogue:
            entry = catalogue[requirement]
            yield from _wrap(f"{entry.id} {entry.level} ({entry.clause}): {entry.text}", "  ")
    if len(spoken) > 3:
        yield f"  and {len(spoken) - 3} more: {', '.join(spoken[3:])}"
    if decisive is None:
        yield ""
        yield "seen"
        for finding in findings[:12]:
            place = f" [{_place(finding)}]" if "node" in finding else ""
            yield from _wrap(finding["text"] + place, "  ")
        if len(findings) > 12:
            yield f"  and {len(findings) - 12} more"
    else:
        yield from _decisive(out, case, decisive)
    if findings:
        yield ""
        yield "evidence"
        yield f"  {case_folder(out, case['id'], twin=case['verdict'] == 'blocked')}"
    yield ""
    yield "again"
    words = ["kvcs", "run", case["id"], "--link", result["link"], "--seed", str(result["seed"])]
    peer = result["peers"][case["sut"]]
    yield "  " + shlex.join(words if peer == "reference" else [*words, "--mutant", peer])


def _decisive(out: Path, case: Mapping[str, Any], finding: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield "found"
    yield from _wrap(finding["text"], "  ")
    for name in ("expected", "observed"):
        if name in finding:
            yield from _wrap(f"{name}: {finding[name]}", "  ")
    if octets := finding.get("octets"):
        offset = finding.get("offset", 0)
        count = len(octets) // 2
        more = f", the first {_OCTETS_SHOWN} of {count}" if count > _OCTETS_SHOWN else ""
        shown = _spaced(octets[: 2 * _OCTETS_SHOWN])
        yield from _wrap(f"octets from {offset}{more}: {shown}", "  ")
    yield f"  at fault: {case['blame'] or 'nobody is named'}"
    if "node" in finding:
        yield ""
        yield f"events before it, as {finding['node']} saw them ({_place(finding)})"
        twin = case["verdict"] == "blocked"
        folder = case_folder(out, case["id"], twin=twin)
        log = read_evidence(folder).logs.get(finding["node"], ())
        last = finding["index"]
        for record in log[max(0, last - _EVENTS_BEFORE) : last + 1]:
            mark = ">" if record.index == last else " "
            yield f"{mark} {record.time:9.4f} s  {_event(record)}"[:_WIDTH]


def _place(finding: Mapping[str, Any]) -> str:
    """File and line of the record that a finding points at; line 1 is the log's header."""
    return f"{finding['node']}{LOG_SUFFIX}:{finding['index'] + 2}"


def _event(record: Record) -> str:
    data = record.data
    kind = record.name.removeprefix("moqt:").removeprefix("kvcs:").replace("_", " ")
    track = data.get("track")
    if "message" in data:
        track = data["message"].get("track")
        return f"{kind} {data['message']['type']} {track['name'] if track else ''}"
    if isinstance(track, dict):
        size = f"{data['payload']['length']} octets"
        what = size if data["status"] == "NORMAL" else data["status"]
        return f"{kind} {track['name']} ({data['group']}, {data['object']}) {what}"
    place = f"{track} ({data['layer']}, {data['block']}) " if "block" in data else ""
    skipped = {"raw", "header"} | ({"track", "layer", "block", "segment"} if place else set())
    shown = " ".join(f"{k}={_short(v)}" for k, v in data.items() if k not in skipped)
    return f"{kind} {place}{shown}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{text[:8]}…"


def _spaced(octets: str) -> str:
    return " ".join(octets[i : i + 2] for i in range(0, len(octets), 2))


def _wrap(text: str, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False
    )
