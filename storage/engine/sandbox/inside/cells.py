"""What evaluators of rows answer: {"values": [...], "errors": [[index, code, message, line | null]]}.

They do as many of the first rows as fit into half a second and 8 MB; the owner asks for the rest.
"""

import json
from time import monotonic

# What may go wrong with one cell; the owner adds the limits that end a worker.
CODE_ERROR, MEMORY_LIMIT, RESULT_TOO_LARGE = "code_error", "memory_limit", "result_too_large"
TIMEOUT = "timeout"

MAX_VALUE = 8_388_608
LONGEST_MESSAGE = 1_000
BATCH_S = 0.5
BATCH_CHARACTERS = 8_388_608


class Cells:
    """Gathers the cells of one request."""

    def __init__(self) -> None:
        self._values: list[str] = []
        self._errors: list[str] = []
        self._characters = 0
        self._until = monotonic() + BATCH_S

    @property
    def full(self) -> bool:
        """Whether it is time to answer."""
        return self._characters > BATCH_CHARACTERS or monotonic() > self._until

    def add(self, text: str, *, whole: bool = True) -> None:
        """Add a value, spelled as JSON; with `whole` it is to be one cell, and not too large for that."""
        if whole and len(text) > MAX_VALUE:
            self.fail(RESULT_TOO_LARGE, f"The value is over {MAX_VALUE} characters as JSON")
            return
        self._values.append(text)
        self._characters += len(text)

    def fail(self, code: str, message: str, line: int | None = None) -> None:
        """Add a cell that has no value; a line is that of the code, from 1."""
        # ASCII: a message may hold what UTF-8 cannot
        self._errors.append(json.dumps([len(self._values), code, message[:LONGEST_MESSAGE], line]))
        self._values.append("null")

    def spelled(self) -> bytes:
        return f'{{"values":[{",".join(self._values)}],"errors":[{",".join(self._errors)}]}}'.encode()
