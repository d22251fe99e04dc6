"""The root of the command line: `ostinato`, or `python -m ostinato.cli.main`."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer import exceptions

from ostinato import errors
from ostinato.cli import failures, settings
from ostinato.cli.commands import Commands

root = typer.Typer(
    name="ostinato",
    cls=Commands,
    help="Durable jobs of tasks, on one SQLite file or on PostgreSQL.",
    epilog="Exit codes: 0 fine, 1 failed or problems found, 2 bad usage or input, 3 not found, 4 no database, "
    "78 not safe as set up.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from ostinato import __version__

        print(f"ostinato {__version__}")
        raise typer.Exit()


@root.callback()
def _before(
    ctx: typer.Context,
    url: settings.Url = None,
    tenant: settings.Tenant = None,
    as_json: settings.Json = False,
    version: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    ctx.obj = settings.Settings(url, tenant, as_json)


def execute(arguments: Sequence[str]) -> int:
    """Run one command; the exit code."""
    as_json = "--json" in arguments
    try:
        return root(args=arguments, prog_name="ostinato", standalone_mode=False) or failures.OK
    except errors.OstinatoError as error:
        return failures.report(error, as_json=as_json)
    except exceptions.TyperException as error:
        return failures.report_usage(error, as_json=as_json)
    except exceptions.Abort:
        return failures.INTERRUPTED
    except OSError as error:
        return failures.report_io(error, as_json=as_json)
    except Exception as error:
        return failures.report_bug(error, as_json=as_json)


def main() -> None:
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by who started us
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - as long as we run
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    code = execute(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = failures.hang_up()
    except OSError as error:
        code = failures.report_io(error, as_json="--json" in sys.argv)
    sys.exit(code)


if __name__ == "__main__":
    main()
