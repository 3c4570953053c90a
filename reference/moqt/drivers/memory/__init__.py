"""A deterministic network in memory under virtual time."""

from moqt.drivers.memory.carrier import ConnectionEvent
from moqt.drivers.memory.clock import SimulationError
from moqt.drivers.memory.link import Link
from moqt.drivers.memory.network import Network, Observer

__all__ = ["ConnectionEvent", "Link", "Network", "Observer", "SimulationError"]
