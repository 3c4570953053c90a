"""What a peer reports, held against `peer-report.schema.json` when it comes in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kvcs_conformance.datafiles import folder

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

MALFORMED = "kvcs:report-malformed"
"""The record of a report that no judge can read; `why` tells what is wrong with it."""


@lru_cache(maxsize=1)
def _schema() -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    path = folder("testcases") / "schemas" / "peer-report.schema.json"
    return Draft202012Validator(json.loads(path.read_text()))


def flaw_of(report: Mapping[str, Any]) -> str:
    """What is wrong with a report as JSON; "" for one that follows the schema."""
    wrong = next(_schema().iter_errors(report), None)
    if wrong is None:
        return ""
    where = "/".join(map(str, wrong.absolute_path))
    return f"{where}: {wrong.message}"[:200] if where else wrong.message[:200]
