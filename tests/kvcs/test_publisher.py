"""The publisher on the simulated network: order, marks, manifests, ends, refusal."""

from __future__ import annotations

import pytest
from kvcs.manifest import parse_manifest
from kvcs.names import Component
from kvcs.publisher import (
    Encoding,
    ProductionError,
    Publication,
    PublicationState,
    Publisher,
)
from moqt.session import SessionConfig
from moqt.wire.errors import RequestErrorCode, RequestRefused
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object, ObjectStatus
from moqt.wire.properties import PropertyType, decode_properties

from tests.kvcs.caches import layer_sections, tokens
from tests.kvcs.chain import OTHER_ID, Scene, produce, put_layer, spec


class Recording(Publication):
    """Keeps what goes out, in order."""

    def publish(self, track: object, item: Object) -> None:
        self.out = getattr(self, "out", [])
        self.out.append((str(track), item))
        super().publish(track, item)  # type: ignore[arg-type]


def opened(kind: type[Publication] = Publication, **members: object) -> Publication:
    publisher = Scene().publisher(kind=kind)
    return publisher.open(spec(**members))  # type: ignore[arg-type]


def test_objects_go_out_layer_by_layer_with_their_marks() -> None:
    """KVCS-3.3-2, KVCS-3.3-6 to KVCS-3.3-8: blocks, End of Group at {g, n}, End of Track {L, 0}."""
    publication = opened(Recording, blocks=2, layers=2)
    assert isinstance(publication, Recording)
    produce(publication)
    status = ObjectStatus
    expected = []
    for group in range(2):
        expected += [(group, block, status.NORMAL) for block in range(2)]
        expected.append((group, 2, status.END_OF_GROUP))
    expected.append((2, 0, status.END_OF_TRACK))
    for track in ("k.raw.s0", "v.raw.s0"):
        found = [(*item.location, item.status) for name, item in publication.out if name == track]
        assert expected == found


def test_the_manifest_goes_out_first_and_says_what_there_is() -> None:
    """KVCS-6-2, KVCS-5-1, KVCS-5-15: version 0 before any data, the last one complete."""
    publication = opened(Recording, blocks=2, layers=2)
    assert isinstance(publication, Recording)
    produce(publication)
    assert "manifest" == publication.out[0][0]
    versions = [item for name, item in publication.out if name == "manifest"]
    assert [Location(0, 0), Location(1, 0)] == [item.location for item in versions]
    manifests = [parse_manifest(item.payload) for item in versions]
    assert [False, True] == [item.segments[0].complete for item in manifests]
    digests = manifests[1].segments[0].object_digests
    assert digests is not None
    assert {2} == {len(groups) for groups in digests.values()}


def test_a_version_appears_at_least_every_eight_layers() -> None:
    """KVCS-5-10: 20 layers give versions at 8 and 16 besides the first and the last."""
    publication = opened(layers=20)
    part = publication.open_segment()
    versions = []
    for layer in range(20):
        put_layer(publication, part.number, layer)
        versions.append(publication.version)
    assert [0] * 7 + [1] * 8 + [2] * 5 == versions
    publication.complete_segment(0)
    assert 3 == publication.version


@pytest.mark.parametrize(
    ("layers", "expected"),
    [(80, {0: 0, 1: 1, 40: 64, 79: 126}), (32, {31: 124}), (4, {0: 0, 1: 32, 3: 96})],
)
def test_earlier_layers_have_the_higher_priority(layers: int, expected: dict[int, int]) -> None:
    """KVCS-3.4-5: floor(128 g / L)."""
    publication = opened(layers=layers)
    assert expected == {layer: publication.priority_of(layer) for layer in expected}


def test_the_manifest_has_priority_zero_and_data_its_layers() -> None:
    """KVCS-3.4-5, KVCS-3.4-6: as each Object carries it."""
    publication = opened(Recording, layers=4)
    assert isinstance(publication, Recording)
    produce(publication)
    found = {
        (name == "manifest", item.location.group if name != "manifest" else 0, item.priority)
        for name, item in publication.out
    }
    data = {(False, group, 32 * group) for group in range(5)}
    assert {(True, 0, 0), *data} == found


def test_track_properties_hold_the_retention_and_no_timeout() -> None:
    """KVCS-6-3 to KVCS-6-5: MAX_CACHE_DURATION only, on every track."""
    publisher = Scene().publisher()
    publication = publisher.open(spec(max_cache_duration=300_000))
    produce(publication)
    found = {
        name.name: decode_properties(track.properties) for name, track in publisher.tracks.items()
    }
    retention = ((PropertyType.MAX_CACHE_DURATION, 300_000),)
    assert dict.fromkeys([b"manifest", b"k.raw.s0", b"v.raw.s0"], retention) == found


def test_several_encodings_are_each_complete() -> None:
    """KVCS-3.2-3, KVCS-3.2-4, KVCS-4-17: kv holds K then V, and its digest is the layer digest."""
    pair = (Encoding(Component.K), Encoding(Component.V), Encoding(Component.KV))
    publication = opened(Recording, blocks=2, layers=1, encodings=pair)
    assert isinstance(publication, Recording)
    produce(publication)
    data: dict[str, list[bytes]] = {}
    for name, item in publication.out:
        if name != "manifest" and item.status is ObjectStatus.NORMAL:
            data.setdefault(name, []).append(bytes(item.payload[68:]))
    joined = [k + v for k, v in zip(data["k.raw.s0"], data["v.raw.s0"], strict=True)]
    assert joined == data["kv.raw.s0"]


def test_each_pass_of_a_chunked_prefill_is_a_segment() -> None:
    """KVCS-3.3-3, A12: the namespace is that of the first chunk, Token Start goes on."""
    publication = opened(Recording, blocks=5, segment_blocks=2, layers=1)
    assert isinstance(publication, Recording)
    assert publication.keys[1] == publication.namespace.anchor_key
    produce(publication)
    publication.open_segment(2, 2)
    put_layer(publication, 1, 0)
    publication.complete_segment(1)
    starts = [
        int.from_bytes(item.payload[16:24])
        for name, item in publication.out
        if name == "k.raw.s1" and item.status is ObjectStatus.NORMAL
    ]
    assert [8, 12] == starts


def test_appended_tokens_become_a_segment() -> None:
    """KVCS-5-15: a turn appends its tokens; the manifest lists both segments."""
    publication = opened(Recording, blocks=2, layers=1)
    assert isinstance(publication, Recording)
    produce(publication)
    publication.extend(tokens(1, first=9))
    produce(publication)
    last = [item for name, item in publication.out if name == "manifest"][-1]
    segments = parse_manifest(last.payload).segments
    assert [(0, 2), (2, 1)] == [(item.first_block, item.blocks) for item in segments]


def test_a_second_put_of_a_location_raises() -> None:
    """KVCS-6-7: nothing goes out twice."""
    publication = opened(layers=2)
    publication.open_segment()
    put_layer(publication, 0, 0)
    with pytest.raises(ProductionError, match="published already"):
        put_layer(publication, 0, 0)


@pytest.mark.parametrize(("first_block", "blocks"), [(1, 2), (0, 2), (0, 4)])
def test_segment_0_covers_what_its_anchor_says(first_block: int, blocks: int) -> None:
    """KVCS-2-1, KVCS-2-3: another range would be announced under a false name."""
    with pytest.raises(ProductionError, match="starts at block 0 and covers 3 blocks"):
        opened(blocks=3).open_segment(first_block, blocks)


def test_a_section_of_the_wrong_size_goes_nowhere() -> None:
    """KVCS-4-15: the geometry of the descriptor decides."""
    publication = opened(blocks=1, layers=1)
    publication.open_segment()
    sections = layer_sections(0, range(1))
    sections[Component.V] = [b"short"]
    with pytest.raises(ProductionError, match="32 octets"):
        publication.put_layer(0, 0, sections)


def test_a_stopped_publication_takes_nothing_and_a_new_one_starts() -> None:
    """KVCS-3.4-4: the replacement has another Publication ID and the same fields before it."""
    publisher = Scene().publisher()
    wrong = publisher.open(spec())
    wrong.open_segment()
    put_layer(wrong, 0, 0)
    wrong.stop("a wrong layer")
    assert PublicationState.STOPPED is wrong.state
    with pytest.raises(ProductionError, match="stopped"):
        put_layer(wrong, 0, 1)
    right = publisher.open(spec(publication_id=OTHER_ID))
    assert wrong.namespace.prefix(4) == right.namespace.prefix(4)
    produce(right)
    assert PublicationState.RUNNING is right.state


class Refusing(Publisher):
    """Stands in for a relay that refuses every namespace."""

    def authorise(self, request: object) -> None:
        raise RequestRefused("no token for this scope", RequestErrorCode.UNAUTHORIZED)


def test_a_refused_publisher_does_not_carry_on() -> None:
    """KVCS-6-1: the refusal is an event, and nothing more is published."""
    scene = Scene()

    scene.network.listen("relay", Refusing(), SessionConfig())
    heard: list[dict[str, object]] = []
    publisher = Publisher(report=heard.append)
    scene.network.client("producer", publisher)
    publisher.connect("moqt://relay/", SessionConfig())
    publication = publisher.open(spec())
    publication.open_segment()
    scene.network.run(1.0)
    assert PublicationState.REFUSED is publication.state
    assert RequestErrorCode.UNAUTHORIZED == heard[-2]["code"]
    assert ["announce-refused", "refused"] == [item["event"] for item in heard[-2:]]
    with pytest.raises(ProductionError, match="refused"):
        put_layer(publication, 0, 0)


def test_the_full_namespace_is_the_only_name() -> None:
    """KVCS-3.1-1: every track is under the five fields."""
    publisher = Scene().publisher()
    publication = publisher.open(spec())
    publication.open_segment()
    fields = publication.namespace.fields
    names = (b"manifest", b"k.raw.s0", b"v.raw.s0")
    assert {FullTrackName(fields, name) for name in names} == set(publisher.tracks)


def test_a_publication_id_is_used_once() -> None:
    """R013, KVCS-3.1-5: a publisher never opens the same names again, not even after a stop."""
    publisher = Scene().publisher()
    publication = publisher.open(spec())
    produce(publication)
    with pytest.raises(ProductionError, match="was used before"):
        publisher.open(spec())
    publication.stop("a wrong block")
    with pytest.raises(ProductionError, match="was used before"):
        publisher.open(spec())
    again = publisher.open(spec(publication_id=OTHER_ID))
    assert publication.namespace.fields[:4] == again.namespace.fields[:4]
    assert publication.namespace.fields != again.namespace.fields


def test_publication_ids_are_drawn() -> None:
    """KVCS-3.1-5: 16 octets from the source of randomness that the publisher was given."""
    given = iter(range(256))
    publisher = Publisher(random=lambda count: bytes(next(given) for _ in range(count)))
    assert bytes(range(16)) == publisher.choose_publication_id()
    assert bytes(range(16, 32)) == publisher.choose_publication_id()
    assert 16 == len(Publisher().choose_publication_id())
