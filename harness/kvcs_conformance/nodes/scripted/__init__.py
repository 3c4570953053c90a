"""A node that does what a case's steps say."""

from kvcs_conformance.nodes.scripted import (  # noqa: F401  they enter their steps
    access_steps,
    delivery_steps,
)
from kvcs_conformance.nodes.scripted.node import ScriptedNode

__all__ = ["ScriptedNode"]
