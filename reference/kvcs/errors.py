"""The errors of KVCS, and the one shape in which a defect of peer input is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Defect:
    """One thing that is wrong with an input.

    `name` is permanent and in words ("digest-mismatch"), `clause` a catalogue id ("KVCS-4-22") or
    a profile section ("kvsp-p0 §4"), `what` one sentence: what was found and what would be right.
    `where` is an octet range ("octets 36..67") or a JSON path ("$.segments[0].blocks").
    `mandatory` is False for a check that no MUST of KVCS asks for (reading A6 of the catalogue):
    the caller decides what to do about it.
    """

    name: str
    clause: str
    what: str
    where: str
    mandatory: bool = True

    def __str__(self) -> str:
        return f"{self.where}: {self.what} ({self.clause})"


class KvcsError(Exception):
    """An input was refused; `defects` says why, most important first."""

    def __init__(self, reason: str, defects: Iterable[Defect] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.defects = tuple(defects)


class InputError(KvcsError):
    """What the user of this library or of a program gave is wrong: one line, exit code 2."""


class ProfileError(KvcsError):
    """The KVSP profile cannot do this: unknown codec, descriptor that it does not define."""


class DescriptorError(ProfileError):
    """A Compatibility Descriptor is not what its profile says (kvsp-p0 §4)."""


class CodecError(ProfileError):
    """Encoded Data does not decode to exactly one section (kvsp-p0 §6)."""


class NamespaceError(KvcsError):
    """Octets that are not a KVCS Track Namespace (KVCS 3.1)."""


class TrackNameError(KvcsError):
    """Octets that are not a KVCS Track Name (KVCS 3.2)."""


class PayloadError(KvcsError):
    """Octets or values that are not a KVCS Object payload (KVCS 4)."""


class JsonError(KvcsError):
    """Octets that are not one strict JSON text (RFC 8259, RFC 7493)."""


class ManifestError(KvcsError):
    """Octets that are not a KVCS manifest (KVCS 5)."""


class SignatureError(KvcsError):
    """A COSE_Sign1 that is malformed, or that no known producer key verifies (KVCS 5)."""


def refuse(error: type[KvcsError], subject: str, defects: Iterable[Defect]) -> KvcsError:
    """The exception for `defects`: the first one in its message, all of them in its list."""
    found = tuple(defects)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return error(f"{subject}: {found[0]}{more}", found)
