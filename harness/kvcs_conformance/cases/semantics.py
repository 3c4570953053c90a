"""What a schema cannot say well: which word stands where, and which names exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kvcs_conformance.cases.check import check_schema, unknown_word
from kvcs_conformance.cases.load import resolve
from kvcs_conformance.cases.schema import CASE, judge_schema
from kvcs_conformance.cases.words import SCENARIO, STEPS, TAMPERS, WAITS
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.evidence.wait import EVENTS
from kvcs_conformance.judge.registry import JUDGES
from kvcs_conformance.network.check import check_network, check_network_steps
from kvcs_conformance.nodes.cast import cast
from kvcs_conformance.source import Document, Step


class Names(NamedTuple):
    """What a case defines: its nodes with their kinds, and the labels of its steps."""

    kinds: Mapping[str, str]
    labels: set[str]


_SLEEPS = ("sleep", "wait", "pause", "delay")
_SPANS = {"layers", "objects"}


def check_case(document: Document, catalogue: Catalogue) -> None:
    """Check one case file whole; raises DataError with file and line."""
    check_schema(document, CASE)
    case = document.data
    for i, name in enumerate(case["requires"]):
        if name not in catalogue:
            raise document.error(
                ("requires", i), unknown_word("requirement", name, list(catalogue.requirements))
            )
        if case["sut"] not in catalogue[name].roles:
            raise document.error(
                ("requires", i),
                f"{name} binds {', '.join(catalogue[name].roles)}, not the {case['sut']}",
            )
    scenario = resolve(document, case["scenario"])
    check_schema(document, SCENARIO, scenario, ("scenario",))
    _check_tampers(document, scenario, ("scenario", "tamper"))
    parts = cast(case["sut"], scenario)
    for name, part in parts.items():
        for other in part.to:
            if other not in parts or not parts[other].listens:
                raise document.error(
                    ("scenario", "nodes", name, "to"),
                    unknown_word("relay", other, [n for n, p in parts.items() if p.listens]),
                )
    check_network(document, ("scenario", "network"), scenario.get("network", {}), parts)
    kinds = {name: part.kind for name, part in parts.items()} | {"network": "network"}
    labels: set[str] = set()
    for i, step in enumerate(case["steps"]):
        _check_step(document, ("steps", i), step, kinds, labels)
    check_network_steps(document, case["steps"], parts)
    names = Names(kinds, labels)
    _check_judges(document, ("judge",), case["judge"], case["requires"], names)
    if "twin" in case:
        where = ("twin", "judge")
        _check_judges(document, where, case["twin"]["judge"], case["requires"], names)
        changed = case["twin"]["scenario"]
        _check_tampers(document, changed, ("twin", "scenario", "tamper"))
        check_network(document, ("twin", "scenario", "network"), changed.get("network", {}), parts)


def _check_step(
    document: Document,
    where: tuple[Step, ...],
    step: Mapping[str, Any],
    kinds: Mapping[str, str],
    labels: set[str],
) -> None:
    if len(step) != 1:
        raise document.error(where, "a step is one word with what it does")
    ((subject, body),) = step.items()
    here = (*where, subject)
    if subject in _SLEEPS:
        raise document.error(
            here, f"a bare {subject}: wait for an event with `expect`, or for a `fence`"
        )
    if subject in WAITS:
        check_schema(document, WAITS[subject].value, body, here)
        at = body.get("at", "consumer")
        if at not in kinds:
            raise document.error((*here, "at"), unknown_word("node", at, list(kinds)))
        if subject == "fence" and kinds[at] != "scripted":
            raise document.error(here, f"{at} is no scripted node: a fence needs one")
        if body.get("probe") and kinds[at] != "scripted":
            raise document.error((*here, "probe"), f"{at} is no scripted node: a probe needs one")
        if subject == "expect":
            if body["event"] not in EVENTS:
                raise document.error(
                    (*here, "event"), unknown_word("event", body["event"], list(EVENTS))
                )
            if body["event"] in ("answered", "delivered") and "of" not in body:
                raise document.error(here, f"{body['event']} needs `of`, the label of a step")
            if "of" in body and body["of"] not in labels:
                raise document.error(
                    (*here, "of"), f"no step before this one is labelled {body['of']!r}"
                )
        return
    if subject not in kinds:
        raise document.error(here, unknown_word("step or node", subject, [*kinds, *WAITS]))
    if not isinstance(body, dict) or not body:
        raise document.error(here, f"{subject} is told nothing to do")
    known = STEPS[kinds[subject]]
    word = next(iter(body))
    if word in _SLEEPS:
        raise document.error(
            (*here, word), f"a bare {word}: wait for an event with `expect`, or for a `fence`"
        )
    if word not in known:
        raise document.error((*here, word), unknown_word("step", word, list(known)))
    schema = known[word].schema()
    check_schema(document, schema, body, here)
    _check_spans(document, here, body, schema)
    if "as" in body:
        labels.add(body["as"])


def _check_judges(
    document: Document,
    where: tuple[Step, ...],
    entries: list[Any],
    requires: list[str],
    names: Names,
) -> None:
    covered: set[str] = set()
    for i, entry in enumerate(entries):
        ((word, value),) = [*entry.items()][:1]
        here = (*where, i, word)
        if len(entry) != 1:
            raise document.error((*where, i), "a judgement is one judge word with its arguments")
        if word not in JUDGES:
            raise document.error(here, unknown_word("judge", word, list(JUDGES)))
        check_schema(document, judge_schema(word), {} if value is None else value, here)
        _check_names(document, here, value or {}, names)
        _check_spans(document, here, value or {}, judge_schema(word))
        speaks = (value or {}).get("for", requires)
        for j, name in enumerate(speaks):
            if name not in requires:
                raise document.error((*here, "for", j), f"{name} is not under `requires`")
        covered.update(speaks)
    missing = [name for name in requires if name not in covered]
    if missing and where == ("judge",):
        raise document.error(where, f"no judge speaks about {missing[0]}")


def _check_spans(
    document: Document, here: tuple[Step, ...], values: Mapping[str, Any], schema: Mapping[str, Any]
) -> None:
    """`[first, last]`: nothing lies between when the last comes first."""
    for key in _SPANS & values.keys():
        is_span = schema["properties"][key].get("maxItems") == 2
        match values[key]:
            case [int(first), int(last)] if is_span and first > last:
                raise document.error(
                    (*here, key), f"[{first}, {last}] should be [first, last], the lower one first"
                )


def _check_names(
    document: Document, here: tuple[Step, ...], arguments: Mapping[str, Any], names: Names
) -> None:
    """The nodes and labels that a judge word is given must be those of the case."""
    labels = [(key, arguments[key]) for key in ("of", "as-delivered") if key in arguments]
    for key, label in [*labels, *(("among", one) for one in arguments.get("among", []))]:
        if label not in names.labels:
            raise document.error((*here, key), unknown_word("label", label, sorted(names.labels)))
    nodes = [arguments[key] for key in ("at", "publisher") if key in arguments]
    for node in [*nodes, *arguments.get("publishers", [])]:
        if node not in names.kinds:
            raise document.error(here, unknown_word("node", node, list(names.kinds)))


def _check_tampers(
    document: Document, scenario: Mapping[str, Any], where: tuple[Step, ...]
) -> None:
    for i, entry in enumerate(scenario.get("tamper", [])):
        if len(entry) != 1:
            raise document.error((*where, i), "one way to tamper per element")
        ((word, value),) = entry.items()
        if word not in TAMPERS:
            raise document.error((*where, i, word), unknown_word("tamper", word, list(TAMPERS)))
        check_schema(document, TAMPERS[word].value, value, (*where, i, word))
