"""What the programs say in SETUP, and the limits that they keep."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from click import Command
from click.testing import CliRunner
from kvcs.model import encode_text
from kvcs.model.base import ModelShape
from kvcs.model.causal import CausalModel
from kvcs.programs import relay as relay_module
from kvcs.programs import running
from kvcs.programs.consume import consume
from kvcs.programs.publish import publish
from kvcs.programs.relay import relay
from kvcs.tensorfile import Layer, TensorFile, write_tensor_file
from moqt.drivers.quic import DriverError
from moqt.endpoint import Endpoint
from moqt.relay import Relay, RelayConfig
from moqt.session import Session, SessionConfig

URL = "moqt://127.0.0.1:1"


class Unplugged:
    """A driver that gets no further than to be told the config of its sessions."""

    configs: list[SessionConfig]

    def __init__(self, endpoint: Endpoint, options: object) -> None:
        endpoint.attach(self)

    async def listen(self, host: str, port: int, config: SessionConfig, **files: Path) -> int:
        """A server's sessions."""
        self._refuse(config)

    def connect(self, url: str, config: SessionConfig) -> Session:
        """A client's session."""
        self._refuse(config)

    def _refuse(self, config: SessionConfig) -> NoReturn:
        self.configs.append(config)
        raise DriverError("unplugged")

    def now(self) -> float:
        """There is no time here."""
        return 0.0

    def wake(self) -> None:
        """There is nobody to wake."""

    async def close(self) -> None:
        """There is nothing to close."""


@pytest.fixture
def unplugged(monkeypatch: pytest.MonkeyPatch) -> list[SessionConfig]:
    """Replaces the QUIC driver; the configs of the sessions that it should open."""
    configs: list[SessionConfig] = []
    monkeypatch.setattr(running, "QuicHost", type("Driver", (Unplugged,), {"configs": configs}))
    return configs


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache of one block."""
    shape = ModelShape(layers=1, hidden=8, heads=1, kv_heads=1, head_dim=8, feed_forward=8)
    model = CausalModel(shape)
    tokens = encode_text("eight or more")
    layers = {c.layer: Layer(c.k, c.v) for c in model.prefill(tokens)}
    path = tmp_path / "cache.safetensors"
    write_tensor_file(path, TensorFile(model.descriptor(8), tuple(tokens), layers))
    return path


def arguments(command: Command, cache: Path) -> list[str]:
    """The least that a program needs."""
    key = ["--scope-key", "00" * 16]
    match command.name:
        case "relay":
            return ["--listen", "127.0.0.1:0"]
        case "publish":
            return [URL, "--from", str(cache), *key]
        case _:
            return [URL, "--to", str(cache.with_name("x")), "--like", str(cache), *key]


@pytest.mark.parametrize("command", [relay, publish, consume])
def test_programs_say_who_they_are_and_what_they_take(
    command: Command, unplugged: list[SessionConfig], cache: Path
) -> None:
    """Name and version, Ranges to filter by (which --blocks needs), a limit of updates."""
    CliRunner().invoke(command, arguments(command, cache))
    (config,) = unplugged
    assert running.implementation() == config.setup.implementation
    assert (16, 16) == (config.setup.max_filter_ranges, config.setup.max_request_updates)


@pytest.mark.parametrize("command", [relay, publish, consume])
def test_programs_keep_their_name_to_themselves(
    command: Command, unplugged: list[SessionConfig], cache: Path
) -> None:
    """MOQT_IMPLEMENTATION is configured off with --anonymous; the rest stays."""
    CliRunner().invoke(command, [*arguments(command, cache), "--anonymous"])
    (config,) = unplugged
    assert config.setup.implementation is None
    assert 16 == config.setup.max_filter_ranges


def test_the_implementation_is_short() -> None:
    """MOQT-22 §19.3: no more than name and version."""
    name, _, version = running.implementation().decode().partition("/")
    assert "kvcs" == name
    assert version.replace(".", "").isalnum()


def relayed(monkeypatch: pytest.MonkeyPatch, *options: str) -> RelayConfig:
    """The config that `kvcs relay` gives to its relay."""
    configs: list[RelayConfig] = []

    def noted(config: RelayConfig) -> Relay:
        configs.append(config)
        return Relay(config)

    monkeypatch.setattr(relay_module, "Relay", noted)
    CliRunner().invoke(relay, ["--listen", "127.0.0.1:0", *options])
    return configs[0]


def test_a_relay_limits_the_requests_of_a_session(
    monkeypatch: pytest.MonkeyPatch, unplugged: list[SessionConfig]
) -> None:
    """R230: by number and by rate, unless told otherwise."""
    config = relayed(monkeypatch)
    assert (1000, 4096) == (config.request_rate, config.request_burst)
    config = relayed(monkeypatch, "--max-requests", "7", "--request-rate", "2")
    assert (2, 7) == (config.request_rate, config.request_burst)
    assert [4096, 7] == [session.max_open_requests for session in unplugged]


def test_a_relay_tells_its_upstream_the_same(
    monkeypatch: pytest.MonkeyPatch, unplugged: list[SessionConfig]
) -> None:
    """Its sessions to other relays have the same SETUP as those from them."""
    config = relayed(monkeypatch)
    assert unplugged[0].setup == config.upstream_session.setup
