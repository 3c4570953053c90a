"""How a host speaks QUIC, and what aioquic is told of it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.logger import QuicFileLogger
from cryptography.x509 import load_pem_x509_certificates

from moqt.drivers.quic.errors import DriverError, file_error

DATAGRAM_SIZES = range(1200, 16384)
LARGEST_DATAGRAM_FRAME = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class QuicOptions:
    """How a host speaks QUIC; sizes in octets, times in seconds.

    `datagram_size`: UDP payload, 1200 .. 16383; more than the path carries loses everything.
    `ca_file`: who may sign a server's certificate; without it the system's CAs. `insecure`:
    take any certificate. `keylog_file` gets the TLS secrets, `qlog_dir` a file per connection.
    Windows and stream counts are what the peer is granted ahead of what was consumed.
    `close_patience`: how long a close waits for what was sent before it.
    """

    datagram_size: int = 1200
    ca_file: Path | None = None
    insecure: bool = False
    keylog_file: Path | None = None
    qlog_dir: Path | None = None
    stream_window: int = 1 << 20
    connection_window: int = 16 << 20
    bidirectional_streams: int = 1024
    unidirectional_streams: int = 2048
    idle_timeout: float = 30.0
    connect_timeout: float = 10.0
    close_patience: float = 2.0


class Configurations:
    """Makes the configuration of each connection; owns the files that they log to."""

    def __init__(self, options: QuicOptions) -> None:
        """Raises DriverError for a datagram size out of range or an unusable path."""
        self._options = options
        if options.datagram_size not in DATAGRAM_SIZES:
            raise DriverError(
                f"datagram size {options.datagram_size} is not within "
                f"{DATAGRAM_SIZES.start} .. {DATAGRAM_SIZES[-1]}"
            )
        self._ca: bytes | None = None
        if options.ca_file is not None:
            self._ca = _read("CA file", options.ca_file)
            try:
                load_pem_x509_certificates(self._ca)
            except ValueError as error:
                raise file_error("certificate", options.ca_file, error) from error
        self._qlog: QuicFileLogger | None = None
        if options.qlog_dir is not None:
            if not options.qlog_dir.is_dir():
                raise DriverError(f"{options.qlog_dir} is not a folder to write qlog files to")
            self._qlog = QuicFileLogger(str(options.qlog_dir))
        self._keylog: TextIO | None = None
        if options.keylog_file is not None:
            try:
                self._keylog = options.keylog_file.open("a")
            except OSError as error:
                raise DriverError(
                    f"cannot write the key log {options.keylog_file}: {error.strerror}"
                ) from error

    def client(self, alpn: str, host: str) -> QuicConfiguration:
        """For one connection of ours to `host`, whose certificate is verified."""
        configuration = self._common([alpn], is_client=True)
        configuration.server_name = host
        if self._options.insecure:
            configuration.verify_mode = ssl.CERT_NONE
        elif self._ca is not None:
            configuration.load_verify_locations(cadata=self._ca)
        return configuration

    def server(self, alpns: list[str], cert_file: Path, key_file: Path) -> QuicConfiguration:
        """For all connections of one listening socket; DriverError when a file is no good."""
        configuration = self._common(alpns, is_client=False)
        _read("certificate", cert_file)
        _read("private key", key_file)
        try:
            configuration.load_cert_chain(cert_file)
        except Exception as error:
            raise file_error("certificate", cert_file, error) from error
        try:
            configuration.load_cert_chain(cert_file, key_file)
        except Exception as error:
            raise file_error("private key", key_file, error) from error
        assert configuration.certificate is not None
        assert configuration.private_key is not None
        if configuration.certificate.public_key() != configuration.private_key.public_key():
            raise DriverError(f"the private key {key_file} is not that of {cert_file}")
        return configuration

    def close(self) -> None:
        """Close the key log."""
        if self._keylog is not None:
            self._keylog.close()
            self._keylog = None

    def _common(self, alpns: list[str], *, is_client: bool) -> QuicConfiguration:
        options = self._options
        return QuicConfiguration(
            alpn_protocols=alpns,
            is_client=is_client,
            idle_timeout=options.idle_timeout,
            max_data=options.connection_window,
            max_stream_data=options.stream_window,
            max_datagram_size=options.datagram_size,
            max_datagram_frame_size=LARGEST_DATAGRAM_FRAME,
            secrets_log_file=self._keylog,
            quic_logger=self._qlog,
        )


def _read(what: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise file_error(what, path, error) from error
