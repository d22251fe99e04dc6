"""What every command takes: `--url`, `--tenant` and `--json`, before the command or after it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, NamedTuple

import typer

from ostinato.cli import parameters

Code = Callable[..., Coroutine[Any, Any, int | None]]

ANYWHERE = "$OSTINATO_URL, else sqlite:///ostinato.db"
OF_APPLICATION = "what the application says"
"""For a command that cannot do without one."""
OF_APPLICATION_IF_ANY = f"with --app {OF_APPLICATION}, else {ANYWHERE}"
URL_HELP = "The database. [default: {}]"

Url = Annotated[str | None, typer.Option("--url", help=URL_HELP.format(ANYWHERE), metavar="URL")]
Tenant = Annotated[
    str | None, typer.Option("--tenant", help=f"Whose jobs. [default: default, or {OF_APPLICATION}]", metavar="NAME")
]
Json = Annotated[bool, typer.Option("--json", help="Answer with JSON, errors included.")]


Wait = Annotated[
    float, typer.Option("--wait", help="How long the start waits for the database.", min=0, metavar="SECONDS")
]
WAIT_SECONDS = 30.0


class Settings(NamedTuple):
    """Where to look and how to answer. None leaves it to the application, or to the defaults of the library."""

    url: str | None = None
    tenant: str | None = None
    json: bool = False

    def or_else(self, before: Settings) -> Settings:
        """What was said after the command wins over what was said before it."""
        url = before.url if self.url is None else self.url
        tenant = before.tenant if self.tenant is None else self.tenant
        return Settings(url, tenant, self.json or before.json)


def command(group: typer.Typer, name: str, *, fast_loop: bool = False, url: str = ANYWHERE) -> Callable[[Code], Code]:
    """Register an async function as a command. It gets the settings first, and its answer is the exit code. `url` says
    which database it uses if none is named."""

    def register(code: Code) -> Code:
        def invoke(ctx: typer.Context, url: str | None, tenant: str | None, as_json: bool, **given: Any) -> int:
            import asyncio

            from ostinato.cli import failures, session

            before = ctx.obj if isinstance(ctx.obj, Settings) else Settings()
            settings = Settings(url, tenant, as_json).or_else(before)
            try:
                return session.run(code(settings, **given), fast_loop=fast_loop) or failures.OK
            except asyncio.CancelledError:
                return failures.TERMINATED
            except BrokenPipeError:
                return failures.hang_up()

        _describe(invoke, code, url)
        group.command(name, cls=parameters.Command, help=inspect.getdoc(code))(invoke)
        return code

    return register


def _describe(invoke: Callable[..., int], code: Code, default_url: str) -> None:
    """Let typer see the parameters of the command and the shared ones, as if they had been written together."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = list(inspect.signature(code, eval_str=True).parameters.values())[1:]
    url = Annotated[str | None, typer.Option("--url", help=URL_HELP.format(default_url), metavar="URL")]
    shared = [
        inspect.Parameter("ctx", keyword, annotation=typer.Context),
        inspect.Parameter("url", keyword, default=None, annotation=url),
        inspect.Parameter("tenant", keyword, default=None, annotation=Tenant),
        inspect.Parameter("as_json", keyword, default=False, annotation=Json),
    ]
    together = [parameter.replace(kind=keyword) for parameter in own] + shared
    invoke.__dict__["__signature__"] = inspect.Signature(together)
    invoke.__annotations__ = {parameter.name: parameter.annotation for parameter in together}
