"""One case with its verdict, from evidence alone: no peer, no network."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from kvcs_conformance.cases.load import Case
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge import Assessment, assess
from kvcs_conformance.judge.findings import contradicted, unseen, upheld
from kvcs_conformance.remote import Remote
from kvcs_conformance.verdicts import GOOD, Level, Reason, Verdict

_LETS_ON = GOOD | {Verdict.ADVISE}
"""The verdicts of a positive twin that let its case be judged."""

_BINDS = (Level.MUST, Level.MUST_NOT)


@dataclass(frozen=True)
class Outcome:
    """One case with its assessment and what it rests on."""

    case: Case
    assessment: Assessment
    evidence: Evidence | None
    twin: Evidence | None = None
    duration: float = 0.0


def lost(case: Case, catalogue: Catalogue, why: str, *, link: str, seed: int) -> Outcome:
    """A case whose run did not come to an end, for a reason that no peer is charged with."""
    facts = {
        "schema": 1,
        "case": case.id,
        "sut": case.sut,
        "link": link,
        "seed": seed,
        "nodes": {},
        "steps": [],
        "trouble": {"kind": "harness", "text": why},
        "observed": {"alpn": [], "transport": link},
        "records": {},
    }
    seen = Evidence(facts, {})
    evidence, twin = (None, seen) if case.twin is not None else (seen, None)
    return Outcome(case, judge_case(case, evidence, twin, catalogue), evidence, twin)


def why_not(case: Case, link: str, remote: Remote | None = None) -> str | None:
    """Why a case cannot show anything on this link, with this relay; None where it can."""
    if case.only_link not in (None, link):
        return f"runs on {case.only_link} only"
    return remote.why_not(case) if remote is not None else None


def not_applicable(why: str) -> Assessment:
    """The assessment of a case that cannot show anything, for this reason."""
    return Assessment(Verdict.NOT_APPLICABLE, None, "", (unseen(why),))


def not_run(case: Case, link: str, remote: Remote | None = None) -> Outcome:
    """A case that was chosen and not run; where it could show nothing, it says so all the same."""
    why = why_not(case, link, remote)
    told = not_applicable(why) if why else Assessment(Verdict.NOT_RUN, None, "", ())
    return Outcome(case, told, None)


def judge_case(
    case: Case,
    evidence: Evidence | None,
    twin: Evidence | None,
    catalogue: Catalogue,
    lacks: Collection[str] = (),
) -> Assessment:
    """The assessment of a case from its evidence and that of its twin; a pure function.

    `lacks` are the features that the peer under test declares absent; a case that needs one of
    them is the probe of that.
    """
    seen = _judged(case, evidence, twin, catalogue)
    absent = [feature for feature in case.needs if feature in lacks]
    return _probed(case, seen, absent, catalogue) if absent else seen


def _judged(
    case: Case, evidence: Evidence | None, twin: Evidence | None, catalogue: Catalogue
) -> Assessment:
    if case.twin is not None and twin is not None:
        first = assess(twin, case.twin.judge, (), catalogue)
        if first.verdict is Verdict.HARNESS_ERROR:
            return first
        if first.verdict not in _LETS_ON:
            why = first.decisive.text if first.decisive else first.verdict.value
            told = unseen(f"the positive twin does not pass: {why}", Reason.TWIN_FAILED)
            return Assessment(
                Verdict.BLOCKED, Reason.TWIN_FAILED, first.blame, (told, *first.findings)
            )
    if evidence is None:
        return Assessment(Verdict.NOT_RUN, None, "", ())
    return assess(evidence, case.judge, case.requires, catalogue)


def _probed(case: Case, seen: Assessment, absent: list[str], catalogue: Catalogue) -> Assessment:
    """What a case shows of the features that the peer declares absent."""
    names = ", ".join(absent)
    if seen.verdict in GOOD:
        told = upheld(f"declared absent and yet there: {names}; the declaration is wrong")
        return replace(seen, findings=(*seen.findings, told))
    shown = seen.verdict in (Verdict.FAIL, Verdict.ADVISE, Verdict.INCONCLUSIVE)
    twin_failed = seen.reason is Reason.TWIN_FAILED
    if seen.reason is Reason.VERSION or not (shown or twin_failed):
        return seen  # nothing was probed
    binding = [name for name in case.requires if catalogue[name].level in _BINDS]
    if not binding:
        told = unseen(f"declared absent, and not seen: {names}", Reason.UNSUPPORTED)
        return Assessment(Verdict.UNSUPPORTED, Reason.UNSUPPORTED, "", (told, *seen.findings))
    told = contradicted(
        Reason.UNSUPPORTED,
        f"declared absent, but nobody may lack it: {names}",
        expected=f"{names}, by {', '.join(binding)}",
        observed="declared absent, and not seen",
        requires=tuple(binding),
    )
    return Assessment(Verdict.FAIL, Reason.UNSUPPORTED, case.sut, (told, *seen.findings))


def twin_passes(case: Case, twin: Evidence, catalogue: Catalogue) -> bool:
    """Whether the positive twin lets the case be judged."""
    assert case.twin is not None
    return assess(twin, case.twin.judge, (), catalogue).verdict in _LETS_ON
