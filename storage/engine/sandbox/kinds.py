"""The kinds of evaluator: which module a worker runs, what it needs, what it may use."""

from dataclasses import dataclass

_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of evaluator; times in seconds, sizes in bytes.

    `wall_s` bounds one request, `cpu_s` the life of a worker, `requests` how many it answers in it.
    `requires` names the packages outside the standard library that its module imports.
    """

    name: str
    module: str
    requires: tuple[str, ...] = ()
    import_paths: tuple[str, ...] = ()
    memory_bytes: int = 256 * _MB
    cpu_s: int = 60
    wall_s: float = 5.0
    max_frame_bytes: int = 16 * _MB
    requests: int = 1000


JINJA2 = Kind("jinja2", "storage.engine.sandbox.inside.jinja2", requires=("minijinja",))
PYTHON = Kind("python", "storage.engine.sandbox.inside.python", memory_bytes=512 * _MB, cpu_s=300)
