"""text: written by people and imports, never computed."""

from storage.domain.column_types.binding import ColumnType, config_schema

TYPE = ColumnType(config_schema("TextConfig", {}, example={}), lambda config, _binder: config)
