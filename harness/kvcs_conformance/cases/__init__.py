"""Cases: their words, their schema, reading and choosing them."""

from kvcs_conformance.cases.load import Case, Judgement, Twin, load_cases
from kvcs_conformance.cases.select import Selection, select

__all__ = ["Case", "Judgement", "Selection", "Twin", "load_cases", "select"]
