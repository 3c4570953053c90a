"""The relay: routes by namespace, aggregates, caches, and changes nothing (MOQT-22 §7)."""

from moqt.relay.config import RelayConfig
from moqt.relay.policy import BOTH_VERBS, Grant, ScopePolicy, Verb
from moqt.relay.relay import Relay

__all__ = ["BOTH_VERBS", "Grant", "Relay", "RelayConfig", "ScopePolicy", "Verb"]
