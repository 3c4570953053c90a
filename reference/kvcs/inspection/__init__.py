"""Octets explained: what each one is, what it means, what is wrong with it.

Every `explain_...` function takes octets that nobody has judged yet and returns a `Report`; none
raises for what the octets hold.
"""

from kvcs.inspection.detect import KINDS, explain
from kvcs.inspection.report import Line, Report, as_json, as_text

__all__ = ["KINDS", "Line", "Report", "as_json", "as_text", "explain"]
