"""The options that choose cases, the same for every command."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from kvcs_conformance.cases.select import Selection
from kvcs_conformance.verdicts import Level

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.argument("selectors", nargs=-1),
    click.option("--requirement", "requirements", multiple=True, metavar="ID", help="Only cases "
                 "that cite this requirement; a glob may be given."),
    click.option("--role", "roles", multiple=True, help="Only cases of this role under test.",
                 type=click.Choice(["publisher", "relay", "consumer"])),
    click.option("--level", "levels", multiple=True, help="Only cases of this level.",
                 type=click.Choice([level.value for level in Level])),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only cases with this tag."),
    click.option("--exclude", multiple=True, metavar="SELECTOR", help="Leave these cases out."),
    click.option("--changed-since", metavar="REV", help="Only cases whose file or scenario "
                 "differs from this git revision."),
)  # fmt: skip


def choosing(command: Command) -> Callable[..., Any]:
    """Give a command SELECTORS and the options above; it is called with `selection`."""

    @wraps(command)
    def called(
        *,
        selectors: tuple[str, ...],
        requirements: tuple[str, ...],
        roles: tuple[str, ...],
        levels: tuple[str, ...],
        tags: tuple[str, ...],
        exclude: tuple[str, ...],
        changed_since: str | None,
        **options: Any,
    ) -> Any:
        selection = Selection(selectors, requirements, roles, levels, tags, exclude, changed_since)
        return command(selection=selection, **options)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called
