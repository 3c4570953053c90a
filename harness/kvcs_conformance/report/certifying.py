"""Making a certificate from the folders of runs, and holding one against them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kvcs_conformance import catalogue as catalogues
from kvcs_conformance import datafiles
from kvcs_conformance.catalogue import ROLES
from kvcs_conformance.errors import UsageError
from kvcs_conformance.evidence.files import read_json
from kvcs_conformance.recheck import recheck
from kvcs_conformance.report import results
from kvcs_conformance.report.certificate import Run, certificate, counts, is_conformant
from kvcs_conformance.report.signature import PublicKey, check_signature

_JUDGED = ("id", "verdict", "reason", "blame", "findings")


def certified(folders: Sequence[Path], role: str | None, *, issued: str) -> dict[str, Any]:
    """The certificate that these runs give.

    Raises UsageError when they are not of one peer, were judged under another catalogue than
    today's, or are not what their own evidence says.
    """
    runs = [Run(folder, results.read(folder)) for folder in folders]
    role = role or _role(runs)
    if not any(case["sut"] == role for run in runs for case in run.result["cases"]):
        raise UsageError(f"no case of these runs puts a {role} to the test")
    names = {run.result["peers"].get(role) for run in runs}
    if len(names) != 1:
        raise UsageError(f"the runs have different peers as {role}: {', '.join(map(str, names))}")
    catalogue = catalogues.load()
    for run in runs:
        if run.result["catalogue"]["sha256"] != catalogue.sha256:
            raise UsageError(
                f"{run.folder}: judged under another catalogue; run it again, or see what changed "
                "with `kvcs diff --catalogues`"
            )
        if changed := _rejudged(run, catalogue):
            raise UsageError(f"{run.folder}: {changed}")
    return certificate(role, runs, catalogue, issued=issued, harness=version("kvcs-conformance"))


def _role(runs: Sequence[Run]) -> str:
    """The only role that is tested with a peer other than the reference, or the only one at all."""
    tested = {case["sut"] for run in runs for case in run.result["cases"]}
    peers = runs[0].result["peers"]
    foreign = sorted(role for role in tested if peers.get(role) != "reference")
    choice = foreign or sorted(tested)
    if len(choice) != 1:
        raise UsageError(f"say which role to certify: --role {' or --role '.join(choice or ROLES)}")
    return str(choice[0])


def _rejudged(run: Run, catalogue: catalogues.Catalogue) -> str | None:
    """What of a result is not what its evidence says."""
    again = recheck(run.folder, run.result, catalogue)
    for was, now in zip(run.result["cases"], again["cases"], strict=True):
        if any(was[name] != now[name] for name in _JUDGED):
            return f"{was['id']} is not judged as its evidence says (see `kvcs recheck`)"
    return None


def read_certificate(path: Path) -> dict[str, Any]:
    """A certificate from a file; raises UsageError when it is none."""
    from jsonschema import Draft202012Validator

    value: dict[str, Any] = read_json(path)
    schema = read_json(datafiles.folder("reports") / "certificate.schema.json")
    wrong = next(Draft202012Validator(schema).iter_errors(value), None)
    if wrong is not None:
        raise UsageError(f"{path}: not a certificate: {wrong.message[:200]}")
    return value


def faults(
    stated: Mapping[str, Any], folders: Sequence[Path], expected: PublicKey | None
) -> list[str]:
    """What speaks against a certificate, one line each; with `folders` it is made anew from their
    evidence and must come out the same."""
    wrong = check_signature(stated, expected)
    found = [wrong] if wrong else []
    found += _contradictions(stated)
    if folders and not found:
        made = certified(folders, stated["subject"]["role"], issued=stated["issued"])
        made["harness"] = stated["harness"]
        for name, value in made.items():
            if value != stated[name]:
                found.append(f"its {name!r} is not what the evidence gives")
    return found


def _contradictions(stated: Mapping[str, Any]) -> list[str]:
    """Where a certificate contradicts itself, or leaves out what binds the role."""
    found = []
    if counts(stated["requirements"]) != stated["counts"]:
        found.append("its counts are not those of its requirements")
    if is_conformant(stated["requirements"]) != stated["conformant"]:
        found.append("it is called conformant (or not) against its own requirements")
    catalogue = catalogues.load()
    if stated["catalogue"]["sha256"] != catalogue.sha256:
        return [*found, "it rests on another revision of the catalogue than this harness has"]
    role = stated["subject"]["role"]
    bound = {name for name, entry in catalogue.requirements.items() if role in entry.roles}
    if bound != {entry["id"] for entry in stated["requirements"]}:
        found.append(f"its list is not the list of all that binds a {role}")
    return found
