"""Which function does the work of which kind of operation."""

from collections.abc import Mapping

from pipelines.work import Work

WORK: Mapping[str, Work] = {}
