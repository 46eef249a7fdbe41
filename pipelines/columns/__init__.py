"""Runners: how each type of computed column makes values from values."""
