"""Raw attacks by code that runs inside a worker: none gets out, and the next tenant's work runs."""

import os
import time
from dataclasses import replace

import pytest

from storage.domain.errors import LimitReached
from storage.engine.sandbox.pool import Pool
from tests.storage.sandbox.conftest import ATTACKER

FILES = [
    "open('/etc/passwd').read()",
    "open('/proc/self/environ', 'rb').read()",
    "open('/proc/self/maps').read()",
    "open('/proc/self/mem', 'wb')",
    "open('/proc/1/environ', 'rb').read()",
    "open('/proc/self/fd/0')",
    "open('/dev/null')",
    "open(sys.executable, 'rb').read(4)",
    "open('/tmp/left-by-an-attack', 'w')",
    "os.listdir('/')",
    "os.listdir('/proc')",
    "os.stat('/etc/passwd')",
    "os.lstat('/etc/passwd')",
    "os.readlink('/proc/self/exe')",
    "os.getcwd()",
    "os.chdir('/tmp')",
    "os.chroot('/tmp')",
    "os.mkdir('/tmp/left-by-an-attack')",
    "os.unlink('/tmp/left-by-an-attack')",
    "os.rename('/tmp/a', '/tmp/b')",
    "os.symlink('/etc/passwd', '/tmp/left-by-an-attack')",
    "os.link('/etc/passwd', '/tmp/left-by-an-attack')",
    "os.mkfifo('/tmp/left-by-an-attack')",
    "os.chmod('/etc/passwd', 0o777)",
    "os.chown('/etc/passwd', 0, 0)",
    "os.truncate('/etc/passwd', 0)",
    "os.utime('/etc/passwd')",
    "os.statvfs('/')",
    "os.memfd_create('x')",
    "os.pipe()",
    "os.dup(1)",
    "import sqlite3",
    "import storage.store",
    "ctypes.CDLL('/tmp/evil.so')",
]
NETWORK = [
    "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
    "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
    "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
    "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "socket.socketpair()",
    "socket.create_connection((b'127.0.0.1', 8000))",
    "socket.getaddrinfo(b'localhost', 80)",
    "socket.gethostbyname(b'example.com')",
]
PROCESSES = [
    "os.fork()",
    "os.forkpty()",
    "os.posix_spawn('/bin/true', ['true'], {})",
    "os.execv('/bin/sh', ['sh', '-c', 'id'])",
    "subprocess.run(['id'])",
    "subprocess.run('id', shell=True)",
    "threading.Thread(target=print).start()",
    "os.kill(1, 0)",
    "os.kill(-1, 0)",
    "os.kill(os.getpid(), 9)",
    "os.killpg(0, 9)",
    "signal.raise_signal(9)",
    "signal.pthread_kill(threading.get_ident(), 9)",
    "signal.signal(signal.SIGXCPU, signal.SIG_IGN)",
    "signal.setitimer(signal.ITIMER_REAL, 1)",
    "os.waitpid(-1, 0)",
    "os.setsid()",
    "os.sched_setaffinity(0, {0})",
    "os.nice(-1)",
    "os.setpriority(os.PRIO_PROCESS, 0, -1)",
]
KERNEL = [
    "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)",
    "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)",
    "resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))",
    "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))",
    "resource.prlimit(0, resource.RLIMIT_CPU, (1000, 1000))",
    "os.setuid(0)",
    "os.seteuid(0)",
    "os.setgroups([0])",
    "os.uname()",
    "os.getgroups()",
]

REFUSALS = {
    *("PermissionError", "OSError", "BlockingIOError", "gaierror", "itimer_error"),
    "RuntimeError",  # no thread
    "ValueError",  # a limit cannot be raised
    *("ImportError", "ModuleNotFoundError"),
}


@pytest.mark.parametrize("source", [*FILES, *NETWORK, *PROCESSES, *KERNEL])
def test_what_reaches_out_is_refused(shared_pool: Pool, source: str) -> None:
    answer = shared_pool.ask(ATTACKER, 1, f"result = repr({source})" if "import " not in source else source)
    assert answer.get("raised") in REFUSALS, answer


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("ptrace", "0, 0, 0, 0"),
        ("ptrace", "16, 1, 0, 0"),
        ("prctl", "4, 1, 0, 0, 0"),
        ("prctl", "1, 0, 0, 0, 0"),
        ("personality", "0x0400000"),
        ("unshare", "0x10000000"),
        ("setns", "0, 0"),
        ("syscall", "425, 8, 0"),
        ("syscall", "321, 0, 0, 0"),
        ("syscall", "323, 0"),
        ("syscall", "435, 0, 0"),
        ("syscall", "0x40000000 + 2, 0, 0"),
        ("inotify_init", ""),
        ("shmget", "0, 4096, 0o1777"),
        ("memfd_create", "b'x', 0"),
        ("reboot", "0"),
        ("alarm", "1"),
    ],
)
def test_raw_calls_are_refused(shared_pool: Pool, call: str, arguments: str) -> None:
    source = f"ctypes.set_errno(0); done = libc.{call}({arguments}); result = [done, ctypes.get_errno()]"
    done, errno = shared_pool.ask(ATTACKER, 1, source)["result"]
    assert (errno, done in {-1, 4294967295}) == (1, True)


def test_memory_cannot_be_turned_into_code(shared_pool: Pool) -> None:
    source = (
        "page = mmap.mmap(-1, 4096); page.write(b'\\xc3')\n"
        "at = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]\n"
        "ctypes.set_errno(0)\n"
        "result = [libc.mprotect(at, 4096, 5), ctypes.get_errno()]"
    )
    assert shared_pool.ask(ATTACKER, 1, source) == {"result": [-1, 1]}


def test_neither_environment_nor_arguments_nor_open_files_tell_anything(shared_pool: Pool) -> None:
    os.environ["PROMPTLAKE_TEST_SECRET"] = "s3cret"
    try:
        source = (
            "libc.getenv.restype = ctypes.c_char_p\n"
            "environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, 'environ')\n"
            "raw = environ[0] if environ else None\n"
            "fds = []\n"
            "for fd in range(4096):\n"
            "    for touch in (lambda: os.read(fd, 0), lambda: os.write(fd, b'')):\n"
            "        try: touch(); fds.append(fd)\n"
            "        except OSError: pass\n"
            "result = [dict(os.environ), str(raw), len(fds), sys.argv, str(sys.stdin), str(sys.stdout)]"
        )
        # of a pool of its own: the variable is set before its worker starts
        pool = Pool()
        try:
            found = pool.ask(ATTACKER, 1, source)["result"]
        finally:
            pool.close()
    finally:
        del os.environ["PROMPTLAKE_TEST_SECRET"]
    assert found == [{}, "None", 2, ["-c"], "None", "None"]


BOMBS = {
    "a loop": ("while True: pass", "time"),
    "sleep": ("time.sleep(100)", "time"),
    "a power": ("result = len(str(7 ** 10 ** 7))", "time"),
    "a regular expression": (r"re.match(r'(a+)+$', 'a' * 40 + 'b')", "time"),
    "an iterator in C": ("sum(range(10 ** 14))", "time"),
    "a flood of prints": ("while True: print('x' * 100000)", "time"),
    "one large value": ("bytearray(10 ** 9)", "memory"),
    "many values": ("kept = []\nwhile True: kept.append(bytearray(10 ** 6))", "memory"),
    "a doubling text": ("s = 'x'\nwhile True: s += s", "memory"),
    "a caught memory error": (
        "kept = []\nwhile True:\n    try: kept.append(bytearray(10 ** 6))\n    except MemoryError: pass",
        "time",
    ),
    "recursion": ("def f(): f()\nf()", "recursion"),
    "a huge return": ("result = 'x' * (17 << 20)", "output"),
    "a deep return": ("result = []\nfor _ in range(100000): result = [result]", "recursion"),
    "its own end": ("os._exit(0)", "memory"),
    "a crash": ("ctypes.string_at(1)", "memory"),
    "an exit": ("raise SystemExit", "memory"),
    "closed frames": ("for fd in range(64):\n    try: os.close(fd)\n    except OSError: pass", "memory"),
}
_OUT = (
    "import errno\n"
    "def say(raw):\n"
    "    for fd in range(3, 4096):\n"
    "        try: os.write(fd, raw); return\n"
    "        except OSError: pass\n"
)
FORGERIES = {
    "a frame of 4 GB": (_OUT + "say(b'\\xff\\xff\\xff\\xff'); time.sleep(100)", "output"),
    "half a frame": (_OUT + "say(b'\\x00\\x00\\x00\\x10[[[['); time.sleep(100)", "time"),
    "no JSON": (_OUT + "say(b'\\x00\\x00\\x00\\x02[['); time.sleep(100)", "output"),
    "no UTF-8": (_OUT + "say(b'\\x00\\x00\\x00\\x02\\xff\\xff'); time.sleep(100)", "output"),
    "JSON that is too deep": (
        _OUT + "say((60000).to_bytes(4, 'big') + b'[' * 60000); time.sleep(100)",
        "output",
    ),
    "another shape": (_OUT + "say(b'\\x00\\x00\\x00\\x07[1,2,3]'); time.sleep(100)", "output"),
    "an unknown limit": (
        _OUT + 'say(b\'\\x00\\x00\\x00\\x11{"limit":"{kind}"}\'); time.sleep(100)',
        "output",
    ),
}


@pytest.mark.parametrize("name", [*BOMBS, *FORGERIES])
def test_a_bomb_fails_alone_and_the_next_tenant_is_served(shared_pool: Pool, name: str) -> None:
    source, limit = (BOMBS | FORGERIES)[name]
    started = time.monotonic()
    with pytest.raises(LimitReached) as met:
        shared_pool.ask(ATTACKER, 1, source)
    assert met.value.limit == limit
    assert time.monotonic() - started < 30
    assert shared_pool.ask(ATTACKER, 2, "result = 1 + 1") == {"result": 2}
    assert shared_pool.ask(ATTACKER, 1, "result = 1 + 1") == {"result": 2}


def test_a_worker_that_answers_twice_is_not_asked_again(pool: Pool) -> None:
    forged = _OUT + "say(b'\\x00\\x00\\x00\\x0b{\"value\":7}'); result = 8"
    assert pool.ask(ATTACKER, 1, forged) == 7
    time.sleep(0.05)  # the second answer arrives
    assert pool.ask(ATTACKER, 1, "result = 2") == {"result": 2}


def test_the_limit_of_cpu_time_holds_without_its_owner(pool: Pool) -> None:
    with pytest.raises(LimitReached) as met:
        pool.ask(replace(ATTACKER, name="brief", cpu_s=1, wall_s=30.0), 1, "while True: pass")
    assert met.value.limit == "system"
