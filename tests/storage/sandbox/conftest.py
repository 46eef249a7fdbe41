"""Pools of workers, and kinds of evaluator that exist for tests alone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from storage.engine.sandbox.kinds import JINJA2, Kind
from storage.engine.sandbox.pool import Pool

EVALUATORS = str(Path(__file__).parent / "evaluators")
ATTACKER = Kind(
    "attacker", "attacker", import_paths=(EVALUATORS,), memory_bytes=128 << 20, wall_s=0.6, cpu_s=20
)
HASTY_JINJA2 = replace(JINJA2, wall_s=1.0)


def kind_of(module: str) -> Kind:
    return Kind(module, module, import_paths=(EVALUATORS,))


@pytest.fixture
def pool() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def shared_pool() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.close()
