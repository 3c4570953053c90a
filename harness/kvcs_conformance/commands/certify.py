"""`kvcs certify`: state what a peer upholds, and verify such a statement."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN...]", type=_PATH)
@click.option(
    "--role",
    type=click.Choice(["publisher", "relay", "consumer"]),
    help="The role to certify; needed when the runs test more than one.",
)
@click.option(
    "--out",
    type=_PATH,
    help="Where to write the certificate; default: certificate.json in the first RUN.",
)
@click.option("--key", type=_PATH, help="Sign with this private key (PEM, Ed25519 or P-256).")
@click.option(
    "--verify",
    "certificate_file",
    type=_PATH,
    metavar="FILE",
    help="Verify a certificate; with RUNs also that it follows from their evidence.",
)
@click.option("--public-key", type=_PATH, help="With --verify: the signer that must have signed.")
def certify(
    runs: tuple[Path, ...],
    role: str | None,
    out: Path | None,
    key: Path | None,
    certificate_file: Path | None,
    public_key: Path | None,
) -> int:
    """Certify the peer that the RUNs (folders that `kvcs run --out` wrote) put to the test.

    Counts every MUST and MUST NOT that binds its role and that a case can judge: what was not run
    counts as open, and what is left out is listed with the reason. Give one run for each link.

    Exit codes: 0 conformant (--verify: the certificate holds), 1 not, 2 usage error.
    """
    if certificate_file is not None:
        if key or out or role:
            raise click.UsageError("--verify takes RUNs and --public-key, nothing else")
        return _verify(certificate_file, runs, public_key)
    if public_key is not None:
        raise click.UsageError("--public-key goes with --verify; sign with --key")
    if not runs:
        raise click.UsageError("give the folder of a run, or --verify FILE")
    return _certify(runs, role, out, key)


def _certify(
    folders: tuple[Path, ...], role: str | None, out: Path | None, key: Path | None
) -> int:
    from datetime import UTC, datetime

    from kvcs_conformance.evidence.files import write_json
    from kvcs_conformance.report.certifying import certified
    from kvcs_conformance.report.signature import signed
    from kvcs_conformance.verdicts import ExitCode

    made = certified(folders, role, issued=datetime.now(UTC).date().isoformat())
    if key is not None:
        made = signed(made, key)
    path = out or folders[0] / "certificate.json"
    write_json(path, made)
    _print(made)
    click.echo(f"written to {path}" + ("" if key else ", not signed (--key signs it)"))
    return int(ExitCode.PASS if made["conformant"] else ExitCode.FAIL)


def _verify(path: Path, folders: tuple[Path, ...], public_key: Path | None) -> int:
    from kvcs_conformance.report.certifying import faults, read_certificate
    from kvcs_conformance.report.signature import read_public_key
    from kvcs_conformance.verdicts import ExitCode

    certificate = read_certificate(path)
    expected = read_public_key(public_key) if public_key is not None else None
    found = faults(certificate, folders, expected)
    for fault in found:
        click.echo(f"{path}: {fault}")
    if found:
        return int(ExitCode.FAIL)
    _print(certificate)
    if "signature" not in certificate:
        click.echo("not signed: anyone could have written it")
    elif expected is None:
        click.echo("signed, by a key that nobody vouched for here (--public-key names the signer)")
    else:
        click.echo("signed by the key given")
    if folders:
        click.echo("it follows from the evidence")
    else:
        click.echo("the evidence was not looked at (give the folders of the runs)")
    return int(ExitCode.PASS)


def _print(certificate: dict[str, Any]) -> None:
    subject, counts = certificate["subject"], certificate["counts"]
    verdict = "conformant" if certificate["conformant"] else "not conformant"
    click.secho(f"{subject['role']} {subject['peer']}: {verdict}", bold=True)
    catalogue = certificate["catalogue"]
    links = " and ".join(run["link"] for run in certificate["runs"])
    click.echo(
        f"{counts['upheld']} of {counts['applicable']} MUST and MUST NOT upheld, "
        f"{counts['failed']} failed, {counts['open']} open; KVCS {catalogue['kvcs']}, "
        f"MOQT draft {catalogue['moqt']}, on {links}"
    )
    entries = certificate["requirements"]
    binding = [entry for entry in entries if entry["level"] in ("MUST", "MUST NOT")]
    for status in ("failed", "open"):
        _print_grouped(status, [entry for entry in binding if entry["status"] == status])
    stated = [entry for entry in entries if entry["level"] == "STATED"]
    _print_grouped("deviates", [entry for entry in stated if entry["status"] == "failed"])
    click.echo(f"stated behaviour: {_tally(stated)}")
    softer = [entry for entry in entries if entry["level"] in ("SHOULD", "MAY")]
    click.echo(f"SHOULD and MAY: {_tally(softer)}")
    left = [entry for entry in binding if entry["status"] == "excluded"]
    if left:
        click.echo(f"{len(left)} MUST and MUST NOT are left out, for these reasons:")
        _print_grouped("left out", left)


def _tally(entries: list[dict[str, Any]]) -> str:
    statuses = [entry["status"] for entry in entries]
    words = {"upheld": "upheld", "failed": "contradicted", "open": "open"}
    return ", ".join(f"{statuses.count(status)} {word}" for status, word in words.items())


def _print_grouped(status: str, entries: Iterable[dict[str, Any]]) -> None:
    """One paragraph for each reason, with all requirements that it holds for."""
    by_reason: dict[str, list[str]] = {}
    for entry in entries:
        by_reason.setdefault(entry.get("why", ""), []).append(entry["id"])
    for why, names in by_reason.items():
        told = ", ".join(names)
        click.echo(click.wrap_text(f"{status}, {why.rstrip('.')}: {told}", 98, "  ", "    "))
