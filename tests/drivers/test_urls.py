"""The moqt URI."""

from __future__ import annotations

import pytest
from moqt.drivers.urls import MoqtUrl, client_config, parse_url
from moqt.wire.messages import SetupOptions

from tests.drivers.stand_in import stand_in_config


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("moqt://relay.example.com", MoqtUrl("relay.example.com", 443, "relay.example.com", "")),
        ("moqt://h:4443/moq", MoqtUrl("h", 4443, "h:4443", "/moq")),
        ("MOQT://h/a/b?c=d#track:x", MoqtUrl("h", 443, "h", "/a/b?c=d")),
        ("moqt://h/a?", MoqtUrl("h", 443, "h", "/a?")),
        ("moqt://h?q", MoqtUrl("h", 443, "h", "?q")),
        ("moqt://[::1]:9/", MoqtUrl("::1", 9, "[::1]:9", "/")),
    ],
)
def test_url_gives_host_port_authority_and_path(url: str, expected: MoqtUrl) -> None:
    """PATH is path-abempty with the query; an empty query keeps its mark (MOQT-22 §6.1)."""
    assert expected == parse_url(url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://h/", "not a moqt URI"),
        ("relay:4443", "not a moqt URI"),
        ("moqt:///x", "empty host"),
        ("moqt://:4443/x", "empty host"),
        ("moqt://[]:1/", "empty host"),
        ("moqt://[::1/", "IPv6"),
        ("moqt://h:99999/", "port"),
        ("moqt://h:0/", "port"),
        ("moqt://h:4x/", "port"),
        ("moqt://h/a b", "percent-encode"),
        ("moqt://h/é", "percent-encode"),
    ],
)
def test_url_that_is_not_a_moqt_uri_is_refused(url: str, words: str) -> None:
    """A bad URI fails locally and says why; an empty host is one (R018)."""
    with pytest.raises(ValueError, match=words):
        parse_url(url)


def test_client_sends_path_and_authority_of_its_url() -> None:
    """SETUP of a native client carries PATH and AUTHORITY (R023)."""
    config = client_config(parse_url("moqt://h:1/p?q"), stand_in_config())
    assert SetupOptions(path=b"/p?q", authority=b"h:1") == config.setup


def test_options_that_the_configuration_sets_stay() -> None:
    """A test peer may send another PATH than its URL's."""
    setup = SetupOptions(path=b"/other", authority=b"elsewhere")
    config = client_config(parse_url("moqt://h/p"), stand_in_config(setup=setup))
    assert setup == config.setup
