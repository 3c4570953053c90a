"""The relay's process: it imports nothing that a relay does not need, since its memory counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moqt.drivers.quic import QuicHost, QuicOptions
from moqt.relay import Relay, RelayConfig
from moqt.session import SessionConfig

from kvcs.bench.processes import Channel
from kvcs.programs.memory import map_objects_alone

LOOPBACK = "127.0.0.1"


def options(settings: dict[str, Any]) -> QuicOptions:
    """The driver's options of a role."""
    return QuicOptions(datagram_size=settings["datagram_size"], insecure=True)


def settings_for(folder: Path, datagram_size: int) -> dict[str, Any]:
    """What all roles of one measurement are told; `folder` holds cert.pem and key.pem."""
    return {
        "cert": folder / "cert.pem",
        "key": folder / "key.pem",
        "datagram_size": datagram_size,
    }


async def relay(channel: Channel, settings: dict[str, Any]) -> None:
    """A relay with a cache of `cache_budget` octets, set up as the program sets it up."""
    map_objects_alone()
    host = QuicHost(Relay(RelayConfig(cache_budget=settings["cache_budget"])), options(settings))
    files = {"cert_file": settings["cert"], "key_file": settings["key"]}
    channel.tell("ready", await host.listen(LOOPBACK, 0, SessionConfig(), **files))
    await channel.answer_usage()
