"""What the tests of the drivers share."""

from __future__ import annotations

from pathlib import Path

import pytest
from moqt.drivers.quic import write_throwaway_certificate


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A throw-away certificate and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    write_throwaway_certificate(cert_file, key_file)
    return cert_file, key_file
