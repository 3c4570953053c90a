"""`kvcs publish`: offer a KV cache to a relay and serve it."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import Any

import click
from moqt.drivers.quic import QuicHost

from kvcs.authorization import bearer
from kvcs.errors import InputError
from kvcs.geometry import Geometry
from kvcs.identity import profile as profile_of
from kvcs.names import Component
from kvcs.programs.keys import private_key
from kvcs.programs.options import (
    FILE,
    Events,
    InputCommand,
    Seconds,
    check_url,
    client_options,
    hex_of,
    identity_options,
    read_json,
    read_object,
    scope_key_of,
)
from kvcs.programs.running import Connectivity, Watched, leave, run, say, until
from kvcs.publisher import Encoding, Publication, PublicationSpec, Publisher, Signer
from kvcs.tensorfile import Layer, TensorFile, check_tokens, read_tensor_file
from kvcs.tensors import split_layer


@click.command(cls=InputCommand)
@click.argument("url")
@click.option(
    "--from",
    "source",
    type=FILE,
    required=True,
    metavar="FILE",
    help="The cache: a safetensors file with tensors layers.{i}.k and layers.{i}.v.",
)
@identity_options
@click.option(
    "--live",
    type=Seconds(min=0),
    metavar="SECONDS",
    help="Announce first, then publish a layer every so many seconds, as a model that computes.",
)
@click.option(
    "--codec",
    "codecs",
    multiple=True,
    default=("raw",),
    show_default=True,
    metavar="NAME",
    help="How to encode the tensors; may be repeated to offer several encodings.",
)
@click.option("--joint", is_flag=True, help="One track with K and V together, instead of two.")
@click.option(
    "--publication-id",
    metavar="HEX",
    help="The 16 octets that tell this production from others. Default: random.",
)
@click.option(
    "--retention",
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help="How long relays may keep the cache (MAX_CACHE_DURATION). Default: no limit.",
)
@click.option("--sign-key", type=FILE, metavar="FILE", help="Sign the manifest: private key, PEM.")
@click.option("--kid", metavar="TEXT", help="Identifier of the signing key, for consumers.")
@client_options
def publish(
    url: str,
    source: Path,
    scope_key: str | None,
    scope_key_file: Path | None,
    profile: str,
    descriptor: Path | None,
    tokens: Path | None,
    live: float | None,
    codecs: tuple[str, ...],
    joint: bool,
    publication_id: str | None,
    retention: int | None,
    sign_key: Path | None,
    kid: str | None,
    token: str | None,
    events: str | None,
    **transport: Any,
) -> None:
    """Publish the KV cache in a file through the relay at URL (moqt://HOST:PORT).

    Who knows the scope key, the descriptor and the tokens can find it there. The program serves
    the cache until it is stopped with Ctrl-C or SIGTERM. The file's form is described in
    docs/tensor-files.md.

    \b
    Exit codes: 0 it was stopped, 1 the relay went away, 2 usage error or refused by the relay.

    \b
    Examples:
      kvcs publish moqt://127.0.0.1:4433 --from cache.safetensors \\
          --scope-key 000102030405060708090a0b0c0d0e0f --insecure
      kvcs publish moqt://relay.example --from cache.safetensors \\
          --scope-key-file scope.key --live 0.2 --retention 3600
    """
    check_url(url)
    if (sign_key is None) != (kid is None):
        raise InputError("--sign-key and --kid belong together")
    key = scope_key_of(scope_key, scope_key_file)
    cache = read_tensor_file(
        source,
        descriptor=None if descriptor is None else read_object(descriptor),
        tokens=None if tokens is None else check_tokens(read_json(tokens), str(tokens)),
    )
    components = (Component.KV,) if joint else (Component.K, Component.V)
    if not cache.geometry.v_head_dim:
        components = (Component.KV,)
    spec = PublicationSpec(
        profile=profile_of(profile),
        scope_key=key,
        descriptor=cache.descriptor,
        tokens=cache.tokens[: cache.cached],
        publication_id=_publication_id(publication_id),
        encodings=tuple(Encoding(part, codec) for codec in codecs for part in components),
        max_cache_duration=None if retention is None else 1000 * retention,
        signer=Signer(private_key(sign_key), kid.encode()) if sign_key and kid else None,
    )
    tell = Events(events)
    program = _Program(url, cache, spec, live, Connectivity(**transport), tell)
    run(lambda stop: program.run(stop, token))


class _Program:
    """One publication from announcement to good-bye."""

    def __init__(
        self,
        url: str,
        cache: TensorFile,
        spec: PublicationSpec,
        live: float | None,
        connectivity: Connectivity,
        tell: Events,
    ) -> None:
        self._url = url
        self._cache = cache
        self._spec = spec
        self._live = live
        self._connectivity = connectivity
        self._tell = tell
        self._announced = asyncio.Event()
        self._refused: str | None = None

    async def run(self, stop: asyncio.Event, token: str | None) -> int:
        tokens = (bearer(token.encode()),) if token else ()
        publisher = Publisher(tokens=tokens, report=self._heard)
        watched = Watched(publisher, self._tell)
        host = self._connectivity.host(watched)
        publication = publisher.open(self._spec)
        publication.open_segment()
        if self._live is None:
            await self._produce(publication, host, stop, 0)
        publisher.connect(self._url, self._connectivity.session())
        try:
            await until(stop, self._announced, watched.closed)
            if self._refused is not None:
                raise InputError(f"{self._url} refused the publication: {self._refused}")
            watched.check_open(self._url)
            if self._announced.is_set():
                blocks = publication.segments[0].blocks
                say(f"publishing {blocks} blocks of {self._spec.layers} layers at {self._url}")
                fields = publication.namespace.fields
                say(f"namespace {'/'.join(field.hex() for field in fields)}")
            if self._live is not None:
                await self._produce(publication, host, stop, self._live)
            return await self._serve(watched, stop)
        finally:
            publication.end()
            await leave(watched, host)

    async def _serve(self, watched: Watched, stop: asyncio.Event) -> int:
        """Until we are stopped, or the relay is gone."""
        while not stop.is_set():
            if not watched.sessions:
                say(f"{self._url}: {watched.last_words}")
                return 1
            watched.closed.clear()
            await until(stop, watched.closed)
        return 0

    async def _produce(
        self, publication: Publication, host: QuicHost, stop: asyncio.Event, pause: float
    ) -> None:
        for index, layer in self._cache.layers.items():
            if stop.is_set():
                return
            publication.put_layer(0, index, _sections(layer, self._cache.geometry))
            host.wake()
            await until(stop, timeout=pause)
        publication.complete_segment(0)
        host.wake()

    def _heard(self, event: dict[str, Any]) -> None:
        self._tell(event)
        if event["event"] == "announce-refused":
            self._refused = str(event.get("reason") or "no reason given")
            self._announced.set()
        elif event["event"] == "announce-accepted":
            self._announced.set()


def _sections(layer: Layer, geometry: Geometry) -> dict[Component, list[memoryview]]:
    """Sections of each block, by component; without V, K alone is the joint one."""
    keys = split_layer(layer.k, geometry, Component.K)
    if layer.v is None:
        return {Component.KV: keys}
    return {Component.K: keys, Component.V: split_layer(layer.v, geometry, Component.V)}


def _publication_id(text: str | None) -> bytes:
    if text is None:
        return secrets.token_bytes(16)
    octets = hex_of(text, "--publication-id")
    if len(octets) != 16:
        raise InputError(f"--publication-id: 16 octets are needed, not {len(octets)}")
    return octets
