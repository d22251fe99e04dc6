"""What a role may not do in PostgreSQL, in sentences that say what to grant; and databases that are not ours at all.

What the server says is translated on some servers, so nothing is read from its text: which right is missing follows
from what was being done.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import asyncpg

from ostinato import errors

SOMEBODY_ELSES = (
    asyncpg.DuplicateTableError,
    asyncpg.DuplicateObjectError,
    asyncpg.DuplicateFunctionError,
    asyncpg.UndefinedColumnError,
    asyncpg.DatatypeMismatchError,
    asyncpg.WrongObjectTypeError,
)
"""A name of ours is taken by something that we have not made."""


async def missing(connection: asyncpg.Connection[Any] | None, error: asyncpg.PostgresError) -> errors.DatabaseForbidden:
    """For what is done all day. Without a connection, it is this that was refused."""
    if connection is None:
        return errors.DatabaseForbidden(
            f"the server refused the connection ({error}): let the owner of the database call "
            "GRANT CONNECT ON DATABASE for the role of the URL"
        )
    role, schema = await _who_and_where(connection)
    return errors.DatabaseForbidden(
        f"the role {role} may not do that in this database ({error}): let the owner of its tables call "
        f"GRANT USAGE ON SCHEMA {schema} TO {role} and "
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}"
    )


@contextlib.asynccontextmanager
async def to_migrate(connection: asyncpg.Connection[Any]) -> AsyncGenerator[None]:
    """Around a migration, which has been taken back when it gets here."""
    try:
        yield
    except (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidSchemaNameError) as error:
        role, schema = await _who_and_where(connection)
        raise errors.DatabaseForbidden(
            f"the role {role} may not make or upgrade the schema of Ostinato ({error}): let the owner of the database "
            f"call GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}; or, if Ostinato is there already, call "
            "`ostinato doctor --migrate` as the owner of its tables"
        ) from None
    except SOMEBODY_ELSES as error:
        raise another_program(error) from None


def another_program(error: asyncpg.PostgresError) -> errors.DatabaseError:
    return errors.DatabaseError(f"the database belongs to another program: choose an empty one ({error})")


async def _who_and_where(connection: asyncpg.Connection[Any]) -> tuple[str, str]:
    """As they are written in SQL. Of a schema that it may not use, the server does not tell."""
    row: Any = None
    with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        row = await connection.fetchrow("SELECT quote_ident(current_user), quote_ident(current_schema())")
    role, schema = row or ("of the URL", None)
    return role, schema or "public"
