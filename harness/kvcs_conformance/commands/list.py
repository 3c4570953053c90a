"""`kvcs list`: the cases, and the words that a case is written in."""

from __future__ import annotations

from collections.abc import Iterable

import click

from kvcs_conformance import catalogue
from kvcs_conformance.cases import load_cases, select
from kvcs_conformance.cases.words import STEPS, TAMPERS, WAITS


@click.command("list")
@click.argument("selectors", nargs=-1)
@click.option("--steps", is_flag=True, help="Describe the steps, events and ways to tamper.")
@click.option("--judges", is_flag=True, help="Describe the judge words.")
def list_(selectors: tuple[str, ...], steps: bool, judges: bool) -> None:
    """List the cases that SELECTORS name (default: all) with level, title and
    requirements.

    A selector is a glob over case ids, a role, or a requirement id.
    """
    if steps or judges:
        if selectors:
            raise click.UsageError("--steps and --judges take no selector")
        if steps:
            _print_steps()
        if judges:
            _print_judges()
        return
    cases = select(load_cases(catalogue.load(), check=False), selectors)
    for case in cases:
        click.echo(f"{case.id}  ({case.sut}, {case.level})")
        click.echo(click.wrap_text(case.title, 98, "    ", "    "))
        click.echo(click.wrap_text(" ".join(case.requires), 98, "    ", "    "))


_KINDS = {
    "publisher": "Steps of a publisher",
    "scripted": "Steps of a scripted node",
    "relay": "Steps of a relay",
    "consumer": "Steps of a consumer",
    "network": "Steps of the network",
}


def _print_steps() -> None:
    from kvcs_conformance.evidence.wait import EVENTS

    for kind, title in _KINDS.items():
        _section(title, [(_usage(w.name, w.options), w.doc) for w in STEPS[kind].values()])
    _section("Waiting", [(word.name, word.doc) for word in WAITS.values()])
    _section("Events that `expect` knows", list(EVENTS.items()))
    _section(
        "Ways to tamper with what a publisher sends", [(w.name, w.doc) for w in TAMPERS.values()]
    )


def _print_judges() -> None:
    from kvcs_conformance.judge import JUDGES

    _section("Judge words", [(_usage(w.name, w.options), w.doc) for w in JUDGES.values()])


def _usage(name: str, options: Iterable[str]) -> str:
    return f"{name}  {{{', '.join(options)}}}" if options else name


def _section(title: str, entries: list[tuple[str, str]]) -> None:
    if not entries:
        return
    click.secho(title, bold=True)
    for name, doc in entries:
        click.echo(f"  {name}")
        click.echo(click.wrap_text(doc, 98, "      ", "      "))
    click.echo()
