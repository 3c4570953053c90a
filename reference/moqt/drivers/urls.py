"""The moqt URI and the SETUP options that a client derives from it (MOQT-22 §6.1, §9.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moqt.session import SessionConfig

DEFAULT_PORT = 443
_ALLOWED = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#[]@!$&'()*+,;=%"
)


@dataclass(frozen=True, slots=True)
class MoqtUrl:
    """A parsed `moqt://authority/path?query`; `path` includes the query, as PATH carries it."""

    host: str
    port: int
    authority: str
    path: str


def parse_url(url: str) -> MoqtUrl:
    """Parse a moqt URI; a fragment is dropped, because it is never sent.

    Raises ValueError that names what is wrong (MOQT-22 §6.1): another scheme, an empty host, a
    bad port, or a character that a URI cannot hold.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() != "moqt":
        raise ValueError(f"{url!r} is not a moqt URI: write moqt://HOST[:PORT][/PATH]")
    if bad := sorted(set(rest) - _ALLOWED):
        raise ValueError(f"{url!r} holds {bad[0]!r}, which a URI must percent-encode")
    rest = rest.partition("#")[0]
    end = next((i for i, character in enumerate(rest) if character in "/?"), len(rest))
    authority, path = rest[:end], rest[end:]
    host, port = _split_authority(url, authority)
    return MoqtUrl(host=host, port=port, authority=authority, path=path)


def _split_authority(url: str, authority: str) -> tuple[str, int]:
    host_port = authority.rpartition("@")[2]
    if host_port.startswith("["):
        host, bracket, tail = host_port[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise ValueError(f"{url!r} has an ill-formed IPv6 host: write [ADDRESS]:PORT")
        port = tail[1:]
    else:
        host, _, port = host_port.partition(":")
    if not host:
        raise ValueError(f"{url!r} has an empty host: write moqt://HOST[:PORT][/PATH]")
    if not port:
        return host, DEFAULT_PORT
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{url!r} has the port {port!r}: a port is a number from 1 to 65535")
    return host, int(port)


def client_config(url: MoqtUrl, config: SessionConfig) -> SessionConfig:
    """`config` with the PATH and AUTHORITY of `url`, where it does not set its own (R023)."""
    setup = config.setup
    path = url.path.encode() if setup.path is None else setup.path
    authority = url.authority.encode() if setup.authority is None else setup.authority
    return replace(config, setup=replace(setup, path=path, authority=authority))
