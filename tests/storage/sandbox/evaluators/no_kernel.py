"""An evaluator on a machine whose kernel refuses the filter."""

from storage.engine.sandbox.inside import seccomp


def _refused():
    raise seccomp.SeccompRefused("seccomp: Function not implemented")


seccomp.install = _refused


def evaluator():
    return lambda request: request
