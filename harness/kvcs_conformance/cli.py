"""The command `kvcs`: every subcommand is imported only when it is called.

Exit codes: 0 pass, 1 fail, 2 usage or harness error, 3 incomplete.
"""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import Any

import click

from kvcs_conformance.errors import UsageError
from kvcs_conformance.verdicts import ExitCode

_COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("kvcs_conformance.commands.run:run", "Run cases and judge what was seen."),
    "list": ("kvcs_conformance.commands.list:list_", "List the cases, or the words of a case."),
    "explain": ("kvcs_conformance.commands.explain:explain", "Say why a case has its verdict."),
    "report": ("kvcs_conformance.commands.report:report", "Write reports for people and for CI."),
    "recheck": ("kvcs_conformance.commands.recheck:recheck", "Judge saved evidence again."),
    "certify": (
        "kvcs_conformance.commands.certify:certify",
        "State what a peer upholds, or verify such a statement.",
    ),
    "diff": ("kvcs_conformance.commands.diff:diff", "Compare two runs, or two catalogues."),
    "selftest": (
        "kvcs_conformance.commands.selftest:selftest",
        "Prove that every case can fail: run the known-bad peers.",
    ),
    "relay": ("kvcs.programs.relay:relay", "Run the reference relay."),
    "publish": ("kvcs.programs.publish:publish", "Publish a KV cache."),
    "consume": ("kvcs.programs.consume:consume", "Find and retrieve a KV cache."),
    "inspect": ("kvcs.programs.inspect:inspect", "Explain octets: what they are, what is wrong."),
    "bench": ("kvcs.programs.bench:bench", "Measure throughput, memory and latency."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and one line, and imports one when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kvcs-conformance", prog_name="kvcs")
def kvcs() -> None:
    """Conformance harness and reference of KV Cache Streaming (KVCS) over MOQT.

    Exit codes: 0 pass, 1 fail, 2 usage or harness error, 3 incomplete.
    """


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; what a user got wrong is one line on stderr and exit code 2."""
    with suppress(ValueError):  # not the main thread, where nobody is stopped by a signal
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        # `kvcs.main` would turn a closed standard output into exit code 1, which means fail.
        with kvcs.make_context("kvcs", given) as context:
            code = kvcs.invoke(context)
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        code = ExitCode.ERROR
    except click.ClickException as error:
        _complain(error.format_message())
        code = ExitCode.ERROR
    except UsageError as error:
        _complain(str(error))
        code = ExitCode.ERROR
    except (click.Abort, KeyboardInterrupt):
        _complain("stopped")
        code = ExitCode.INCOMPLETE
    except OSError as error:
        if error.errno != errno.EPIPE:
            _complain(f"{error.filename or 'standard output'}: {error.strerror or error}")
        _forget_output()
        code = ExitCode.ERROR
    except Exception:  # exit code 1 would say that a case failed
        traceback.print_exc()
        _complain("this is a fault of the harness; the lines above say where")
        code = ExitCode.ERROR
    sys.exit(int(code or 0))


def _forget_output() -> None:
    """Nobody reads standard output any more: what is still in its buffer is written nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> None:
    from kvcs_conformance.report.plain import plain

    click.echo(f"kvcs: {plain(' '.join(message.split()))}", err=True)
