"""Calls of models: who is asked, with which key, how often, how fast, and what a failure means."""
