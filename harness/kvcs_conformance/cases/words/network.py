"""Steps that do something to the network between the nodes."""

from __future__ import annotations

from kvcs_conformance.cases.words.base import Word, table

STEPS: dict[str, Word] = table()
