"""QUIC over UDP, by aioquic."""

from moqt.drivers.quic.errors import DriverError
from moqt.drivers.quic.host import QuicHost
from moqt.drivers.quic.options import QuicOptions
from moqt.drivers.quic.tls import write_throwaway_certificate

__all__ = ["DriverError", "QuicHost", "QuicOptions", "write_throwaway_certificate"]
