"""Many peers that come, ask, cancel and vanish in seeded disorder; nothing breaks or stays."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
from moqt.drivers.memory import Link
from moqt.origin import LocalTrack
from moqt.relay import Relay, RelayConfig
from moqt.session import Request
from moqt.session.events import ObjectReceived
from moqt.wire.errors import LocalProtocolError
from moqt.wire.filters import NEXT_OBJECT
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName
from moqt.wire.objects import ObjectStatus

from .world import SPACE, OpenOrigin, Peer, World, absolute, make

NAMES = [FullTrackName(SPACE, b"track%d" % number) for number in range(3)]


class Disorder:
    """Two publishers of equal Tracks, three readers, a lower relay, one random course."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        config = RelayConfig(
            cache_budget=60_000, high_water=8_000, low_water=4_000, upstream_timeout=2.0
        )
        self.world = World(config)
        self.world.net = type(self.world.net)(
            seed, link=Link(jitter=0.02, chunk=(1, 4000), unidirectional_streams=8)
        )
        self.world.net.listen("relay", self.world.relay, self.world.session)
        self.lower = Relay(RelayConfig(upstreams=("moqt://relay/",), cache_budget=20_000))
        self.world.net.listen("lower", self.lower, self.world.session)
        self.count = 0
        self.origins: list[tuple[OpenOrigin, list[LocalTrack]]] = []
        self.peers: list[Peer] = []
        self.requests: list[tuple[Peer, Request]] = []
        self.at = dict.fromkeys(NAMES, 0)
        self.written: dict[FullTrackName, list[tuple[int, int, int]]] = {n: [] for n in NAMES}

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def new_origin(self) -> None:
        if len(self.origins) < 2:
            origin = self.world.origin(self.name("origin"))
            tracks = [origin.add_track(name) for name in NAMES]
            for name, track in zip(NAMES, tracks, strict=True):
                for entry in self.written[name]:
                    self.write(track, *entry)
            self.origins.append((origin, tracks))

    def new_peer(self) -> None:
        if len(self.peers) < 3:
            url = self.random.choice(["moqt://relay/", "moqt://lower/"])
            self.peers.append(self.world.peer(self.name("peer"), _accept, url=url))

    def write(self, track: LocalTrack, group: int, number: int, last: int) -> None:
        if last:
            track.publish(make(group, number, b"", status=ObjectStatus.END_OF_GROUP))
        else:
            track.publish(make(group, number, self.payload(track.name, group, number)))

    @staticmethod
    def payload(name: FullTrackName, group: int, number: int) -> bytes:
        return b"%s/%d/%d|" % (name.name, group, number) * 40

    def publish(self) -> None:
        name = self.random.choice(NAMES)
        for _ in range(self.random.randint(1, 6)):
            group, number = divmod(self.at[name], 5)
            self.at[name] += 1
            entry = (group, number, int(number == 4))
            self.written[name].append(entry)
            for _, tracks in self.origins:
                self.write(tracks[NAMES.index(name)], *entry)

    def ask(self) -> None:
        if not self.peers:
            return
        peer = self.random.choice(self.peers)
        name = self.random.choice(NAMES)
        start = (self.random.randint(0, 6), self.random.randint(0, 4))
        end = (start[0] + self.random.randint(0, 3), self.random.randint(0, 4))
        session = peer.session
        order = self.random.choice([None, 1, 2])
        choices = [
            lambda: session.subscribe(
                name,
                Parameters(
                    location_filter=NEXT_OBJECT,
                    fill=Parameters(location_filter=absolute(start), group_order=order),
                ),
            ),
            lambda: session.subscribe(name, Parameters(rendezvous_timeout=500)),
            lambda: session.fetch(
                name, Parameters(location_filter=absolute(start, end), group_order=order)
            ),
            lambda: session.fetch(name, Parameters(fill_timeout=self.random.choice([0, 100]))),
            lambda: session.track_status(name),
            lambda: session.subscribe_namespace(SPACE),
            lambda: session.subscribe_tracks(SPACE),
            lambda: session.publish_namespace((*SPACE, b"sub")),
        ]
        # A prefix that overlaps an own one, or a session that just ended.
        with suppress(LocalProtocolError):
            self.requests.append((peer, self.random.choice(choices)()))

    def change(self) -> None:
        if self.requests:
            _, request = self.random.choice(self.requests)
            update = Parameters(
                forward=self.random.randint(0, 1),
                fill=Parameters(location_filter=absolute((0, 0))),
            )
            # The request may be over, or of a kind that takes no such update.
            with suppress(LocalProtocolError):
                if self.random.random() < 0.5:
                    request.session.cancel(request)
                else:
                    request.session.update(request, update)

    def leave(self) -> None:
        if self.peers and self.random.random() < 0.5:
            self.peers.pop(self.random.randrange(len(self.peers))).session.close()
        elif self.origins:
            origin, _ = self.origins.pop(self.random.randrange(len(self.origins)))
            for session in tuple(origin.sessions):
                session.close()

    def step(self) -> None:
        actions = [self.new_origin, self.new_peer, self.publish, self.ask, self.change, self.leave]
        weights = [2, 3, 8, 8, 4, 1]
        self.random.choices(actions, weights)[0]()
        self.world.settle(self.random.choice([0.0, 0.005, 0.05]))


def _accept(request: Request) -> None:
    if request.kind.name == "PUBLISH":
        request.session.accept(request)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_disorder(seed: int) -> None:
    """Field case 24: no foreign payload ever; when all are gone, nothing is pinned or waiting."""
    disorder = Disorder(seed)
    everyone: list[Peer] = []
    for _ in range(150):
        disorder.step()
        everyone += [peer for peer in disorder.peers if peer not in everyone]
    received = [event for peer in everyone for event in peer.of(ObjectReceived)]
    for event in received:
        if event.object.status is ObjectStatus.NORMAL:
            name = event.request.track
            assert name is not None
            assert bytes(event.object.payload) == disorder.payload(name, *event.object.location)
    assert len(received) > 50
    assert 0 == len(disorder.world.relay._suspects)
    for peer in disorder.peers:
        peer.session.close()
    for origin, _ in disorder.origins:
        for session in tuple(origin.sessions):
            session.close()
    disorder.world.settle(5.0)
    for relay in (disorder.world.relay, disorder.lower):
        for track in relay.tracks.values():
            assert not track.wanted()
            assert not track.readers
            assert not track.fetches
            assert not track.upstreams
            assert not track.store.readers
            assert all(entry.pins == 0 for entry in relay.budget)
        assert relay.budget.used <= relay.config.cache_budget
        assert relay.tracks or not relay.budget.used
