"""An evaluator behind a filter that lets one call too many through."""

from storage.engine.sandbox.inside import syscalls

syscalls.KEPT["openat"] = (257, 56)


def evaluator():
    return lambda request: request
