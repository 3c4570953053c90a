"""`kvcs relay`: carry KV caches between publishers and consumers, and keep them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from moqt.drivers.quic import DriverError
from moqt.relay import Relay, RelayConfig
from moqt.relay.config import allow
from moqt.session import SessionConfig

from kvcs.authorization import bearer, scope_policy
from kvcs.errors import InputError
from kvcs.programs.memory import map_objects_alone
from kvcs.programs.options import (
    FILE,
    Events,
    InputCommand,
    address_of,
    check_files,
    check_url,
    hex_of,
    transport_options,
)
from kvcs.programs.running import Connectivity, Watched, certificate, leave, run, say

MIB = 2**20


@click.command(cls=InputCommand)
@click.option(
    "--listen",
    required=True,
    metavar="HOST:PORT",
    help="UDP address to serve, such as 127.0.0.1:4433; port 0 takes any free one.",
)
@click.option("--cert", type=FILE, metavar="FILE", help="Certificate chain, PEM.")
@click.option("--key", type=FILE, metavar="FILE", help="Private key of the certificate, PEM.")
@click.option(
    "--upstream",
    "upstreams",
    multiple=True,
    metavar="URL",
    help="Relay to ask for what no publisher here has; may be repeated.",
)
@click.option(
    "--upstream-token",
    metavar="TEXT",
    help="Authorization token to show to upstream relays.",
)
@click.option("--ca", type=FILE, metavar="FILE", help="Trust FILE (PEM) for upstream relays.")
@click.option("--insecure", is_flag=True, help="Accept any certificate of upstream relays.")
@click.option(
    "--cache",
    type=click.IntRange(min=0),
    default=1024,
    show_default=True,
    metavar="MIB",
    help="Memory for cached Objects; the least recently used go first.",
)
@click.option(
    "--backlog",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    metavar="MIB",
    help="What one subscription may lag behind before it is ended (TOO_FAR_BEHIND).",
)
@click.option(
    "--max-requests",
    type=click.IntRange(min=1),
    default=4096,
    show_default=True,
    metavar="N",
    help="Requests that one session may have open at once (EXCESSIVE_LOAD beyond).",
)
@click.option(
    "--request-rate",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Requests per second that one session may make in the long run (EXCESSIVE_LOAD beyond); "
    "--max-requests of them may come at once.",
)
@click.option(
    "--token",
    "grants",
    multiple=True,
    metavar="TEXT=SCOPE",
    help="Let who presents TEXT use the scope SCOPE (its 16 octets in hexadecimal, the second "
    "field of the namespace that `kvcs publish` prints); may be repeated. Without this option "
    "everybody may do everything.",
)
@transport_options
def relay(
    listen: str,
    cert: Path | None,
    key: Path | None,
    upstreams: tuple[str, ...],
    cache: int,
    backlog: int,
    max_requests: int,
    request_rate: int,
    upstream_token: str | None,
    grants: tuple[str, ...],
    events: str | None,
    **transport: Any,
) -> None:
    """Run a relay until it is stopped with Ctrl-C or SIGTERM.

    Without --cert and --key it makes a throw-away certificate for this run; publishers and
    consumers then need --insecure.

    \b
    Examples:
      kvcs relay --listen 127.0.0.1:4433
      kvcs relay --listen [::]:443 --cert chain.pem --key key.pem --cache 4096
      kvcs relay --listen 127.0.0.1:4434 --upstream moqt://127.0.0.1:4433 --insecure
    """
    address = address_of(listen)
    if (cert is None) != (key is None):
        raise InputError("--cert and --key belong together")
    check_files(cert, key)
    connectivity = Connectivity(**transport)
    session = connectivity.session()
    config = RelayConfig(
        cache_budget=cache * MIB,
        subscriber_budget=backlog * MIB,
        upstream_tokens=(bearer(upstream_token.encode()),) if upstream_token else (),
        upstreams=tuple(map(check_url, upstreams)),
        upstream_session=session,
        request_rate=request_rate,
        request_burst=max_requests,
        authorise=scope_policy(_grants(grants)) if grants else allow,
    )
    tell = Events(events)
    map_objects_alone()
    session = replace(session, max_open_requests=max_requests)
    with certificate(cert, key) as files:
        run(lambda stop: _serve(stop, address, files, config, session, connectivity, tell))


async def _serve(
    stop: asyncio.Event,
    address: tuple[str, int],
    files: tuple[Path, Path],
    config: RelayConfig,
    session: SessionConfig,
    connectivity: Connectivity,
    tell: Events,
) -> int:
    watched = Watched(Relay(config), tell, complain=True)
    driver = connectivity.host(watched)
    host, port = address
    try:
        port = await driver.listen(host, port, session, cert_file=files[0], key_file=files[1])
        say(f"relay ready on {host}:{port}")
        await stop.wait()
    except DriverError as error:
        raise InputError(str(error)) from None
    finally:
        await leave(watched, driver)
    return 0


def _grants(arguments: tuple[str, ...]) -> dict[bytes, set[bytes]]:
    grants: dict[bytes, set[bytes]] = {}
    for argument in arguments:
        token, equals, scope = argument.rpartition("=")
        if not equals or not token:
            raise InputError(f"--token {argument!r}: write TEXT=SCOPE")
        octets = hex_of(scope, f"--token {token}=")
        grants.setdefault(token.encode(), set()).add(octets)
    return grants
