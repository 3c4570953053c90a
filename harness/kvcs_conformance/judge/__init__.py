"""Judging: pure functions from saved evidence to findings, and from findings to a verdict.

Every module of this package enters its words into the table.
"""

from importlib import import_module
from pkgutil import iter_modules

from kvcs_conformance.judge.assess import Assessment, assess
from kvcs_conformance.judge.findings import Finding, Outcome
from kvcs_conformance.judge.registry import JUDGES

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["JUDGES", "Assessment", "Finding", "Outcome", "assess"]
