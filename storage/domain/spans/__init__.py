"""Spans of traces that record calls of models, read into logged requests.

Two vocabularies are read: the GenAI semantic conventions of OpenTelemetry (`gen_ai.*`, of today and before,
in attributes and events) and OpenInference (`llm.*`). What neither names goes into the metadata, in bounds.
"""
