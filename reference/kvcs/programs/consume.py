"""`kvcs consume`: find the KV cache of a prompt, verify it, write it to a file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click
from moqt.wire.errors import RequestErrorCode

from kvcs.authorization import bearer
from kvcs.consumer import Budgets, Consumer, ConsumeRequest, Mode
from kvcs.errors import InputError
from kvcs.identity import profile as profile_of
from kvcs.programs.keys import public_keys
from kvcs.programs.options import (
    FILE,
    Events,
    InputCommand,
    Seconds,
    check_url,
    client_options,
    identity_options,
    range_of,
    read_json,
    read_object,
    scope_key_of,
)
from kvcs.programs.running import Connectivity, Watched, leave, run, say, until
from kvcs.tensorfile import (
    TensorFile,
    check_tokens,
    check_writable,
    read_context,
    restored_layer,
    tensor_geometry,
    write_tensor_file,
)


@click.command(cls=InputCommand)
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option(
    "--to",
    "target",
    type=FILE,
    required=True,
    metavar="FILE",
    help="The safetensors file to write.",
)
@identity_options
@click.option(
    "--like",
    type=FILE,
    metavar="FILE",
    help="Take descriptor and tokens from this safetensors file's metadata.",
)
@click.option(
    "--completed",
    is_flag=True,
    help="FETCH a cache that is complete, instead of subscribing to one that may still grow.",
)
@click.option("--layers", metavar="A-B", help="Only these layers, both ends included.")
@click.option("--blocks", type=click.IntRange(min=1), metavar="N", help="Only the first N blocks.")
@click.option(
    "--producer-key",
    "producers",
    multiple=True,
    metavar="KID=FILE",
    help="Accept only manifests signed with this public key (PEM); may be repeated.",
)
@click.option(
    "--timeout",
    type=Seconds(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Give up after so long, and keep what was verified until then.",
)
@client_options
def consume(
    urls: tuple[str, ...],
    target: Path,
    scope_key: str | None,
    scope_key_file: Path | None,
    profile: str,
    descriptor: Path | None,
    tokens: Path | None,
    like: Path | None,
    completed: bool,
    layers: str | None,
    blocks: int | None,
    producers: tuple[str, ...],
    timeout: float,
    token: str | None,
    events: str | None,
    **transport: Any,
) -> None:
    """Retrieve the KV cache of a prompt from the relay at URL (moqt://HOST:PORT) into a file.

    The longest published prefix of the tokens is looked for; every Object is verified. Further
    URLs are other relays to turn to when the first one lacks something. The file's form is
    described in docs/tensor-files.md; it appears only when it is whole.

    \b
    Exit codes: 0 a cache was written, 1 nothing could be reused, 2 usage error or no relay there.

    \b
    Examples:
      kvcs consume moqt://127.0.0.1:4433 --to copy.safetensors --like cache.safetensors \\
          --scope-key 000102030405060708090a0b0c0d0e0f --insecure
      kvcs consume moqt://relay.example --to part.safetensors --scope-key-file scope.key \\
          --descriptor model.json --tokens prompt.json --completed --layers 0-7
    """
    for url in urls:
        check_url(url)
    given = read_context(like) if like is not None else (None, None)
    context = (
        read_object(descriptor) if descriptor is not None else given[0],
        check_tokens(read_json(tokens), str(tokens)) if tokens is not None else given[1],
    )
    if context[0] is None or context[1] is None:
        raise InputError("give --descriptor FILE.json and --tokens FILE.json, or --like FILE")
    tensor_geometry(context[0], str(like) if descriptor is None else str(descriptor))
    check_writable(target)
    wanted = None if layers is None else range_of(layers, "--layers")
    keys = public_keys("--producer-key", producers)
    request = ConsumeRequest(
        profile=profile_of(profile),
        scope_key=scope_key_of(scope_key, scope_key_file),
        descriptor=context[0],
        tokens=context[1],
        sources=urls,
        mode=Mode.COMPLETED if completed else Mode.LIVE,
        layers=None if wanted is None else (wanted[0], wanted[-1]),
        blocks=blocks,
        authentic=bool(keys),
        producers=keys,
        authorization=(bearer(token.encode()),) if token else (),
        budgets=Budgets(total=timeout),
    )
    program = _Program(request, target, Connectivity(**transport), Events(events))
    run(program.run)


class _Program:
    """One restore from connection to file."""

    def __init__(
        self, request: ConsumeRequest, target: Path, connectivity: Connectivity, tell: Events
    ) -> None:
        self._request = request
        self._target = target
        self._connectivity = connectivity
        self._tell = tell
        self._done = asyncio.Event()
        self._why: dict[str, None] = {}

    async def run(self, stop: asyncio.Event) -> int:
        consumer = Consumer(self._request, self._heard, self._connectivity.session())
        watched = Watched(consumer, self._tell)
        host = self._connectivity.host(watched)
        try:
            await until(stop, self._done)
            if consumer.result is None:
                watched.check_reached(*self._request.sources)
            if stop.is_set() and not self._done.is_set():
                say("stopped before the end: nothing was written")
                return 1
            return self._write(consumer)
        finally:
            await leave(watched, host)

    def _heard(self, event: dict[str, Any]) -> None:
        self._tell(event)
        match event["event"]:
            case "done":
                self._done.set()
            case "source-failed":
                self._why[f"{event['source']}: {event['detail'] or 'the relay is gone'}"] = None
            case "probe-refused":
                told = f"{_code_name(event['code'])} {event['reason']}".strip()
                self._why[f"{event['source']} refuses to list publications: {told}"] = None
            case "publication-discarded":
                detail = event["detail"] or event["reason"]
                self._why[f"publication {event['publication']}: {detail}"] = None

    def _write(self, consumer: Consumer) -> int:
        result, request = consumer.result, self._request
        prompt = len(request.tokens)
        for line in self._why:
            say(line)
        if result is None or not result.reused_blocks:
            say(f"nothing to reuse: compute all {prompt} tokens")
            return 1
        geometry = tensor_geometry(request.descriptor)
        blocks = result.reused_blocks
        layers = {layer: restored_layer(result, geometry, layer, blocks) for layer in result.layers}
        cache = TensorFile(request.descriptor, tuple(request.tokens), layers)
        write_tensor_file(self._target, cache)
        say(
            f"wrote {self._target}: {result.reused_tokens} of {prompt} tokens in {len(layers)} "
            f"layers; compute from token {result.reused_tokens} on"
        )
        return 0


def _code_name(code: int) -> str:
    known = RequestErrorCode._value2member_map_.get(code)
    return f"code {code:#x}" if known is None else RequestErrorCode(code).name
