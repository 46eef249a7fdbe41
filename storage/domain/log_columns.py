"""The columns that the views over request logs promise to ad hoc users: a contract."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PromisedColumn:
    """A column of a view: its DuckDB type, its unit (empty: none) and what it means."""

    name: str
    type: str
    unit: str
    meaning: str


LOG_COLUMNS = (
    PromisedColumn("id", "BIGINT", "", "request id, growing in the order of logging, never reused"),
    PromisedColumn("created_at", "TIMESTAMP WITH TIME ZONE", "UTC", "when the service recorded it"),
    PromisedColumn("request_start_time", "TIMESTAMP WITH TIME ZONE", "UTC", "when the call began"),
    PromisedColumn("request_end_time", "TIMESTAMP WITH TIME ZONE", "UTC", "when the answer was complete"),
    PromisedColumn("latency_ms", "DOUBLE", "milliseconds", "end less start"),
    PromisedColumn("provider", "VARCHAR", "", "who served the model"),
    PromisedColumn("model", "VARCHAR", "", "name of the model"),
    PromisedColumn("status", "VARCHAR", "", "SUCCESS, WARNING or ERROR"),
    PromisedColumn("error_type", "VARCHAR", "", "kind of the issue; null when there is none"),
    PromisedColumn("error_message", "VARCHAR", "", "the issue in words; null when there is none"),
    PromisedColumn("prompt_id", "BIGINT", "", "template used; null when none was named"),
    PromisedColumn("prompt_name", "VARCHAR", "", "its name"),
    PromisedColumn("prompt_version_number", "BIGINT", "", "its version, as the caller gave it"),
    PromisedColumn("input_tokens", "BIGINT", "tokens", "tokens of the input"),
    PromisedColumn("output_tokens", "BIGINT", "tokens", "tokens of the output"),
    PromisedColumn("price", "DOUBLE", "as given by the caller", "price of the call"),
    PromisedColumn("function_name", "VARCHAR", "", "the caller's function; empty when not given"),
    PromisedColumn("api_type", "VARCHAR", "", "API of the provider that was used"),
    PromisedColumn("tags", "VARCHAR[]", "", "tags in the order given"),
    PromisedColumn("metadata", "MAP(VARCHAR, VARCHAR)", "", "metadata by key"),
    PromisedColumn("parameters", "VARCHAR", "", "model parameters, a JSON object"),
    PromisedColumn("prompt_input_variables", "VARCHAR", "", "variables of the template, a JSON object"),
    PromisedColumn("input", "VARCHAR", "", "what was asked: a chat or completion, JSON"),
    PromisedColumn("output", "VARCHAR", "", "what was answered: a chat or completion, JSON"),
)

SCORE_COLUMNS = (
    PromisedColumn("request_id", "BIGINT", "", "the log that is scored"),
    PromisedColumn("name", "VARCHAR", "", "name of the score"),
    PromisedColumn("score", "BIGINT", "0 to 100", "its value now"),
    PromisedColumn("updated_at", "TIMESTAMP WITH TIME ZONE", "UTC", "when it was last set"),
)

AS_OF_COLUMNS = (
    PromisedColumn("as_of", "TIMESTAMP WITH TIME ZONE", "UTC", "the views were published then"),
    PromisedColumn("last_id", "BIGINT", "", "logs up to this id are in the views; null when there is none"),
    PromisedColumn("rows", "BIGINT", "logs", "how many logs that is"),
)

METADATA_COLUMNS = (
    PromisedColumn("request_id", "BIGINT", "", "the log"),
    PromisedColumn("key", "VARCHAR", "", "a key of its metadata"),
    PromisedColumn("value", "VARCHAR", "", "the value under that key"),
)

TAG_COLUMNS = (
    PromisedColumn("request_id", "BIGINT", "", "the log"),
    PromisedColumn("tag", "VARCHAR", "", "one of its tags, each once"),
)

SCORED_COLUMNS = (
    *LOG_COLUMNS,
    PromisedColumn("score", "BIGINT", "0 to 100", "the score named `default`; null when there is none"),
    PromisedColumn(
        "scores", "MAP(VARCHAR, BIGINT)", "0 to 100", "all scores by name; empty when there is none"
    ),
)

VIEWS = {
    "request_logs": LOG_COLUMNS,
    "scores": SCORE_COLUMNS,
    "request_logs_as_of": AS_OF_COLUMNS,
    "request_metadata": METADATA_COLUMNS,
    "request_tags": TAG_COLUMNS,
    "scored_request_logs": SCORED_COLUMNS,
}
"""What each view of a workspace promises."""
