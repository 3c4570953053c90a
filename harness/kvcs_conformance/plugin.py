"""A pytest plugin: `pytest --kvcs-relay moqt://host:port/` runs one test item per case.

It is found by pytest wherever this package is installed, and does nothing, and imports nothing of
the harness, unless an option of its own is given.
"""

from __future__ import annotations

from pathlib import Path

import pytest

_ACTIVE = ("kvcs_relay", "kvcs_link", "kvcs_mutant", "kvcs_select")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; one of the first four turns the plugin on."""
    group = parser.getgroup("kvcs", "KVCS conformance cases")
    add = group.addoption
    add("--kvcs-relay", metavar="URL", help="run the cases of relays against this relay")
    add("--kvcs-link", choices=("memory", "quic"), help="run against the reference on this link")
    add(
        "--kvcs-mutant",
        action="append",
        default=[],
        metavar="NAME",
        help="let this known-bad peer play its role; may be given once per role",
    )
    add(
        "--kvcs-select",
        action="append",
        default=[],
        metavar="SELECTOR",
        help="only these cases: a glob over ids, a role, or a requirement",
    )
    add("--kvcs-ca", type=Path, metavar="FILE", help="who signed the relay's certificate, PEM")
    add("--kvcs-insecure", action="store_true", help="let the relay show any certificate")
    add(
        "--kvcs-lacks",
        action="append",
        default=[],
        metavar="FEATURE",
        help="the peer under test declares this optional feature absent",
    )
    add(
        "--kvcs-known",
        type=Path,
        metavar="FILE",
        help="known failures (expected to fail) and flakes, YAML",
    )
    add("--kvcs-seed", type=int, metavar="N", help="seed of all data")
    add(
        "--kvcs-out",
        type=Path,
        metavar="DIR",
        help="keep results.json and the evidence here; default: in the cache of pytest",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Turn the plugin on if it is asked for."""
    if any(config.getoption(name) for name in _ACTIVE):
        from kvcs_conformance.pytest_cases import Cases

        config.pluginmanager.register(Cases(config), "kvcs-cases")
