"""One running service, shared by the tests that leave it as they found it."""

from collections.abc import Iterator

import pytest

from tests import stack as stacks


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stacks.Stack]:
    env = {"PROMPTLAKE_FLUSH_AFTER_S": "1", "PROMPTLAKE_WEBHOOK_ALLOW": "127.0.0.0/8"}
    with stacks.running(tmp_path_factory.mktemp("stack"), env=env) as stack:
        yield stack
