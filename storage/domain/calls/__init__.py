"""Calls of models as client libraries record them, read into the input and output of a logged request.

Every reader is total: what it does not know it keeps as text, because a log is better than none.
"""
