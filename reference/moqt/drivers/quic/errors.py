"""What cannot be started, and why a connection did not come up, in words."""

from __future__ import annotations

import ssl

from aioquic.quic.events import ConnectionTerminated
from aioquic.quic.packet import QuicErrorCode
from aioquic.tls import AlertDescription

_CERTIFICATE_ALERTS = frozenset(
    {
        AlertDescription.bad_certificate,
        AlertDescription.certificate_expired,
        AlertDescription.certificate_unknown,
        AlertDescription.certificate_revoked,
        AlertDescription.unsupported_certificate,
        AlertDescription.unknown_ca,
    }
)
_CRYPTO_ERRORS = range(QuicErrorCode.CRYPTO_ERROR, QuicErrorCode.CRYPTO_ERROR + 256)


class DriverError(Exception):
    """The driver cannot do what it was set up for: one plain sentence."""


def listen_error(host: str, port: int, error: OSError) -> DriverError:
    """Why a server address cannot be used."""
    return DriverError(f"cannot listen on {host}:{port}: {error.strerror or error}")


def file_error(what: str, path: object, error: Exception) -> DriverError:
    """Why a file that TLS needs cannot be used."""
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
        return DriverError(f"cannot read the {what} {path}: {error.strerror or error}")
    return DriverError(f"{path} does not hold a {what} in PEM form: {error}")


def close_reason(event: ConnectionTerminated, alpns: list[str] | None) -> tuple[int | None, str]:
    """Code and reason of a closed connection; the code is None unless the application gave it."""
    code, reason = int(event.error_code), event.reason_phrase
    if code not in _CRYPTO_ERRORS:
        if event.frame_type is None:
            return code, reason
        return None, f"transport error 0x{code:x}: {reason}" if reason else _transport(code)
    alert = code - QuicErrorCode.CRYPTO_ERROR
    if alert == AlertDescription.no_application_protocol or "ALPN" in reason:
        return None, f"the peer takes none of the ALPNs {', '.join(alpns or ())}"
    if alert in _CERTIFICATE_ALERTS:
        return None, f"certificate refused: {reason or AlertDescription(alert).name}"
    return None, f"TLS alert {alert}: {reason}"


def _transport(code: int) -> str:
    return f"transport error 0x{code:x}"
