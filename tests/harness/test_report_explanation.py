"""The explanation of a case: what every report shows of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest
from kvcs_conformance.cli import main
from kvcs_conformance.errors import UsageError
from kvcs_conformance.evidence.files import case_folder
from kvcs_conformance.evidence.read import Record
from kvcs_conformance.evidence.write import list_files, write_evidence
from kvcs_conformance.report.explain import as_text, find
from kvcs_conformance.report.explanation import Bearing, Explanation, explain_case
from kvcs_conformance.report.octets import decode
from kvcs_conformance.report.plain import plain

from tests.harness.evidence import evidence, payload, report
from tests.harness.reports import CATALOGUE, case, hostile, result, write_run

NAME = "consumer/some/case"


def explained(tmp_path: Path, **more: object) -> Explanation:
    """The explanation of one failing case with hand-made evidence."""
    made = result([case(NAME, "fail", **more)])
    return explain_case(write_run(tmp_path, made), made, made["cases"][0], CATALOGUE)


def test_it_says_where_and_what_happened_at_both_ends(tmp_path: Path) -> None:
    """The deciding event, those before it on its node, and those of the node that sent it."""
    told = explained(tmp_path, finding={"node": "consumer", "index": 5})
    assert told.place == "consumer.sqlog:7"
    assert told.bearing is Bearing.EXACT
    assert told.before is not None
    assert told.before.events[-1].text == "object received k.raw.s0 (0, 0) 72 octets"
    assert told.before.events[-2].text == "received SUBSCRIBE_OK k.raw.s0"
    assert told.opposite is not None
    assert told.opposite.node == "relay"
    assert told.opposite.events[-1].text == "object sent k.raw.s0 (0, 0) 72 octets"


def test_the_nearest_event_stands_for_what_is_absent(tmp_path: Path) -> None:
    """A finding without an event is shown at the last Object before the Location that it speaks
    of, as another than the peer under test received it."""
    finding = {"text": "k.raw.s0: no End of Group", "expected": "a mark at (0, 1)"}
    made = result([case("relay/some/case", "fail", finding=finding)])
    told = explain_case(write_run(tmp_path, made), made, made["cases"][0], CATALOGUE)
    assert (told.place, told.bearing) == ("consumer.sqlog:8", Bearing.NEAREST)
    assert "no single event shows it" in as_text(told, tmp_path)


def test_octets_of_a_payload_have_the_names_of_their_fields(tmp_path: Path) -> None:
    """Offset, octets, field and value, as KVCS 4 lays the header out."""
    octets = payload(0, 0)[8:16].hex()
    finding = {"node": "consumer", "index": 5, "octets": octets, "offset": 8}
    told = explained(tmp_path, finding=finding)
    assert told.octets is not None
    assert told.octets.structure == "payload"
    assert [(f.offset, f.octets, f.name, f.value) for f in told.octets.fields] == [
        (8, "00 00 00 00", "Layer", "0"),
        (12, "00 00 00 00", "Block Index", "0"),
    ]


def test_octets_of_a_message_begin_with_its_type(tmp_path: Path) -> None:
    """The raw octets of a control message are named along the draft's tables."""
    finding = {"node": "consumer", "index": 4, "octets": "0400"}
    told = explained(tmp_path, finding=finding)
    assert told.octets is not None
    assert told.octets.structure == "control message"
    assert told.octets.fields[0].name == "Message Type"
    assert told.octets.fields[0].value == "0x4 SUBSCRIBE_OK"


def test_octets_of_an_attempt_are_named_when_they_are_a_message() -> None:
    """What a scripted node wrote raw is explained as far as it can be, legal or not."""
    record = Record("hostile", 0, 0.0, "kvcs:attempt-lives", {"attempt": "long", "what": "x"})
    found = decode({"octets": "10000100"}, record)
    assert found is not None
    assert (found.structure, found.fields[0].value) == ("control message", "0x10 GOAWAY")
    other = decode({"octets": "7007"}, record)
    assert other is not None
    assert (other.structure, other.fields) == ("", ())


def test_the_end_of_an_attempt_is_shown_before_its_names(tmp_path: Path) -> None:
    """Of a long message the namespace goes first when room is short: what was written wrong, here
    a parameter, stands behind it."""
    names = "".join(f"01{0x61 + i:02x}" for i in range(20))
    body = f"0014{names}0174012005"  # Request ID, 20 fields, a name, one parameter
    octets = f"0300{len(body) // 2:02x}{body}"
    record = Record("hostile", 0, 0.0, "kvcs:attempt-lives", {"attempt": "long"})
    found = decode({"octets": octets}, record)
    assert found is not None
    assert found.of_attempt
    told = replace(explained(tmp_path), octets=found, found="the session went on")
    lines = as_text(told, tmp_path).splitlines()
    (gap,) = (i for i, line in enumerate(lines) if line.endswith(" more fields"))
    (end,) = (i for i, line in enumerate(lines) if line.startswith("  at fault"))
    assert any("SUBSCRIBE" in line for line in lines[:gap])
    assert gap < end - 1
    assert found.fields[-1].name.strip() in lines[end - 1]


def test_events_before_an_attempt_are_its_own(tmp_path: Path) -> None:
    """Attempts run beside each other; what befell another one explains nothing."""
    finding = {"node": "hostile", "index": 3}
    made = result([case("relay/some/case", "fail", finding=finding)])
    out = write_run(tmp_path, made)
    log = [report("wrote", attempt=name, on="uni", octets="00") for name in ("one", "other")]
    log += [
        report("attempt-closed", attempt="other", code=3),
        report("attempt-lives", attempt="one"),
    ]
    home = case_folder(out, "relay/some/case")
    write_evidence(home, evidence("relay", {"hostile": log}, records={"hostile": 4}), "by hand")
    list_files(home)
    scene = explain_case(out, made, made["cases"][0], CATALOGUE).before
    assert scene is not None
    assert ["wrote", "attempt-lives"] == [event.text.split()[0] for event in scene.events]
    assert all("attempt=one" in event.text for event in scene.events)


def test_a_field_of_what_a_role_reports_about_has_its_name(tmp_path: Path) -> None:
    """The report has no payload; the finding tells which octets of the header are meant."""
    record = Record("consumer", 0, 0.0, "kvcs:object-accepted", {"layer": 0, "block": 0})
    found = decode({"octets": "00000005", "offset": 32}, record)
    assert found is not None
    assert [(f.offset, f.name, f.value) for f in found.fields] == [(32, "Data Length", "5")]


def test_octets_that_nothing_names_are_shown_as_they_are(tmp_path: Path) -> None:
    """Without a record to go by, there are offset and octets and no field."""
    told = explained(tmp_path, finding={"octets": "c0ffee", "offset": 5})
    assert told.octets is not None
    assert (told.octets.hexadecimal, told.octets.fields) == ("c0 ff ee", ())
    assert "octets from 5: c0 ff ee" in as_text(told, tmp_path)


def test_any_number_of_octets_is_cut_only_where_it_is_shown(tmp_path: Path) -> None:
    """A manifest of thousands of octets is counted whole."""
    told = explained(tmp_path, finding={"octets": "ab" * 5001})
    assert told.octets is not None
    assert told.octets.count == 5001
    assert "the first 64 of 5001" in as_text(told, tmp_path)


def test_the_twin_that_passed_is_told(tmp_path: Path) -> None:
    """With a case that ran and a twin beside it, the twin has passed."""
    made = result([case(NAME, "fail")])
    out = write_run(tmp_path, made)
    twin = case_folder(out, NAME, twin=True)
    twin.mkdir()
    (twin / "run.json").write_text('{"steps": [1, 2]}')
    told = explain_case(out, made, made["cases"][0], CATALOGUE)
    assert told.twin == "passes, in 2 steps"


def test_blocked_by_its_twin_is_explained_from_the_twin(tmp_path: Path) -> None:
    """The reason first, then the finding of the twin that led to it, and the twin's evidence."""
    entry = case(NAME, "blocked")
    entry["findings"] += [{"outcome": "contradicted", "text": "the twin breaks"}]
    made = result([entry])
    told = explain_case(write_run(tmp_path, made), made, entry, CATALOGUE)
    assert told.why == "what makes it blocked"
    assert told.found == "the twin breaks"
    assert (told.twin, told.evidence) == ("fails", f"cases/{NAME}/twin")


def test_evidence_that_was_altered_is_said_and_the_rest_still_explained(tmp_path: Path) -> None:
    """A broken log costs the events, not the explanation."""
    made = result([case(NAME, "fail", finding={"node": "consumer", "index": 5})])
    out = write_run(tmp_path, made)
    (case_folder(out, NAME) / "consumer.sqlog").write_text("nothing\x1b")
    told = explain_case(out, made, made["cases"][0], CATALOGUE)
    assert "not an event log" in told.trouble
    assert told.before is None
    assert told.found == "what makes it fail"
    assert told.clauses[0].id == "KVCS-4-22"


def test_what_contradicts_another_clause_is_told_too(tmp_path: Path) -> None:
    """The first finding may be the lesser one: each other clause has its line, once."""
    entry = case(NAME, "fail")
    (first,) = entry["findings"]
    other = {**first, "text": "it waited too long", "requires": ["KVCS-7.4-5"]}
    entry["findings"] += [{**first, "text": "the same clause"}, other, other]
    made = result([entry])
    told = explain_case(write_run(tmp_path, made), made, entry, CATALOGUE)
    assert ("it waited too long (KVCS-7.4-5)",) == told.also
    assert "  also: it waited too long (KVCS-7.4-5)" in as_text(told, tmp_path).splitlines()


def test_evidence_that_is_gone_is_said(tmp_path: Path) -> None:
    """A verdict without its evidence is one that nobody can check."""
    made = result([case(NAME, "fail"), case("relay/some/case", "not-run")])
    out = write_run(tmp_path, made)
    for entry in made["cases"]:
        rmtree(case_folder(out, entry["id"]))
    failed, never_ran = (explain_case(out, made, one, CATALOGUE) for one in made["cases"])
    assert failed.trouble == "there is no run.json"
    assert never_ran.trouble == ""


def test_a_place_that_the_evidence_has_not_is_no_place(tmp_path: Path) -> None:
    """For an index behind the end of a log, or an unknown node, the last events are shown."""
    for finding in ({"node": "consumer", "index": 999}, {"node": "nobody", "index": 0}):
        told = explained(tmp_path, finding=finding)
        assert (told.place, told.bearing) == ("consumer.sqlog:11", Bearing.LAST)


def test_the_command_names_every_foreign_peer_and_the_seed_of_the_evidence(tmp_path: Path) -> None:
    """One command gives this case again: its own seed, each known-bad peer, what the peer lacks."""
    peers = {"publisher": "publisher/x", "relay": "reference", "consumer": "consumer/y"}
    made = result([case(NAME, "fail", seed=9)], peers=peers, lacks=["cose"])
    told = explain_case(tmp_path, made, made["cases"][0], CATALOGUE)
    assert told.again == (
        f"kvcs run {NAME} --link memory --seed 9 --mutant publisher/x --mutant consumer/y "
        "--lacks cose"
    )


def test_a_screen_has_forty_lines_and_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    """However hostile or long the texts of a peer are."""
    made = hostile()
    out = write_run(tmp_path, made)
    for entry in made["cases"]:
        text = as_text(explain_case(out, made, entry, CATALOGUE), Path())
        assert len(text.splitlines()) <= 40
        assert all(character.isprintable() or character == "\n" for character in text)
        assert all(len(line) <= 98 for line in text.splitlines() if not line.startswith("again"))
        assert "evidence  cases/" in text


def test_a_wrong_name_is_answered_with_those_that_are_like_it(tmp_path: Path) -> None:
    """Two hundred names are no answer; the nearest few are."""
    made = result([case(f"relay/cache/case-{i}") for i in range(200)])
    with pytest.raises(UsageError) as caught:
        find(tmp_path, made, "relay/cach/case-7")
    assert "did you mean relay/cache/case-7" in str(caught.value)
    assert len(str(caught.value)) < 400
    with pytest.raises(UsageError, match=r"it has relay/cache/case-0, .*case-2 and 197 more$"):
        find(tmp_path, made, "!!")


def test_plain_text_is_printable_and_cut() -> None:
    """Controls, direction overrides and lone surrogates become escapes; the rest stays."""
    assert plain("a\x1b[0m\u202e\ud800é") == "a\\x1b[0m\\u202e\\ud800é"
    assert plain("x" * 5000, 10) == "xxxxxxxxxx … (5000 characters)"


def test_a_case_that_was_not_run_is_explained_too(tmp_path: Path) -> None:
    """Its clause, that nothing was seen, and the command that runs it."""
    entry = case(NAME, "not-run", findings=[])
    text = as_text(explain_case(tmp_path, result([entry]), entry, CATALOGUE), tmp_path)
    assert text.startswith(f"{NAME}: not-run\n")
    assert "seen\n  nothing" in text
    assert f"again     kvcs run {NAME} --link memory --seed 7" in text


def test_the_command_prints_text_or_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same explanation for people and, with --json, for programs."""
    made = result([case(NAME, "fail", finding={"node": "consumer", "index": 5})])
    write_run(tmp_path, made)
    told = explain_case(tmp_path, made, made["cases"][0], CATALOGUE)
    for options, expected in (([], as_text(told, tmp_path)), (["--json"], told.as_json())):
        with pytest.raises(SystemExit) as ended:
            main(["explain", str(tmp_path), NAME, *options])
        assert not ended.value.code
        out = capsys.readouterr().out
        assert (json.loads(out) if options else out.rstrip("\n")) == (
            json.loads(json.dumps(expected)) if options else expected
        )
