"""What a route may ask for: the open service, the caller, the store."""

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends
from starlette.requests import Request

from api.auth import Authenticator
from api.streams import Streams
from pipelines.runs import Runs
from storage.domain.keys import Principal
from storage.request_logs import LogDesk
from storage.settings import Settings
from storage.store import Store


@dataclass(slots=True)
class Service:
    """What lives as long as the API process."""

    settings: Settings
    store: Store
    authenticator: Authenticator
    logs: LogDesk
    runs: Runs
    streams: Streams
    # large bodies are read one after the other: together they would only wait for each other, in memory
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)


def service_of(request: Request) -> Service:
    return cast("Service", request.app.state.service)


# Coroutines, though they await nothing: of a plain function the framework makes a trip to another thread.
async def _store(request: Request) -> Store:
    return service_of(request).store


async def _runs(request: Request) -> Runs:
    return service_of(request).runs


async def _streams(request: Request) -> Streams:
    return service_of(request).streams


async def _who(request: Request) -> Principal:
    return cast("Principal", request.state.principal)


OpenStore = Annotated[Store, Depends(_store)]
OpenRuns = Annotated[Runs, Depends(_runs)]
OpenStreams = Annotated[Streams, Depends(_streams)]
Who = Annotated[Principal, Depends(_who)]
