"""The role programs as a user meets them: over loopback, with good input and bad."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click import Command
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from kvcs.bench import stock
from kvcs.bench.processes import processes
from kvcs.identity import profile
from kvcs.model import encode_text
from kvcs.model.base import ModelShape
from kvcs.model.causal import CausalModel
from kvcs.programs.bench import bench
from kvcs.programs.consume import consume
from kvcs.programs.memory import map_objects_alone
from kvcs.programs.publish import publish
from kvcs.programs.relay import relay
from kvcs.tensorfile import Layer, TensorFile, read_tensor_file, write_tensor_file
from moqt.drivers.quic import write_throwaway_certificate

ROOT = Path(__file__).parents[2]
KEY = ["--scope-key", "00" * 32]
SHAPE = ModelShape(layers=3, hidden=32, heads=4, kv_heads=2, head_dim=8, feed_forward=32)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small cache of 5 blocks and a tail, really computed."""
    model = CausalModel(SHAPE)
    tokens = encode_text("a cache of five blocks and a little more of it")
    layers = {c.layer: Layer(c.k, c.v) for c in model.prefill(tokens)}
    path = tmp_path_factory.mktemp("cache") / "cache.safetensors"
    write_tensor_file(path, TensorFile(model.descriptor(8), tuple(tokens), layers))
    return path


@contextmanager
def running(name: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A program in a process of its own, and the first line that it says."""
    code = f"from kvcs.programs.{name} import {name}; {name}()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "reference")},
    )
    assert process.stderr is not None
    try:
        yield process, process.stderr.readline().strip()
    finally:
        process.kill()
        process.communicate()


def stopped(process: subprocess.Popen[str], number: signal.Signals) -> int:
    """The exit code after a signal."""
    process.send_signal(number)
    return process.wait(10)


def refusal(command: Command, *arguments: str) -> str:
    """What a program refuses with: one line on stderr, nothing on stdout, exit code 2."""
    result = CliRunner().invoke(command, arguments)
    assert (2, "") == (result.exit_code, result.stdout)
    assert result.stderr.startswith("error: ")
    assert 1 == result.stderr.count("\n")
    return result.stderr


@pytest.mark.slow
def test_a_file_goes_from_publisher_to_consumer_bit_for_bit(cache: Path, tmp_path: Path) -> None:
    """Relay, live publisher and consumer as three processes; the whole blocks come out equal."""
    copy, events = tmp_path / "copy.safetensors", tmp_path / "events.jsonl"
    with running("relay", "--listen", "127.0.0.1:0") as (server, line):
        url = f"moqt://{line.split()[-1]}"
        assert line.startswith("relay ready on 127.0.0.1:")
        source = [url, "--from", str(cache), "--live", "1", "--insecure", *KEY]
        with running("publish", *source) as (publisher, line):
            assert line == f"publishing 5 blocks of 3 layers at {url}"
            sink = [url, "--to", str(copy), "--like", str(cache), "--events", str(events)]
            # A publisher that held layers back until something arrives would be too late.
            result = CliRunner().invoke(consume, [*sink, "--insecure", "--timeout", "8", *KEY])
            assert (0, "") == (result.exit_code, result.stdout)
            assert f"wrote {copy}: 40 of 46 tokens in 3 layers" in result.stderr
            assert 0 == stopped(publisher, signal.SIGTERM)
        assert 0 == stopped(server, signal.SIGINT)
    original, restored = read_tensor_file(cache), read_tensor_file(copy)
    assert (original.descriptor, original.tokens) == (restored.descriptor, restored.tokens)
    for index, layer in original.layers.items():
        other = restored.layers[index]
        assert layer.v is not None
        assert other.v is not None
        assert layer.k[:40].tobytes() == other.k.tobytes()
        assert layer.v[:40].tobytes() == other.v.tobytes()
    told = [json.loads(line)["event"] for line in events.read_text().splitlines()]
    assert 2 * 3 * 5 == told.count("object-accepted")
    assert [3, 1] == [told.count("layer-usable"), told.count("done")]


@pytest.mark.slow
def test_part_of_a_completed_cache_is_fetched(cache: Path, tmp_path: Path) -> None:
    """Layers 1 to 2 of the first 2 blocks, from a signed publication in one joint track."""
    key = Ed25519PrivateKey.generate()
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    form = PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, form))
    copy = tmp_path / "part.safetensors"
    with running("relay", "--listen", "127.0.0.1:0") as (_, line):
        url = f"moqt://{line.split()[-1]}"
        source = [url, "--from", str(cache), "--joint", "--sign-key", str(private), "--kid", "me"]
        with running("publish", *source, "--insecure", *KEY):
            sink = [url, "--to", str(copy), "--like", str(cache), "--producer-key", f"me={public}"]
            part = ["--completed", "--layers", "1-2", "--blocks", "2", "--insecure"]
            result = CliRunner().invoke(consume, [*sink, *part, *KEY])
            assert (0, "") == (result.exit_code, result.stdout)
    assert f"wrote {copy}: 16 of 46 tokens in 2 layers" in result.stderr


@pytest.mark.slow
def test_scopes_are_kept_apart_by_tokens(cache: Path, tmp_path: Path) -> None:
    """KVCS-8-4: with the scope's token a cache is published and found, without it neither."""
    copy = tmp_path / "copy.safetensors"
    scope = profile("kvsp-p0").scope_id(bytes(32)).hex()
    token = ["--insecure", "--token", "secret"]
    with running("relay", "--listen", "127.0.0.1:0", "--token", f"secret={scope}") as (_, line):
        url = f"moqt://{line.split()[-1]}"
        source = [url, "--from", str(cache), *KEY]
        sink = [url, "--to", str(copy), "--like", str(cache), "--timeout", "2", *KEY]
        assert f"{url} refused the publication" in refusal(publish, *source, "--insecure")
        with running("publish", *source, *token) as (_, line):
            assert f"publishing 5 blocks of 3 layers at {url}" == line
            assert 1 == CliRunner().invoke(consume, [*sink, "--insecure"]).exit_code
            assert not copy.exists()
            assert 0 == CliRunner().invoke(consume, [*sink, *token]).exit_code
            assert copy.exists()


@pytest.mark.slow
def test_what_is_not_published_is_not_written(cache: Path, tmp_path: Path) -> None:
    """Nothing to reuse: exit code 1, and no file."""
    copy = tmp_path / "copy.safetensors"
    with running("relay", "--listen", "127.0.0.1:0") as (_, line):
        url = f"moqt://{line.split()[-1]}"
        sink = [url, "--to", str(copy), "--like", str(cache), "--insecure", "--timeout", "0.5"]
        result = CliRunner().invoke(consume, [*sink, *KEY])
    assert 1 == result.exit_code
    assert "nothing to reuse: compute all 46 tokens\n" == result.stderr
    assert [] == list(tmp_path.iterdir())


@pytest.mark.slow
def test_servers_that_cannot_be_used_are_told_apart(cache: Path, tmp_path: Path) -> None:
    """Nobody there, a certificate that is not trusted, another protocol: a reason each."""
    copy = tmp_path / "copy.safetensors"
    sink = ["--to", str(copy), "--like", str(cache), *KEY]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"moqt://127.0.0.1:{free.getsockname()[1]}"
    assert f"{nobody}: cannot reach 127.0.0.1" in refusal(consume, nobody, *sink)
    with running("relay", "--listen", "127.0.0.1:0") as (_, line):
        url = f"moqt://{line.split()[-1]}"
        assert "certificate" in refusal(consume, url, *sink)
        assert "certificate" in refusal(publish, url, "--from", str(cache), *KEY)
    files = {"cert": tmp_path / "cert.pem", "key": tmp_path / "key.pem"}
    write_throwaway_certificate(*files.values())
    with processes() as start:
        settings = files | {"datagram_size": 1200, "octets": 0}
        port = start("sender", stock.sender, settings).wait("ready", 30)
        other = f"moqt://127.0.0.1:{port}"
        assert "none of the ALPNs moqt-22" in refusal(consume, other, *sink, "--insecure")
    assert not copy.exists()


@pytest.mark.slow
def test_one_relay_of_two_is_enough(cache: Path, tmp_path: Path) -> None:
    """A relay that is not there is named and does no harm; only without any there is an error."""
    copy = tmp_path / "copy.safetensors"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"moqt://127.0.0.1:{free.getsockname()[1]}"
    sink = ["--to", str(copy), "--like", str(cache), "--insecure", "--timeout", "2", *KEY]
    with running("relay", "--listen", "127.0.0.1:0") as (_, line):
        url = f"moqt://{line.split()[-1]}"
        result = CliRunner().invoke(consume, [nobody, url, *sink])
        assert 1 == result.exit_code
        absent, verdict = result.stderr.splitlines()
        assert absent.startswith(f"{nobody}: cannot reach")
        assert "nothing to reuse: compute all 46 tokens" == verdict
        with running("publish", url, "--from", str(cache), "--insecure", *KEY):
            assert 0 == CliRunner().invoke(consume, [url, nobody, *sink]).exit_code


@pytest.mark.slow
def test_a_relay_says_why_its_upstream_is_not_there() -> None:
    """URL and reason, beside the line that the relay is ready itself."""
    with running("relay", "--listen", "127.0.0.1:0") as (_, line):
        url = f"moqt://{line.split()[-1]}"
        with running("relay", "--listen", "127.0.0.1:0", "--upstream", url) as (below, first):
            assert below.stderr is not None
            refused, ready = sorted([first, below.stderr.readline().strip()])
            assert refused.startswith(f"{url}: certificate refused")
            assert ready.startswith("relay ready on")


def test_a_relay_that_cannot_listen_says_why(tmp_path: Path) -> None:
    """A port in use, files that are no certificate, half a pair, a bad grant."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert "in use" in refusal(relay, "--listen", address)
    no_pem = tmp_path / "x.pem"
    no_pem.write_text("nothing")
    pair = ["--cert", str(no_pem), "--key", str(no_pem)]
    assert "certificate" in refusal(relay, "--listen", "127.0.0.1:0", *pair)
    here = ["--listen", "127.0.0.1:0"]
    assert "belong together" in refusal(relay, *here, "--cert", str(no_pem))
    assert "no such file" in refusal(relay, *here, "--cert", "/absent", "--key", "/absent")
    assert "write HOST:PORT" in refusal(relay, "--listen", "here")
    assert "write TEXT=SCOPE" in refusal(relay, *here, "--token", "x")
    assert "16 octets, not 2" in refusal(relay, *here, "--token", "x=0102")
    assert "is not a moqt URI" in refusal(relay, *here, "--upstream", "http://x")


def test_a_publisher_checks_everything_before_it_connects(cache: Path, tmp_path: Path) -> None:
    """URI, file, key, codec, profile and signature options: one line each, and no connection."""
    url, source = "moqt://127.0.0.1:1", ["--from", str(cache)]
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"nothing")
    assert "is not a moqt URI" in refusal(publish, "http://x", *source, *KEY)
    assert "not a readable safetensors file" in refusal(publish, url, "--from", str(bad), *KEY)
    assert "no such file" in refusal(publish, url, "--from", str(tmp_path / "absent"), *KEY)
    assert "at least 16 octets" in refusal(publish, url, *source, "--scope-key", "00")
    assert "either --scope-key" in refusal(publish, url, *source)
    assert "unknown KVSP profile" in refusal(publish, url, *source, *KEY, "--profile", "x")
    assert "lz4" in refusal(publish, url, *source, *KEY, "--codec", "lz4")
    assert "belong together" in refusal(publish, url, *source, *KEY, "--kid", "x")
    assert "16 octets" in refusal(publish, url, *source, *KEY, "--publication-id", "00")
    assert "cannot write" in refusal(publish, url, *source, *KEY, "--events", "/absent/x")
    tokens = tmp_path / "tokens.json"
    tokens.write_text("[1, 2, 3]")
    assert "only 3 are listed" in refusal(publish, url, *source, *KEY, "--tokens", str(tokens))
    assert "a folder, not a file" in refusal(publish, url, "--from", str(tmp_path), *KEY)
    descriptor = tmp_path / "descriptor.json"
    descriptor.write_text('{"kvsp_profile": "p9"}')
    other = ["--descriptor", str(descriptor)]
    assert "--descriptor: not a kvsp-p0" in refusal(publish, url, *source, *KEY, *other)
    assert "certificate in PEM form" in refusal(publish, url, *source, *KEY, "--ca", str(bad))


def test_a_consumer_checks_everything_before_it_connects(cache: Path, tmp_path: Path) -> None:
    """URI, target, context, ranges and keys: one line each, and nothing is written."""
    url, like = "moqt://127.0.0.1:1", ["--like", str(cache), *KEY]
    target = ["--to", str(tmp_path / "x.safetensors")]
    assert "is not a moqt URI" in refusal(consume, "x", *target, *like)
    assert "does not exist" in refusal(consume, url, "--to", "/absent/x", *like)
    assert "give --descriptor FILE.json and --tokens" in refusal(consume, url, *target, *KEY)
    assert "is not a range" in refusal(consume, url, *target, *like, "--layers", "2-1")
    assert "0..2" in refusal(consume, url, *target, *like, "--layers", "1-3")
    assert "write KID=FILE" in refusal(consume, url, *target, *like, "--producer-key", "x")
    descriptor = tmp_path / "descriptor.json"
    descriptor.write_text('{"kvsp_profile": "p9"}')
    other = [*like, "--descriptor", str(descriptor)]
    assert f"{descriptor}: not a kvsp-p0" in refusal(consume, url, *target, *other)
    descriptor.unlink()
    assert [] == list(tmp_path.iterdir())


def test_a_relay_maps_objects_alone_where_malloc_can() -> None:
    """glibc takes the threshold; another C library is left as it is."""
    assert hasattr(ctypes.CDLL(None), "mallopt") is map_objects_alone()


@pytest.mark.parametrize("command", [relay, publish, consume, bench])
def test_help_shows_examples(command: Command) -> None:
    """A newcomer finds out what a program does, every option, and how it is called."""
    result = CliRunner().invoke(command, ["--help"])
    assert 0 == result.exit_code
    assert f"kvcs {command.name} " in result.output.partition("Examples:")[2]
