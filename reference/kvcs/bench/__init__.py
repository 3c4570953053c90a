"""Measurements of `kvcs bench`: each role in a process of its own, over QUIC on loopback."""
