"""Self-certification and its verification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import load_cases, select
from kvcs_conformance.catalogue import Requirement, Standing
from kvcs_conformance.cli import main
from kvcs_conformance.evidence.files import case_folder
from kvcs_conformance.mutants import MUTANTS
from kvcs_conformance.report import results
from kvcs_conformance.report.certificate import (
    Run,
    Status,
    certificate,
    is_conformant,
    standing,
)
from kvcs_conformance.report.certifying import certified, faults
from kvcs_conformance.report.signature import check_signature, read_public_key, signed
from kvcs_conformance.runner import REFERENCE, run_case, save
from kvcs_conformance.verdicts import Level

CATALOGUE = catalogues.load()
MUTANT = "consumer/skips-digest"
DIGEST = "consumer/checks/digest-mismatch"
COMPAT = "consumer/manifest/compat-mismatch"


def kvcs(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, captured.out, captured.err


def make_run(folder: Path, mutant: str | None = None) -> Path:
    """A run of two consumer cases with its evidence."""
    peers = MUTANTS[mutant].peers if mutant else REFERENCE
    outcomes = []
    for case in select(load_cases(CATALOGUE), [DIGEST, COMPAT]):
        outcome = run_case(case, CATALOGUE, link="memory", peers=peers)
        save(outcome, folder)
        outcomes.append(outcome)
    names = {"consumer": mutant} if mutant else None
    results.write(folder, results.results(outcomes, CATALOGUE, link="memory", seed=0, peers=names))
    return folder


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("bad"), MUTANT)


def entry(found: dict[str, Any], name: str) -> dict[str, Any]:
    (one,) = [one for one in found["requirements"] if one["id"] == name]
    value: dict[str, Any] = one
    return value


def key_file(folder: Path, key: Any) -> Path:
    path = folder / "key.pem"
    form = serialization.PrivateFormat.PKCS8
    none = serialization.NoEncryption()
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, none))
    return path


@pytest.mark.slow
def test_every_must_that_was_not_run_is_open(good: Path) -> None:
    """The denominator is all that binds the role and can be judged, whatever was selected."""
    found = certified([good], "consumer", issued="2030-01-02")
    binding = [
        one
        for one in CATALOGUE.requirements.values()
        if one.level in (Level.MUST, Level.MUST_NOT) and one.standing("consumer") is Standing.JUDGED
    ]
    assert found["counts"]["applicable"] == len(binding)
    assert entry(found, "KVCS-4-22")["status"] == "upheld"
    assert entry(found, "KVCS-5-17")["cases"] == {f"{COMPAT} (memory)": "pass"}
    assert entry(found, "KVCS-4-19") == {
        "id": "KVCS-4-19",
        "level": "MUST",
        "clause": CATALOGUE["KVCS-4-19"].clause,
        "status": "open",
        "cases": {},
        "why": "no case about it was run",
    }
    assert found["conformant"] is False
    assert found["counts"]["failed"] == 0


@pytest.mark.slow
def test_all_that_binds_the_role_is_listed(good: Path) -> None:
    """What is left out stands in the certificate too, with the catalogue's reason."""
    found = certified([good], "consumer", issued="2030-01-02")
    bound = [name for name, one in CATALOGUE.requirements.items() if "consumer" in one.roles]
    assert [one["id"] for one in found["requirements"]] == bound
    assert all(one["why"] for one in found["requirements"] if one["status"] == "excluded")


@pytest.mark.slow
def test_a_contradicted_must_fails(bad: Path) -> None:
    """One failed MUST is told with what was found; the other case of the run still counts."""
    found = certified([bad], None, issued="2030-01-02")
    assert found["subject"] == {"role": "consumer", "peer": MUTANT}
    assert entry(found, "KVCS-4-22")["status"] == "failed"
    assert "fails a check" in entry(found, "KVCS-4-22")["why"]
    assert entry(found, "KVCS-5-17")["status"] == "upheld"


def hand_made(verdict: str, *findings: dict[str, Any], case_id: str = "relay/a") -> dict[str, Any]:
    return {
        "peers": {"relay": "theirs"},
        "link": "memory",
        "cases": [
            {
                "id": case_id,
                "sut": "relay",
                "requires": ["KVCS-8-4", "KVCS-10-8"],
                "verdict": verdict,
                "findings": list(findings),
            }
        ],
    }


def finding(outcome: str, *requires: str) -> dict[str, Any]:
    return {"outcome": outcome, "text": f"it is {outcome}", "requires": list(requires)}


RULE = Requirement(
    "KVCS-8-4", Level.MUST, ("relay",), "8", "A text.", standings={"relay": (Standing.JUDGED, None)}
)


@pytest.mark.parametrize(
    ("verdict", "findings", "status"),
    [
        ("pass", [finding("upheld", "KVCS-8-4")], Status.UPHELD),
        ("advise", [finding("upheld", "KVCS-8-4")], Status.UPHELD),
        ("fail", [finding("contradicted", "KVCS-8-4")], Status.FAILED),
        (
            "fail",
            [finding("contradicted", "KVCS-10-8"), finding("upheld", "KVCS-8-4")],
            Status.UPHELD,
        ),
        (
            "fail",
            [finding("contradicted", "KVCS-10-8"), finding("unseen", "KVCS-8-4")],
            Status.OPEN,
        ),
        ("fail", [finding("contradicted", "KVCS-10-8")], Status.OPEN),
        ("blocked", [finding("contradicted", "KVCS-8-4")], Status.OPEN),
        ("inconclusive", [finding("unseen", "KVCS-8-4")], Status.OPEN),
        ("not-run", [], Status.OPEN),
        ("harness-error", [], Status.OPEN),
        ("unsupported", [finding("unseen", "KVCS-8-4")], Status.OPEN),
    ],
)
def test_what_one_case_says_of_one_requirement(
    verdict: str, findings: list[dict[str, Any]], status: Status, tmp_path: Path
) -> None:
    """A requirement is upheld only by findings about it, and failed only by one against it."""
    run = Run(tmp_path, hand_made(verdict, *findings))
    assert standing(RULE, "relay", [run]).status is status


@pytest.mark.parametrize(("only", "status"), [("memory", "excluded"), ("quic", "open")])
def test_a_case_of_the_other_link(only: str, status: str, tmp_path: Path) -> None:
    """What only the simulated network shows is left out of a run on QUIC; what only QUIC shows
    stays open until there is a run on QUIC."""
    folder = case_folder(tmp_path, "relay/a")
    folder.mkdir(parents=True)
    (folder / "case.json").write_text(json.dumps({"links": {"only": only, "because": "x"}}))
    run = Run(tmp_path, hand_made("not-applicable", finding("unseen")))
    assert standing(RULE, "relay", [run]).status.value == status


def test_the_worst_of_several_runs_counts(tmp_path: Path) -> None:
    """A requirement that one run upholds and another contradicts is failed."""
    runs = [
        Run(tmp_path, hand_made("pass", finding("upheld", "KVCS-8-4"))),
        Run(tmp_path, hand_made("fail", finding("contradicted", "KVCS-8-4"))),
    ]
    assert standing(RULE, "relay", runs).status is Status.FAILED


@pytest.mark.slow
def test_a_requirement_that_is_planned_says_what_it_waits_for(good: Path) -> None:
    """Planned entries are left out with their reason, not counted as upheld."""
    found = certified([good], "consumer", issued="2030-01-02")
    planned = [
        one
        for one in CATALOGUE.requirements.values()
        if "consumer" in one.roles and one.standing("consumer") is Standing.PLANNED
    ]
    assert planned
    for one in planned:
        assert entry(found, one.id)["status"] == "excluded"
        assert entry(found, one.id)["why"] == one.why("consumer")


@pytest.mark.slow
@pytest.mark.parametrize(
    "key", [ed25519.Ed25519PrivateKey.generate(), ec.generate_private_key(ec.SECP256R1())]
)
def test_a_signature_holds_until_something_changes(key: Any, good: Path, tmp_path: Path) -> None:
    """Ed25519 and P-256 keys sign; a changed word, another key and a missing signature show."""
    made = certified([good], "consumer", issued="2030-01-02")
    file = key_file(tmp_path, key)
    sealed = signed(made, file)
    trusted = read_public_key(file)
    assert check_signature(sealed, trusted) is None
    assert "changed after" in str(check_signature({**sealed, "issued": "2031-01-02"}, trusted))
    stranger = ed25519.Ed25519PrivateKey.generate().public_key()
    assert "another key" in str(check_signature(sealed, stranger))
    assert check_signature(made, trusted) == "it is not signed"
    assert check_signature(made, None) is None


@pytest.mark.slow
def test_a_certificate_is_held_against_the_evidence(good: Path, bad: Path) -> None:
    """It verifies with its own runs, and not with others, nor when one octet of them changes."""
    made = certified([good], "consumer", issued="2030-01-02")
    assert faults(made, [good], None) == []
    assert faults(made, [], None) == []
    assert faults(made, [bad], None) != []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"conformant": True}, "called conformant"),
        ({"counts": {"applicable": 1, "upheld": 1, "failed": 0, "open": 0}}, "counts"),
        ({"requirements": []}, "is not the list of all"),
    ],
)
def test_a_certificate_that_contradicts_itself(
    change: dict[str, Any], told: str, good: Path
) -> None:
    """Without any evidence, a certificate must still agree with its own list and the catalogue."""
    made = certified([good], "consumer", issued="2030-01-02")
    assert any(told in fault for fault in faults({**made, **change}, [], None))


@pytest.mark.slow
def test_the_command_certifies_signs_and_verifies(
    bad: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a run to a signed certificate and back, by the command line; a forged one is told."""
    key = key_file(tmp_path, ed25519.Ed25519PrivateKey.generate())
    made = tmp_path / "certificate.json"
    code, out, _ = kvcs(capsys, "certify", bad, "--key", key, "--out", made)
    assert (code, out.splitlines()[0]) == (1, f"consumer {MUTANT}: not conformant")
    code, out, _ = kvcs(capsys, "certify", "--verify", made, bad, "--public-key", key)
    assert (code, out.splitlines()[-2:]) == (
        0,
        ["signed by the key given", "it follows from the evidence"],
    )
    forged = json.loads(made.read_text())
    forged["subject"]["peer"] = "theirs"
    made.write_text(json.dumps(forged))
    code, out, _ = kvcs(capsys, "certify", "--verify", made)
    assert (code, "changed after it was signed" in out) == (1, True)


@pytest.mark.slow
def test_a_result_that_its_evidence_does_not_bear_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A verdict that was edited by hand cannot be certified."""
    run = make_run(tmp_path / "run", MUTANT)
    result = json.loads((run / "results.json").read_text())
    for case in result["cases"]:
        case.update(verdict="pass", reason=None, blame="")
    (run / "results.json").write_text(json.dumps(result))
    code, _, err = kvcs(capsys, "certify", run)
    assert (code, "is not judged as its evidence says" in err) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "give the folder of a run"),
        (["--public-key", "key.pem"], "goes with --verify"),
        (["--verify", "absent.json"], "cannot be read"),
        (["--verify", "wrong.json"], "not a certificate"),
        (["--verify", "wrong.json", "--role", "relay"], "takes RUNs"),
        (["absent"], "no results.json"),
        (["RUN", "--key", "rsa.pem"], "not an Ed25519 or a P-256 key"),
        (["RUN", "--key", "wrong.json"], "not an Ed25519 or a P-256 key"),
        (["RUN", "--role", "relay"], "no case"),
    ],
)
def test_wrong_arguments_are_told(
    arguments: list[str],
    told: str,
    good: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What cannot be certified or verified is one line and exit code 2."""
    monkeypatch.chdir(tmp_path)
    Path("wrong.json").write_text("{}")
    key_file(tmp_path, rsa.generate_private_key(65537, 2048)).rename("rsa.pem")
    given = [str(good) if word == "RUN" else word for word in arguments]
    code, _, err = kvcs(capsys, "certify", *given)
    assert (code, err.count("\n")) == (2, 1)
    assert told in err


def listed(level: str, status: str) -> dict[str, Any]:
    return {"id": "KVCS-8-4", "level": level, "clause": "8", "status": status, "cases": {}}


@pytest.mark.parametrize(
    ("others", "conformant"),
    [
        ([], True),
        ([listed("STATED", "failed")], False),
        ([listed("STATED", "open")], True),
        ([listed("SHOULD", "failed")], True),
        ([listed("MUST NOT", "open")], False),
        ([listed("MUST", "failed")], False),
        ([listed("MUST", "excluded")], True),
    ],
)
def test_what_stands_against_conformance(others: list[dict[str, Any]], conformant: bool) -> None:
    """A MUST that is not upheld, and stated behaviour that is contradicted; nothing else."""
    assert is_conformant([listed("MUST", "upheld"), *others]) is conformant


def test_certificate_of_nothing_judged(tmp_path: Path) -> None:
    """A catalogue without an applicable MUST certifies nobody."""
    (tmp_path / "results.json").write_text("{}")
    empty = catalogues.Catalogue("kvcs", "00", "0" * 64, {})
    run = Run(
        tmp_path,
        {
            "peers": {"relay": "theirs"},
            "catalogue": {},
            "link": "memory",
            "seed": 0,
            "cases": [],
        },
    )
    made = certificate("relay", [run], empty, issued="2030-01-02", harness="0")
    assert (made["conformant"], made["counts"]["applicable"]) == (False, 0)
