"""Drivers: what moves octets and time. `memory` is a simulated network, `quic` is aioquic."""
