"""Random keys of the installation, made once and kept in the catalog (and so in its backup)."""

import secrets as random
from typing import cast

import sqlalchemy as sa

from storage.engine.catalog import Catalog
from storage.engine.schema import secrets

_BYTES = 32


def secret(catalog: Catalog, name: str) -> bytes:
    """Return the key of that name (32 bytes), made at first use."""
    query = sa.select(secrets.c.value).where(secrets.c.name == name)
    with catalog.read() as connection:
        found = connection.execute(query).scalar()
    if found is not None:
        return cast("bytes", found)
    with catalog.transaction() as connection:
        found = connection.execute(query).scalar()
        if found is None:
            found = random.token_bytes(_BYTES)
            connection.execute(secrets.insert().values(name=name, value=found))
    return cast("bytes", found)
