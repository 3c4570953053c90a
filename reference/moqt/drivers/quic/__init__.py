"""QUIC over UDP, by aioquic."""

import logging

from moqt.drivers.quic.errors import DriverError
from moqt.drivers.quic.host import QuicHost
from moqt.drivers.quic.options import QuicOptions
from moqt.drivers.quic.tls import write_throwaway_certificate

# What aioquic warns of ends a connection, and is then in the reason that our session gives.
logging.getLogger("quic").addHandler(logging.NullHandler())

__all__ = ["DriverError", "QuicHost", "QuicOptions", "write_throwaway_certificate"]
