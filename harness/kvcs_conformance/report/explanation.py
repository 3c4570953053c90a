"""Why a case has its verdict, as one structure that every report shows in its own way.

It is built from the saved result and evidence alone. All text in it is plain: what a peer sent
cannot reach a terminal or a page raw.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.errors import UsageError
from kvcs_conformance.evidence.files import LOG_SUFFIX, RUN, case_folder, read_json
from kvcs_conformance.evidence.read import Evidence, Record, read_evidence
from kvcs_conformance.evidence.shape import odd_record
from kvcs_conformance.report.events import ECHOES, describe
from kvcs_conformance.report.octets import Octets, decode
from kvcs_conformance.report.plain import plain, plain_values
from kvcs_conformance.report.timeline import NETWORK, Place, Timeline, timeline
from kvcs_conformance.verdicts import REASONS, Reason, Verdict

_EVENTS_BEFORE = 8
_EVENTS_OPPOSITE = 4
_SKIPPED = ECHOES | {"moqt:stream_opened", "moqt:stream_accepted"}
_TRACK = re.compile(r"\b(?:[a-z]+\.[\w-]+\.s\d+|manifest(?:\.cose)?)(?![\w.])")
_LOCATION = re.compile(r"\((\d+), (\d+)\)")


class Bearing(StrEnum):
    """How the event that is shown bears on the finding: the finding points at it, it is where
    something absent would have come, or it is just the last that was seen."""

    EXACT = "exact"
    NEAREST = "nearest"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Clause:
    """One requirement in our words; `clause` is the section that it stands in."""

    id: str
    level: str
    clause: str
    text: str


@dataclass(frozen=True, slots=True)
class Event:
    """One record of a node's log, `place` its file and line."""

    time: float
    text: str
    place: str


@dataclass(frozen=True, slots=True)
class Scene:
    """The last of what one node saw up to the event that decides, which is the last here."""

    node: str
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """Positive evidence, and where it stands ("" for what no single event shows)."""

    text: str
    place: str
    requires: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """One case explained; a text is empty and a tuple has no entry where there is nothing to say.

    `also` is what contradicts a clause besides what was found first. `why` says why a case was
    blocked or left open, `trouble` what evidence could not be read, `blame_text` what runs with
    the reference in place of one side say.
    """

    id: str
    title: str
    role: str
    level: str
    verdict: str
    reason: str
    meaning: str
    requires: tuple[str, ...]
    clauses: tuple[Clause, ...]
    why: str
    found: str
    expected: str
    observed: str
    also: tuple[str, ...]
    octets: Octets | None
    blame: str
    blame_text: str
    place: str
    bearing: Bearing
    before: Scene | None
    opposite: Scene | None
    twin: str
    seen: tuple[Seen, ...]
    known: Mapping[str, Any] | None
    unexpected: bool
    repeats: str
    seed: int
    duration: float
    draft: str
    evidence: str
    again: str
    trouble: str
    timeline: Timeline | None
    decisive: Place | None

    def as_json(self) -> dict[str, Any]:
        """All but the timeline, which is in the evidence."""
        values = asdict(replace(self, timeline=None, decisive=None))
        del values["timeline"], values["decisive"]
        return values


def explain_case(
    out: Path, result: Mapping[str, Any], case: Mapping[str, Any], catalogue: Catalogue
) -> Explanation:
    """The explanation of one case of a run; what of the evidence is unreadable is said in it."""
    octets_of = [finding.get("octets", "") for finding in case["findings"]]
    case = plain_values(case)
    findings: Sequence[dict[str, Any]] = case["findings"]
    for finding, octets in zip(findings, octets_of, strict=True):
        finding["octets"] = octets  # hexadecimal, and whole: fields are read from it
    of_twin = case["verdict"] == Verdict.BLOCKED and case["reason"] == Reason.TWIN_FAILED
    evidence, trouble = _evidence(out, case, of_twin)
    try:
        return _explained(out, result, case, catalogue, of_twin, evidence, trouble)
    except _STUMBLES:
        # Records that somebody else made are told as such; on those of a run it is our own fault.
        odd = "" if evidence is None else odd_record(evidence)
        if not odd:
            raise
        trouble = f"its records are not what a run writes ({odd})"
        return _explained(out, result, case, catalogue, of_twin, None, trouble)


def _explained(
    out: Path,
    result: Mapping[str, Any],
    case: Mapping[str, Any],
    catalogue: Catalogue,
    of_twin: bool,
    evidence: Evidence | None,
    trouble: str,
) -> Explanation:
    findings: Sequence[dict[str, Any]] = case["findings"]
    open_ = [finding for finding in findings if finding["outcome"] != "upheld"]
    decisive = open_[1] if of_twin and len(open_) > 1 else open_[0] if open_ else None
    place, bearing = _place(decisive, evidence, case["sut"])
    record = evidence.logs[place[0]][place[1]] if place and evidence else None
    upheld = [f for f in findings if f["outcome"] == "upheld"]
    apart = [place] if place else [at for f in upheld if (at := _index(f, evidence))]
    story = timeline(evidence, apart) if evidence is not None else None
    reason = case["reason"] or ""
    known = case.get("known")
    spoken = (decisive or {}).get("requires") or case["requires"]
    exact = record if bearing is Bearing.EXACT else None
    return Explanation(
        id=case["id"],
        title=case["title"],
        role=case["sut"],
        level=case["level"],
        verdict=case["verdict"],
        reason=reason,
        meaning=REASONS[Reason(reason)] if reason in set(Reason) else "",
        requires=tuple(case["requires"]),
        clauses=tuple(_clauses(spoken, catalogue)),
        why=open_[0]["text"] if open_ and open_[0]["outcome"] == "unseen" else "",
        found=decisive["text"] if decisive else "",
        expected=decisive.get("expected", "") if decisive else "",
        observed=decisive.get("observed", "") if decisive else "",
        also=tuple(_also(findings, decisive)),
        octets=decode(decisive, exact) if decisive else None,
        blame=case["blame"],
        blame_text=case.get("blame_text", ""),
        place=_where(*place) if place else "",
        bearing=bearing,
        before=_scene(evidence, story, record, _EVENTS_BEFORE),
        opposite=_scene(evidence, story, _other_end(evidence, story, record), _EVENTS_OPPOSITE),
        twin=_twin(out, case, of_twin),
        seen=tuple(_seen(finding) for finding in upheld),
        known=known,
        unexpected=bool(case.get("unexpected")),
        repeats=_repeats(case),
        seed=case.get("seed", result["seed"]),
        duration=case["duration_s"],
        draft=case["observed"]["draft"] or "",
        evidence=case["evidence"] + ("/twin" if of_twin else ""),
        again=again(result, case),
        trouble=plain(trouble),
        timeline=story,
        decisive=place,
    )


def again(result: Mapping[str, Any], case: Mapping[str, Any]) -> str:
    """The command that runs just this case against the same peers."""
    seed = case.get("seed", result["seed"])
    words = ["kvcs", "run", case["id"], "--link", result["link"], "--seed", str(seed)]
    for role, name in result["peers"].items():
        if name != "reference":
            # A known-bad peer is named after its role; any other is given as the role's option.
            words += ["--mutant" if name.startswith(f"{role}/") else f"--{role}", plain(name)]
    remote = result.get("remote", {})
    words += ["--insecure"] if remote.get("insecure") else []
    words += ["--ca", plain(remote["ca"])] if "ca" in remote else []
    for feature in result.get("lacks", ()):
        words += ["--lacks", plain(feature)]
    return shlex.join(words)


_STUMBLES = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)
_WITHOUT_EVIDENCE = (Verdict.NOT_RUN, Verdict.NOT_APPLICABLE, Verdict.HARNESS_ERROR)


def _evidence(out: Path, case: Mapping[str, Any], of_twin: bool) -> tuple[Evidence | None, str]:
    """The evidence that the verdict rests on, and what is wrong with it."""
    home = case_folder(out, case["id"], twin=of_twin)
    try:
        if (home / RUN).is_file():
            return read_evidence(home), ""
        played = case["verdict"] not in _WITHOUT_EVIDENCE
        return None, f"there is no {RUN}" if played else ""
    except (UsageError, OSError, ValueError) as error:
        return None, str(error)


def _index(finding: Mapping[str, Any], evidence: Evidence | None) -> Place | None:
    """The record that a finding points at, if the evidence has it."""
    if evidence is None or "node" not in finding or "index" not in finding:
        return None
    node, index = finding["node"], finding["index"]
    return (node, index) if index < len(evidence.logs.get(node, ())) else None


def _place(
    finding: Mapping[str, Any] | None, evidence: Evidence | None, sut: str
) -> tuple[Place | None, Bearing]:
    """The event to show, and how it bears on the finding."""
    if finding is None or evidence is None:
        return None, Bearing.EXACT
    if at := _index(finding, evidence):
        return at, Bearing.EXACT
    # As somebody else than the peer under test saw it, if anybody did.
    nodes = (name for name in evidence.logs if name != NETWORK)
    names = sorted(nodes, key=lambda name: (name == sut, name))
    if near := _nearest(finding, evidence, names):
        return (near.node, near.index), Bearing.NEAREST
    logs = [evidence.logs[name] for name in names if evidence.logs[name]]
    last = max((log[-1] for log in logs), key=lambda record: record.time, default=None)
    return (last.node, last.index) if last else None, Bearing.LAST


def _nearest(finding: Mapping[str, Any], evidence: Evidence, names: Iterable[str]) -> Record | None:
    """For a finding that something is absent: the last Object of its track that is not after the
    Location that it speaks of."""
    text = f"{finding['text']} {finding.get('expected', '')}"
    track = _TRACK.search(text)
    if track is None:
        return None
    location = _LOCATION.search(finding.get("expected", "")) or _LOCATION.search(text)
    last = (int(location[1]), int(location[2])) if location else None
    for name in names:
        best: Record | None = None
        for seen in evidence.objects(name):
            if seen.track == track[0] and (last is None or seen.location <= last):
                best = seen.record
        if best is not None:
            return best
    return None


def _where(node: str, index: int) -> str:
    """File and line of a record; line 1 is the log's header."""
    return f"{plain(node)}{LOG_SUFFIX}:{index + 2}"


def _other_end(
    evidence: Evidence | None, story: Timeline | None, record: Record | None
) -> Record | None:
    """What the node at the other end of the deciding event knows of it; of what a role reports
    about an Object, that is the sending of the Object."""
    if evidence is None or story is None or record is None:
        return None
    if end := story.other_end.get((record.node, record.index)):
        return end
    data = record.data
    about = (data.get("track"), data.get("layer"), data.get("block"))
    arrivals = [
        seen.record
        for seen in evidence.objects(record.node)
        if (seen.track, *seen.location) == about and seen.record.index < record.index
    ]
    last = arrivals[-1] if arrivals else None
    return story.other_end.get((last.node, last.index)) if last else None


def _scene(
    evidence: Evidence | None, story: Timeline | None, record: Record | None, most: int
) -> Scene | None:
    if evidence is None or story is None or record is None:
        return None
    log = evidence.logs[record.node][: record.index]
    requests = {
        one.data.get("stream")
        for one in log
        if one.name in ("moqt:stream_opened", "moqt:stream_accepted")
        and one.data.get("kind") == "request"
    }
    attempt = record.data.get("attempt")
    told = [
        one
        for one in log
        if one.name not in _SKIPPED
        and not _request_end(one, requests)
        and (attempt is None or one.data.get("attempt") == attempt)  # others run beside it
    ]
    told = told[-most:]
    events = (Event(r.time, _text(r, story), _where(r.node, r.index)) for r in (*told, record))
    return Scene(record.node, tuple(events))


def _request_end(record: Record, requests: Set[object]) -> bool:
    """A FIN on a stream of a request, which its last message tells already."""
    return record.name.startswith("moqt:fin_") and record.data.get("stream") in requests


def _text(record: Record, story: Timeline) -> str:
    """A message with the track that its request is about, which an answer does not name itself."""
    words = story.messages.get((record.node, record.index))
    if words is None:
        return describe(record)
    return f"{record.name.rpartition('_')[2]} {words}"


def _clauses(requires: Iterable[str], catalogue: Catalogue) -> Iterable[Clause]:
    for name in requires:
        if name in catalogue:
            entry = catalogue[name]
            yield Clause(entry.id, entry.level.value, entry.clause, entry.text)


def _also(
    findings: Iterable[Mapping[str, Any]], decisive: Mapping[str, Any] | None
) -> Iterable[str]:
    """What else contradicts a clause, once per set of clauses that is not told already."""
    told = {tuple((decisive or {}).get("requires", ()))}
    for finding in findings:
        about = tuple(finding.get("requires", ()))
        if finding["outcome"] == "contradicted" and about not in told:
            told.add(about)
            yield f"{finding['text']} ({', '.join(about)})"


def _seen(finding: Mapping[str, Any]) -> Seen:
    at = _where(finding["node"], finding["index"]) if "index" in finding else ""
    return Seen(finding["text"], at, tuple(finding.get("requires", ())))


def _repeats(case: Mapping[str, Any]) -> str:
    """How often each verdict came when the case was run more than once."""
    repeat = case.get("repeat")
    if not repeat:
        return ""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in repeat["verdicts"].items())
    return f"{'flaky' if case.get('flaky') else 'stable'} in {repeat['runs']} runs: {counts}"


def _twin(out: Path, case: Mapping[str, Any], of_twin: bool) -> str:
    """What became of the positive twin, the same steps without the illegal one."""
    if of_twin:
        return "fails"
    home = case_folder(out, case["id"], twin=True)
    if not (home / RUN).is_file():
        return ""
    # The case is run only after its twin has passed.
    played = (home.parent / RUN).is_file()
    try:
        steps = len(read_json(home / RUN).get("steps", ()))
    except (UsageError, AttributeError):
        return ""
    return f"passes, in {steps} steps" if played else "was run"
