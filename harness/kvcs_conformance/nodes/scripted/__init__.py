"""A node that does what a case's steps say."""

from kvcs_conformance.nodes.scripted import delivery_steps  # noqa: F401  enters its steps
from kvcs_conformance.nodes.scripted.node import ScriptedNode

__all__ = ["ScriptedNode"]
