"""Logs of several nodes as one sequence, and its drawing."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from kvcs_conformance.report.diagram import diagram
from kvcs_conformance.report.explanation import explain_case
from kvcs_conformance.report.timeline import Kind, timeline

from tests.harness.evidence import Event, evidence, message, obj, report
from tests.harness.reports import CATALOGUE, case, crossing, result, write_run

SVG = "{http://www.w3.org/2000/svg}"


def test_what_was_sent_and_what_arrived_are_one_row() -> None:
    """A request, its answer with the name of its track, Objects of a Group as one, a cancel."""
    story = timeline(crossing())
    assert story.nodes == ("publisher", "relay", "consumer")
    rows = [(row.source, row.target, row.kind, row.text) for row in story.rows]
    assert ("consumer", "relay", Kind.MESSAGE, "SUBSCRIBE k.raw.s0") in rows
    assert ("relay", "consumer", Kind.MESSAGE, "SUBSCRIBE_OK k.raw.s0") in rows
    objects = [row for row in rows if row[2] is Kind.OBJECTS]
    assert objects == [
        ("relay", "consumer", Kind.OBJECTS, "k.raw.s0 (0, 0–1) · End of Group · FIN")
    ]
    (reset,) = (row for row in rows if row[2] is Kind.RESET)
    assert reset[3] == "RESET_STREAM + STOP_SENDING stream 8, code 1"
    assert story.other_end["consumer", 5].node == "relay"


def test_every_record_is_in_one_row_or_told_by_another() -> None:
    """No event is lost: each record that crossed the network is behind exactly one row."""
    seen = crossing()
    places = [place for row in timeline(seen).rows for place in row.places]
    assert len(places) == len(set(places))
    crossed = {
        (record.node, record.index)
        for log in seen.logs.values()
        for record in log
        if record.name.startswith("moqt:") and "stream_" not in record.name
    }
    assert crossed <= set(places)


def test_a_record_set_apart_has_a_row_of_its_own() -> None:
    """The deciding Object is not hidden among others of its Group."""
    rows = [row for row in timeline(crossing(), [("consumer", 6)]).rows if row.kind is Kind.OBJECTS]
    assert [row.text for row in rows] == [
        "k.raw.s0 (0, 0)",
        "k.raw.s0 (0, 1)",
        "k.raw.s0 End of Group (0, 2) · FIN",
    ]


def test_a_peer_without_a_log_is_still_an_end() -> None:
    """What a relay sends to nobody else went to the node that wrote no log."""
    nodes = {"relay": {"kind": "relay"}, "consumer": {"kind": "consumer"}}
    seen = evidence("consumer", {"relay": [obj(0, 0, sent=True)]}, publishers=(), nodes=nodes)
    (row,) = timeline(seen).rows
    assert (row.source, row.target) == ("relay", "consumer")


def test_an_end_that_nothing_tells_is_a_question_mark() -> None:
    """With two that it could have been, neither is named."""
    nodes = {name: {"kind": "scripted"} for name in ("consumer", "second")}
    name, data = message("Goaway", sent=True)
    seen = evidence(
        "relay",
        {
            "relay": [(name, {**data, "raw": "1000"})],
            "consumer": [message("Setup")],
            "second": [message("Setup")],
        },
        publishers=(),
        nodes={"relay": {"kind": "relay"}, **nodes},
    )
    assert {row.target for row in timeline(seen).rows if row.text == "GOAWAY"} == {"?"}


def test_what_befell_the_network_is_no_node() -> None:
    """Faults stand between the rows of the nodes, not on a lifeline."""
    faults = [("network:partitioned", {"between": ["publisher", "relay"]})]
    nodes = {"relay": {"kind": "relay"}}
    logs = {"relay": [report("up")], "network": faults}
    story = timeline(evidence("relay", logs, publishers=(), nodes=nodes))
    assert story.nodes == ("relay",)
    (row,) = (row for row in story.rows if row.kind is Kind.NETWORK)
    assert (row.source, row.text) == ("", "partitioned between=publisher,relay")


def test_the_same_message_again_and_again_is_counted() -> None:
    """Ten sessions that open at once are one row."""
    setups = [message("Setup", sent=True)] * 10
    nodes = {"relay": {"kind": "relay"}, "consumer": {"kind": "scripted"}}
    (row,) = timeline(evidence("relay", {"relay": setups}, publishers=(), nodes=nodes)).rows
    assert row.text == "SETUP ×10"


def test_ids_of_any_size_are_told() -> None:
    """Object IDs go up to 2^64 - 1, and a run of them may skip."""
    nodes = {"relay": {"kind": "relay"}, "consumer": {"kind": "scripted"}}
    sent = [obj(0, item, octets=b"", sent=True) for item in (2**64 - 3, 2**64 - 2, 2**64 - 1)]
    (row,) = timeline(evidence("relay", {"relay": sent}, publishers=(), nodes=nodes)).rows
    assert row.text == f"k.raw.s0 (0, {2**64 - 3}–{2**64 - 1})"
    sent = [obj(0, item, octets=b"", sent=True) for item in (0, 2**64 - 1)]
    (row,) = timeline(evidence("relay", {"relay": sent}, publishers=(), nodes=nodes)).rows
    assert row.text == f"k.raw.s0 (0, 0, {2**64 - 1})"


def test_odd_records_break_nothing() -> None:
    """A log that some other program wrote may lack what ours has."""
    events: list[Event] = [
        ("moqt:message_sent", {"message": {"type": "Fetch"}, "stream": "x"}),
        ("kvcs:object-accepted", {"block": 1}),
        ("other", {"x": ["a"]}),
        report("done"),
    ]
    assert len(timeline(evidence("relay", {"relay": events})).rows) == 4


def test_the_drawing_marks_what_decides_and_folds_the_rest(tmp_path: Path) -> None:
    """Well-formed, as many rows as allowed, the deciding one too, and a count of the rest."""
    entry = case("consumer/some/case", "fail", finding={"node": "consumer", "index": 6})
    made = result([entry])
    told = explain_case(write_run(tmp_path, made), made, entry, CATALOGUE)
    whole = str(diagram(told, 100))
    assert "▶" in whole
    assert "not shown" not in whole
    small = str(diagram(told, 3))
    root = ElementTree.fromstring(
        small.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
    )
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    assert "▶" in texts
    assert "k.raw.s0 (0, 1)" in texts
    assert len(list(root.iter(f"{SVG}g"))) == 3
    assert (
        sum(int(text.split()[1]) for text in texts if text.startswith("⋮")) == whole.count("<g") - 3
    )
