"""Publishers that take on FETCHes without measure, or serve them in a wrong order."""

from __future__ import annotations

from dataclasses import replace

from kvcs.publisher import Publisher
from moqt.session import Request
from moqt.tracks.serving import DESCENDING

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason


@mutant(
    "publisher/serves-every-fetch-at-once",
    requires=("KVCS-10-11",),
    reasons=(Reason.LIMIT_EXCEEDED,),
)
class ServesEveryFetchAtOnce(Publisher):
    """The limit of concurrent FETCHes is not kept."""

    def _fetch(self, request: Request) -> None:
        self.max_fetches_per_session = None
        super()._fetch(request)


@mutant("publisher/forgets-fetch", requires=("KVCS-10-11",), reasons=(Reason.ANSWER_NUMBER,))
class ForgetsFetch(Publisher):
    """A FETCH beyond the limit gets no answer, now or later."""

    def _fetch(self, request: Request) -> None:
        running = self._fetches.get(request.session, set())
        limit = self.max_fetches_per_session
        if limit is None or len(running) < limit:
            super()._fetch(request)


@mutant(
    "publisher/serves-fetch-backwards",
    requires=("KVCS-7.3-3", "MOQT-R143"),
    reasons=(Reason.ORDER_LAYERS,),
)
class ServesFetchBackwards(Publisher):
    """A FETCH begins with its last Group, whatever order is asked for."""

    def _fetch(self, request: Request) -> None:
        request.parameters = replace(request.parameters, group_order=DESCENDING)
        super()._fetch(request)
