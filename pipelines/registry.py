"""Which function does the work of which kind of operation."""

from collections.abc import Mapping

from pipelines.drafts import run_draft
from pipelines.imports import run_import
from pipelines.recalculation import run_recalculation
from pipelines.reports import run_refresh
from pipelines.work import Work
from storage.domain.operations import (
    DATASET_COPY,
    DATASET_FILE,
    DATASET_FILTER,
    DATASET_SAVE,
    IMPORT_FILE,
    IMPORT_REQUEST_LOGS,
    RECALCULATE,
    REPORT_REFRESH,
)

WORK: Mapping[str, Work] = {
    IMPORT_FILE: run_import,
    IMPORT_REQUEST_LOGS: run_import,
    RECALCULATE: run_recalculation,
    REPORT_REFRESH: run_refresh,
    DATASET_FILE: run_import,
    DATASET_FILTER: run_import,
    DATASET_COPY: run_draft,
    DATASET_SAVE: run_draft,
}
