"""The evidence folder of a case: logs for viewers, requests, reports, and the list of its files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance import datafiles
from kvcs_conformance.cases import load_cases, select
from kvcs_conformance.errors import UsageError
from kvcs_conformance.evidence.files import case_folder, check_files
from kvcs_conformance.evidence.qlog import header
from kvcs_conformance.evidence.read import read_evidence
from kvcs_conformance.runner import run_case, save

CATALOGUE = catalogues.load()
CASES = load_cases(CATALOGUE, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evidence of one case with a consumer under test."""
    out = tmp_path_factory.mktemp("evidence")
    return _run(out, "consumer/live/exactly-once-join", "memory")


def _run(out: Path, name: str, link: str) -> Path:
    (case,) = select(CASES, [name])
    outcome = run_case(case, CATALOGUE, link=link)
    assert outcome.assessment.verdict == "pass"
    save(outcome, out)
    return case_folder(out, name)


def _schema(name: str) -> jsonschema.Draft202012Validator:
    path = datafiles.folder("testcases") / "schemas" / name
    schema = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_logs_have_the_header_that_viewers_read(folder: Path) -> None:
    """QlogFileSeq as the current draft has it, and the two keys without which qvis loads nothing;
    event names are in the namespaces that the header declares; times do not go back."""
    for path in folder.glob("*.sqlog"):
        first, *events = [json.loads(text) for text in path.read_text().split("\x1e")[1:]]
        assert first["file_schema"] == "urn:ietf:params:qlog:file:sequential"
        assert first["serialization_format"] == "application/qlog+json-seq"
        assert (first["qlog_version"], first["qlog_format"]) == ("0.3", "JSON-SEQ")
        trace = first["trace"]
        assert trace["common_fields"] == {
            "time_format": "relative_to_epoch",
            "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
        }
        kind = "server" if path.name == "relay.sqlog" else "client"
        assert trace["vantage_point"] == {"name": path.stem, "type": kind}
        declared = {schema.split(":")[2] for schema in trace["event_schemas"]}
        assert {event["name"].split(":")[0] for event in events} <= declared
        times = [event["time"] for event in events]
        assert times == sorted(times)
        assert events


def test_a_network_is_a_vantage_point_of_its_own() -> None:
    """The log of the network says so, and that it has no direction."""
    point = header("network", "network", "title")["trace"]["vantage_point"]
    assert point == {"name": "network", "type": "network", "flow": "unknown"}


def test_each_peer_is_asked_by_the_schema(folder: Path) -> None:
    """Publisher and consumer get one request each, as the schema has it; the relay gets none."""
    validator = _schema("peer-request.schema.json")
    requests = {path.stem: json.loads(path.read_text()) for path in folder.glob("requests/*")}
    assert set(requests) == {"publisher", "consumer"}
    for name, request in requests.items():
        validator.validate(request)
        assert request["role"] == name
        assert request["report"] == f"reports/{name}.jsonl"
    spoilt = {**requests["consumer"], "scenario": {}}
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(spoilt)


def test_reports_are_json_lines_by_the_schema(folder: Path) -> None:
    """What the consumer reported stands line by line, up to `done`."""
    validator = _schema("peer-report.schema.json")
    text = (folder / "reports" / "consumer.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        validator.validate(line)
    events = [line["event"] for line in lines]
    assert events.count("object-accepted") == 24
    assert events[-1] == "done"
    for bad in ({}, {"event": "done"}, {"event": "layer-usable"}):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(bad)


def test_every_file_is_listed_with_its_digest(folder: Path) -> None:
    """`files.json` names all others, with octets and SHA-256; the twin's folder has its own."""
    listed = {e["path"]: e for e in json.loads((folder / "files.json").read_text())["files"]}
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    twin = {name for name in there if name.startswith("twin/")}
    assert there - twin == {*listed, "files.json"}
    assert "twin/files.json" in twin
    for name, entry in listed.items():
        octets = (folder / name).read_bytes()
        assert entry["octets"] == len(octets)
        assert entry["sha256"] == hashlib.sha256(octets).hexdigest()


@pytest.mark.parametrize("name", ["relay.sqlog", "requests/consumer.json", "case.json"])
def test_an_altered_file_is_refused_by_name(folder: Path, tmp_path: Path, name: str) -> None:
    """One octet more, or a file less: the complaint names it; the whole folder is accepted."""
    for path in folder.rglob("*"):
        if path.is_file():
            copy = tmp_path / path.relative_to(folder)
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(path.read_bytes())
    read_evidence(tmp_path)
    altered = tmp_path / name
    altered.write_bytes(altered.read_bytes() + b" ")
    with pytest.raises(UsageError, match=f"{name}: not the file that the run wrote"):
        check_files(tmp_path)
    with pytest.raises(UsageError, match=name):
        read_evidence(tmp_path)
    altered.unlink()
    with pytest.raises(UsageError, match=f"{name}: cannot be read"):
        check_files(tmp_path)


@pytest.mark.parametrize("text", ["[]", '{"files": [{}]}', '{"files": [{"path": "a"}]}'])
def test_a_list_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    """A list of another shape is named in one line."""
    (tmp_path / "files.json").write_text(text)
    with pytest.raises(UsageError, match=r"files\.json: not a list of files"):
        check_files(tmp_path)


@pytest.mark.slow
def test_quic_leaves_the_secrets_of_its_connections(tmp_path: Path) -> None:
    """The key log has the NSS format, and each connection is in it from both of its ends."""
    folder = _run(tmp_path, "relay/cache/whole-group", "quic")
    lines: list[list[str]] = [
        line.split() for line in (folder / "keylog.txt").read_text().splitlines()
    ]
    assert all(len(line) == 3 for line in lines)
    secrets: dict[str, list[Any]] = {}
    for label, random, secret in lines:
        secrets.setdefault(f"{label} {random}", []).append(secret)
    connections = [key for key in secrets if key.startswith("CLIENT_TRAFFIC_SECRET_0")]
    assert len(connections) == len(list(folder.glob("*.sqlog"))) - 1
    assert all(len(set(values)) == 1 for values in secrets.values())


@pytest.mark.slow
def test_quic_logs_are_kept_when_asked_for(tmp_path: Path) -> None:
    """One qlog file for each end of each connection of ours, listed with the others."""
    (case,) = select(CASES, ["publisher/retention/stated"])
    outcome = run_case(case, CATALOGUE, link="quic", quic_qlog=True)
    save(outcome, tmp_path)
    folder = case_folder(tmp_path, case.id)
    names = sorted(path.name for path in (folder / "quic").iterdir())
    assert [name.split("-")[0] for name in names] == ["consumer", "publisher"]
    assert len({name.split("-")[1] for name in names}) == 1
    listed = {entry["path"] for entry in json.loads((folder / "files.json").read_text())["files"]}
    assert {f"quic/{name}" for name in names} <= listed
    log = json.loads((folder / "quic" / names[0]).read_text())
    assert log["traces"][0]["events"]
