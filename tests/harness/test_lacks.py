"""Features that a peer declares absent: the case that needs one is the probe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import Case, Selection, load_cases, select
from kvcs_conformance.casework import Orders, work_on
from kvcs_conformance.errors import SetupFailed, UsageError
from kvcs_conformance.judge import Assessment
from kvcs_conformance.judge.findings import Outcome
from kvcs_conformance.mutants import MUTANTS
from kvcs_conformance.peers import Peers
from kvcs_conformance.plan import Wanted, plan
from kvcs_conformance.recheck import recheck
from kvcs_conformance.report.results import whole
from kvcs_conformance.runner import run_case
from kvcs_conformance.sides import sides_of
from kvcs_conformance.stage import Stage
from kvcs_conformance.verdicts import Level

CATALOGUE = catalogues.load()
CASES = load_cases(CATALOGUE, check=False)
SHOULD = ("publisher/retention/stated", "publisher/no-retention")
MUST = ("consumer/checks/digest-mismatch", "consumer/skips-digest")


def case(name: str) -> Case:
    """A case that needs a feature."""
    (found,) = select(CASES, [name])
    needing = replace(found, needs=("retention",))
    return replace(needing, source={**found.source, "needs": ["retention"]})


def assessed(
    name: str, peers: Peers | None = None, lacks: Iterable[str] = ("retention",)
) -> Assessment:
    """The assessment of a case whose peer declares the feature absent."""
    return run_case(
        case(name), CATALOGUE, link="memory", peers=peers or Peers(), lacks=tuple(lacks)
    ).assessment


def test_an_optional_feature_that_is_not_seen_is_unsupported() -> None:
    """Declared absent, and its case fails: `unsupported`, at nobody's fault."""
    name, bad = SHOULD
    found = assessed(name, MUTANTS[bad].peers)
    assert ("unsupported", "feature.unsupported", "") == (found.verdict, found.reason, found.blame)
    assert "advise" == assessed(name, MUTANTS[bad].peers, lacks=["another"]).verdict


def test_what_nobody_may_lack_is_a_failure() -> None:
    """A MUST that is declared absent is failed, and the finding says which."""
    name, bad = MUST
    binding = {name for name in case(name).requires if CATALOGUE[name].level is Level.MUST}
    found = assessed(name, MUTANTS[bad].peers)
    assert ("fail", "feature.unsupported", "consumer") == (
        found.verdict,
        found.reason,
        found.blame,
    )
    assert found.decisive is not None
    assert binding == set(found.decisive.requires)


def test_a_wrong_declaration_is_told() -> None:
    """The case passes: it stays a pass, and a finding says that the feature is there."""
    found = assessed(SHOULD[0])
    assert "pass" == found.verdict
    assert Outcome.UPHELD is found.findings[-1].outcome
    assert "the declaration is wrong" in found.findings[-1].text


def test_what_was_not_probed_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that did not come to its probe says nothing of the feature."""

    def absent(stage: Stage) -> None:
        raise SetupFailed("no relay")

    monkeypatch.setattr(Stage, "put_up", absent)
    assert "blocked" == assessed(SHOULD[0]).verdict


def test_recheck_knows_what_was_declared(tmp_path: Path) -> None:
    """The declaration stands in the result, and the evidence gives the same verdict again."""
    name, bad = SHOULD
    orders = Orders(CATALOGUE, sides=sides_of([bad]), lacks=frozenset({"retention"}), out=tmp_path)
    entry = work_on(orders, case(name))
    before = whole(
        [entry], CATALOGUE, link="memory", seed=0, peers=orders.sides.names, more=orders.more
    )
    assert ("unsupported", ["retention"]) == (entry["verdict"], before["lacks"])
    assert before == recheck(tmp_path, before, CATALOGUE)


def test_only_features_that_cases_need_can_be_lacked() -> None:
    """An unknown feature is named, with those that there are."""
    cases = (case(SHOULD[0]),)
    campaign = plan(Wanted(Selection(), lacks=("retention",)), cases, CATALOGUE)
    assert frozenset({"retention"}) == campaign.orders.lacks
    with pytest.raises(UsageError, match="needs a feature 'retension'; there is retention"):
        plan(Wanted(Selection(), lacks=("retension",)), cases, CATALOGUE)
    with pytest.raises(UsageError, match="no case needs any"):
        plan(Wanted(Selection(), lacks=("x",)), (replace(cases[0], needs=()),), CATALOGUE)
