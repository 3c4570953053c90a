"""Publisher, two relays in a row and consumers in one process, over QUIC on loopback."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvcs.names import DataTrack, parse_track_name
from moqt.drivers.quic import QuicHost, QuicOptions, write_throwaway_certificate
from moqt.endpoint import Endpoint
from moqt.relay import Relay, RelayConfig
from moqt.session import SessionConfig
from moqt.wire.names import Location
from moqt.wire.objects import ObjectStatus

LOOPBACK = "127.0.0.1"
DATAGRAM_SIZE = 16000


@dataclass(slots=True)
class Link:
    """What crossed one link: how often each Object of the data tracks, and by which way."""

    name: str
    crossed: Counter[tuple[str, Location]] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    octets: int = 0

    def config(self) -> SessionConfig:
        """For the receiving end: a session that counts here what it receives."""
        return SessionConfig(trace=self._trace)

    def _trace(self, name: str, data: dict[str, Any]) -> None:
        if name != "moqt:object_received" or data["status"] is not ObjectStatus.NORMAL:
            return
        track = parse_track_name(data["track"].name)
        if isinstance(track, DataTrack):
            self.crossed[str(track), Location(data["group"], data["object"])] += 1
            self.ways[data["via"]] += 1
            self.octets += len(data["payload"])


@dataclass(slots=True)
class Chain:
    """Relay A takes the publisher, relay B has A upstream and takes the consumers."""

    relay_a: Relay
    relay_b: Relay
    url_a: str
    url_b: str
    links: dict[str, Link]
    hosts: list[QuicHost]

    def host(self, endpoint: Endpoint) -> QuicHost:
        """A driver for one more endpoint of the job."""
        self.hosts.append(QuicHost(endpoint, OPTIONS))
        return self.hosts[-1]

    def link(self, name: str) -> Link:
        """One more counted link."""
        return self.links.setdefault(name, Link(name))


OPTIONS = QuicOptions(datagram_size=DATAGRAM_SIZE, insecure=True)


@asynccontextmanager
async def chain() -> AsyncIterator[Chain]:
    """The chain at work; everything is closed afterwards."""
    links = {name: Link(name) for name in ("publisher - relay A", "relay A - relay B")}
    to_a, to_b = links.values()
    hosts: list[QuicHost] = []
    with tempfile.TemporaryDirectory(prefix="kvcs-") as folder:
        files = {"cert_file": Path(folder, "cert.pem"), "key_file": Path(folder, "key.pem")}
        write_throwaway_certificate(*files.values())
        try:
            relay_a = Relay()
            hosts.append(QuicHost(relay_a, OPTIONS))
            port = await hosts[-1].listen(LOOPBACK, 0, to_a.config(), **files)
            url_a = f"moqt://{LOOPBACK}:{port}"
            relay_b = Relay(RelayConfig(upstreams=(url_a,), upstream_session=to_b.config()))
            hosts.append(QuicHost(relay_b, OPTIONS))
            port = await hosts[-1].listen(LOOPBACK, 0, SessionConfig(), **files)
            url_b = f"moqt://{LOOPBACK}:{port}"
            yield Chain(relay_a, relay_b, url_a, url_b, links, hosts)
        finally:
            for host in reversed(hosts):
                await host.close()
