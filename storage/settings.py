"""All settings of the service, read once from the environment and frozen."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from storage.domain.llm_providers import parse_providers
from storage.domain.targets import parse_allowed

PREFIX = "PROMPTLAKE_"
SHORTEST_KEY = 32
_MAX_SOCKET_BYTES = 100


class SettingError(ValueError):
    """A setting of the environment cannot be used; the message names the variable."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings; the environment variable of a field is `PROMPTLAKE_` and its name in capitals.

    Sizes are bytes, times seconds, unless the name says otherwise.
    """

    home: Path = field(default=Path(".promptlake"), metadata={"help": "folder that holds everything written"})
    host: str = field(default="127.0.0.1", metadata={"help": "address that the API binds"})
    port: int = field(default=8000, metadata={"help": "port of the API"})
    dagster_host: str = field(
        default="127.0.0.1", metadata={"help": "address that the Dagster UI binds; it has no login"}
    )
    dagster_port: int = field(default=3000, metadata={"help": "port of the Dagster UI"})
    workers: int = field(default=1, metadata={"help": "API processes"})
    api_key: str = field(
        default="",
        metadata={
            "help": "at first start, the first key (admin) of the workspace `default`; 32 characters or more"
        },
    )
    catalog_url: str = field(
        default="", metadata={"help": "catalog database; default: SQLite in the home folder"}
    )
    log_url: str = field(
        default="",
        metadata={"help": "database of the log tail; default: its own SQLite file in the home folder"},
    )
    data_url: str = field(
        default="", metadata={"help": "where Parquet is kept; default: `data` in the home folder"}
    )
    log_writer: str = field(
        default="local",
        metadata={
            "help": "`local`: a thread of the API process writes the log tail; `remote`: a process of its "
            "own does (set by the supervisor)"
        },
    )
    run_launcher: str = field(
        default="warm", metadata={"help": "`warm` (worker pool) or `stock` (a process a run)"}
    )
    max_run_processes: int = field(
        default=16, metadata={"help": "runs at work at most, all lanes together; about 60 MB each"}
    )
    max_file_bytes: int = field(
        default=104_857_600, metadata={"help": "largest decoded upload, in bytes, inclusive"}
    )
    max_body_bytes: int = field(
        default=10_485_760, metadata={"help": "largest body other than uploads, in bytes"}
    )
    body_idle_s: float = field(
        default=60.0, metadata={"help": "seconds without a byte after which a body is given up"}
    )
    flush_bytes: int = field(default=67_108_864, metadata={"help": "tail size that starts a flush, in bytes"})
    flush_after_s: float = field(
        default=30.0, metadata={"help": "age of the oldest unflushed log that starts a flush"}
    )
    webhook_allow: str = field(
        default="",
        metadata={"help": "private networks and host names that webhooks may reach, separated by commas"},
    )
    webhook_days: int = field(default=30, metadata={"help": "days that ended webhook deliveries are kept"})
    upload_days: int = field(default=7, metadata={"help": "days that uploads are kept for re-execution"})
    providers: str = field(
        default="",
        metadata={
            "help": "services that speak OpenAI's interface, as `name=https://host/v1`, separated by commas; "
            "the key of each is the variable `<NAME>_API_KEY`"
        },
    )
    model_calls: int = field(
        default=64, metadata={"help": "calls of one model at once, all runs of the machine together"}
    )
    model_calls_per_minute: int = field(
        default=0, metadata={"help": "calls of one model a minute, all runs of the machine together; 0: any"}
    )
    model_timeout_s: float = field(
        default=120.0, metadata={"help": "seconds that one attempt at a model call may take"}
    )
    result_days: int = field(
        default=90, metadata={"help": "days that results of model calls answer equal computations"}
    )
    run_days: int = field(default=30, metadata={"help": "days that ended Dagster runs are kept"})
    log_level: str = field(default="INFO", metadata={"help": "lowest level of the service's log lines"})

    @classmethod
    def from_env(cls, env: Mapping[str, str], **overrides: Any) -> "Settings":
        """Read `PROMPTLAKE_*` from `env`; overrides (of the command line) win when not None.

        Raises:
            SettingError: a value does not fit, or a `PROMPTLAKE_*` variable is unknown.
        """
        known = {f.name: f for f in fields(cls)}
        values: dict[str, Any] = {}
        for name, text in env.items():
            if not name.startswith(PREFIX):
                continue
            key = name.removeprefix(PREFIX).lower()
            if key not in known:
                raise SettingError(f"{name} is no setting of promptlake")
            if text != "":
                values[key] = _parse(name, text, known[key].default)
        values |= {key: value for key, value in overrides.items() if value is not None}
        return checked(cls(**values))

    @property
    def root(self) -> Path:
        """The home folder, absolute."""
        return self.home.expanduser().absolute()

    @property
    def dagster_home(self) -> Path:
        return self.root / "dagster"

    @property
    def catalog(self) -> str:
        """URL of the catalog database."""
        return self.catalog_url or f"sqlite:///{self.root / 'catalog.sqlite3'}"

    @property
    def log_database(self) -> str:
        """URL of the database that holds the log tail and the log manifest."""
        return self.log_url or f"sqlite:///{self.root / 'logs.sqlite3'}"

    @property
    def log_socket(self) -> Path:
        """Where the process that writes the log tail takes logs from the others."""
        path = self.root / "run" / "logs.sock"
        if len(os.fsencode(path)) <= _MAX_SOCKET_BYTES:
            return path
        # the kernel refuses longer names; the folder is private, as the one at home is
        mark = sha256(os.fsencode(str(self.root))).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"promptlake-{os.getuid()}-{mark}" / "logs.sock"

    @property
    def data(self) -> str:
        """URL of the folder that holds Parquet segments and the spool."""
        return self.data_url or (self.root / "data").as_uri()

    def env(self) -> dict[str, str]:
        """Spell these settings as environment variables for a child process (never the API key)."""
        return {
            PREFIX + f.name.upper(): str(self.root if f.name == "home" else getattr(self, f.name))
            for f in fields(self)
            if f.name != "api_key"
        }


def checked(settings: Settings) -> Settings:
    """Return the settings when their values fit together.

    Raises:
        SettingError: one does not; the message names its variable.
    """
    if settings.api_key and len(settings.api_key) < SHORTEST_KEY:
        raise SettingError(f"PROMPTLAKE_API_KEY must have at least {SHORTEST_KEY} characters")
    if settings.run_launcher not in {"warm", "stock"}:
        raise SettingError("PROMPTLAKE_RUN_LAUNCHER must be `warm` or `stock`")
    try:
        parse_allowed(settings.webhook_allow)
    except ValueError as error:
        raise SettingError(f"PROMPTLAKE_WEBHOOK_ALLOW: {error}") from error
    try:
        parse_providers(settings.providers)
    except ValueError as error:
        raise SettingError(f"PROMPTLAKE_PROVIDERS: {error}") from error
    if settings.model_calls < 1:
        raise SettingError("PROMPTLAKE_MODEL_CALLS must be at least 1")
    if settings.log_writer not in {"local", "remote"}:
        raise SettingError("PROMPTLAKE_LOG_WRITER must be `local` or `remote`")
    if settings.workers < 1:
        raise SettingError("PROMPTLAKE_WORKERS must be at least 1")
    return settings


def _parse(name: str, text: str, default: Any) -> Any:
    kind = type(default)
    try:
        return Path(text) if isinstance(default, Path) else kind(text)
    except ValueError as error:
        raise SettingError(f"{name} must be a {kind.__name__}, not {text!r}") from error
