"""Relay: routing, aggregation and cache over sessions, without I/O (MOQT-22 §7)."""
