"""Cases as pytest items; loaded by `plugin` when one of its options is given."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Generator, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.campaign import Campaign
from kvcs_conformance.cases import Case, Selection, load_cases
from kvcs_conformance.casework import work_on
from kvcs_conformance.errors import UsageError
from kvcs_conformance.evidence.files import clear_run, make_folder
from kvcs_conformance.known import Known, is_known, load_known, overlay
from kvcs_conformance.plan import Wanted, plan
from kvcs_conformance.remote import remote_of
from kvcs_conformance.report.explain import as_text, known_words
from kvcs_conformance.report.explanation import explain_case
from kvcs_conformance.verdicts import GOOD, Verdict

_ENTRY = "kvcs_entry"
"""The attribute of a report that holds the entry of the result, as JSON: it may have to travel."""

_SKIPS = (Verdict.UNSUPPORTED, Verdict.NOT_APPLICABLE)


class Advice(pytest.PytestWarning):
    """A case contradicts a SHOULD, or passes in a way that is not the preferred one."""


class NotPassed(Exception):
    """The case did not pass; the entry of the result says why."""


class Cases:
    """The cases that the options choose, as items beside the tests that are named."""

    def __init__(self, config: pytest.Config) -> None:
        """Raises pytest.UsageError for options that do not go together."""
        option = config.getoption
        self._alone = config.args_source is not pytest.Config.ArgsSource.ARGS
        self._worker = hasattr(config, "workerinput")
        self.folder: Path = option("kvcs_out") or _own_folder(config)
        try:
            make_folder(self.folder)
            if not self._worker:
                clear_run(self.folder)
            self.campaign = self._campaign(option)
            self.known: tuple[Known, ...] = ()
            if option("kvcs_known") is not None:
                self.known = load_known(option("kvcs_known"), self._loaded)
            marks = {mark for case in self.campaign.cases for mark in (case.sut, *case.tags)}
            for mark in sorted(marks):
                config.addinivalue_line("markers", f"{mark}: cases of this role or with this tag")
        except UsageError as error:
            raise pytest.UsageError(f"kvcs: {error}") from error

    def _campaign(self, option: Any) -> Campaign:
        self.catalogue = catalogues.load()
        self._loaded = load_cases(self.catalogue)
        wanted = Wanted(
            selection=Selection(tuple(option("kvcs_select"))),
            link=option("kvcs_link"),
            seed=option("kvcs_seed"),
            mutants=tuple(option("kvcs_mutant")),
            lacks=tuple(option("kvcs_lacks")),
            remote=remote_of(option("kvcs_relay"), option("kvcs_ca"), option("kvcs_insecure")),
            limit=None,
            out=self.folder,
        )
        return plan(wanted, self._loaded, self.catalogue)

    def result_of(self, entry: dict[str, Any]) -> dict[str, Any]:
        """The result of a run of this case alone, with what is known of it."""
        return overlay(self.campaign.result([entry]), self.known, date.today())

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self) -> bool | None:
        """Where no test is named, the cases are all there is."""
        return True if self._alone else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add an item per case."""
        for case in self.campaign.cases:
            items.append(CaseItem.from_parent(session, nodeid=case.id, case=case, cases=self))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Give the report of a case its entry."""
        report = yield
        if isinstance(item, CaseItem) and item.entry is not None:
            setattr(report, _ENTRY, json.dumps(item.entry))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the entry of a case, from whatever process it comes."""
        if hasattr(report, _ENTRY):
            entry = json.loads(getattr(report, _ENTRY))
            self.campaign.entries[entry["id"]] = entry

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write the result."""
        if not self._worker:
            self.campaign.close(lambda result: overlay(result, self.known, date.today()))


def _own_folder(config: pytest.Config) -> Path:
    """Where the evidence is kept until the next session, where nobody says where."""
    if getattr(config, "cache", None) is not None:
        return config.cache.mkdir("kvcs")
    return Path(tempfile.mkdtemp(prefix="kvcs-pytest-"))


class CaseItem(pytest.Item):
    """One case; its node id is that of the case."""

    def __init__(self, *, case: Case, cases: Cases, **more: Any) -> None:
        super().__init__(case.id, **more)
        self.entry: dict[str, Any] | None = None
        self._case = case
        self._cases = cases
        self.add_marker(case.sut)
        for tag in case.tags:
            self.add_marker(tag)

    def runtest(self) -> None:
        """Run the case: a skip, an expected failure, a pass, or NotPassed."""
        cases = self._cases
        entry = work_on(cases.campaign.orders, self._case)
        self.entry = entry
        (marked,) = cases.result_of(entry)["cases"]
        told = "; ".join(self._why(marked))
        if entry["verdict"] in _SKIPS:
            pytest.skip(told)
        if marked.get("unexpected"):
            pytest.fail(known_words(marked["known"]), pytrace=False)
        if is_known(marked) and entry["verdict"] not in GOOD:
            pytest.xfail(f"{known_words(marked['known'])}: {told}")
        if entry["verdict"] in (Verdict.ADVISE, Verdict.PASS_NONSTRICT):
            warnings.warn(Advice(f"{self._case.id}: {told}"), stacklevel=1)
        elif entry["verdict"] != Verdict.PASS:
            raise NotPassed(entry)

    def _why(self, entry: dict[str, Any]) -> Iterator[str]:
        yield entry["verdict"]
        if entry["reason"]:
            yield entry["reason"]
        yield from [f["text"] for f in entry["findings"] if f["outcome"] != "upheld"][:1]

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *more: Any) -> Any:
        """What `kvcs explain` says, for a case that did not pass."""
        if not isinstance(excinfo.value, NotPassed):
            return super().repr_failure(excinfo, *more)
        (entry,) = excinfo.value.args
        cases = self._cases
        result = cases.result_of(entry)
        (marked,) = result["cases"]
        return as_text(explain_case(cases.folder, result, marked, cases.catalogue), cases.folder)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The file of the case."""
        return self._case.path, None, self._case.id
