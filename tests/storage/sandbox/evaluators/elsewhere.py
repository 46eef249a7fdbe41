"""An evaluator on a system whose calls are not known."""

from storage.engine.sandbox.inside import worker

worker.find_machine = lambda: None


def evaluator():
    return lambda request: request
