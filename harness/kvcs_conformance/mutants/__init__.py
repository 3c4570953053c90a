"""Known-bad peers: the reference with one named defect each, to prove that a case can fail.

Every module of this package enters its mutants into the table.
"""

from importlib import import_module
from pkgutil import iter_modules

from kvcs_conformance.mutants.registry import MUTANTS, Mutant, find_mutant

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["MUTANTS", "Mutant", "find_mutant"]
