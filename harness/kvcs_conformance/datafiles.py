"""Where the data folders are: in a checkout beside harness/, in a wheel inside the package."""

from __future__ import annotations

import os
from pathlib import Path

from kvcs_conformance.errors import UsageError

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """The folder `testcases` or `reports`; KVCS_DATA names another parent folder.

    Raises UsageError when there is none.
    """
    override = os.environ.get("KVCS_DATA")
    places = [Path(override)] if override else [_PACKAGE / "data", _PACKAGE.parent.parent]
    for place in places:
        if (place / name).is_dir():
            return place / name
    raise UsageError(f"no folder {name}/ in {' or '.join(map(str, places))}")
