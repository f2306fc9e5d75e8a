"""Hostile submissions of the corpus that want an effect: never end, take everything, outlive their end, get out."""

from tests.grading.corpus import ANSWER, KILLED, NO_MEMORY, RAISED, RIGHT, STOPPED, Case, with_cell

# --- never ends, or ends too early ---------------------------------------------------------------------------------

IGNORE_SIGNALS = """
import signal, time
for n in range(1, 65):
    try: signal.signal(n, signal.SIG_IGN)
    except (OSError, ValueError): pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True: time.sleep(1)
"""
DEADLOCK = """
import threading
lock = threading.Lock()
lock.acquire(); lock.acquire()
"""
WAIT_FOR_CHILD = "import os\nif os.fork() == 0:\n  while True: os.wait() if os.fork() else __import__('time').sleep(99)\nos.wait()"
STRINGS_LOOP = "class Loops(Exception):\n  def __str__(self):\n    while True: __import__('time').sleep(1)\ndef watch(y, seen): raise Loops"
LIMITS = """
import resource
for name in ("CPU", "DATA", "AS", "STACK", "NOFILE", "FSIZE", "NPROC"):
    resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (0, 0))
while True:  # the limit of processor time ends it at the next tick: here, and not in a later cell
    pass
"""
ENDINGS = {
    "sleeps": Case("import time\ntime.sleep(10**6)", *STOPPED),
    "raises-to-a-power": Case("10 ** 10 ** 9", *STOPPED),
    "backtracks": Case("import re\nre.match('(a+)+$', 'a' * 64 + 'b')", *STOPPED),
    "ignores-signals": Case(IGNORE_SIGNALS, *STOPPED),
    "deadlocks": Case(DEADLOCK, *STOPPED),
    "waits-for-a-child": Case(WAIT_FOR_CHILD, *STOPPED),
    "loops-in-the-text-of-its-error": Case(STRINGS_LOOP, *STOPPED),
    "aborts": Case("import os\nos.abort()", *KILLED, notes=("ended by signal",)),
    "calls-what-is-no-function": Case("import ctypes\nctypes.CFUNCTYPE(None)(1)()", *KILLED, notes=("it was in cell ",), reached=("ctypes",)),
    "becomes-another-program": Case("import os\nos.execv('/bin/sh', ['/bin/sh', '-c', 'exit 0'])", *KILLED, notes=("exit code 0",)),
    "lowers-its-limits": Case(LIMITS, *KILLED),
}  # fmt: skip

# --- takes everything ----------------------------------------------------------------------------------------------

THREADS = """
import threading
while True:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
FILES = """
for n in range(10**6):
    open(f"{n}", "w").close()
"""
DEEP_FOLDERS = """
import os
for n in range(10**6):
    os.mkdir("d"); os.chdir("d")
"""
DESCRIPTORS = "import os\nkept = [os.pipe() for _ in range(10**6)]"
SHARED = """
import mmap
kept = mmap.mmap(-1, 2**32)
for n in range(0, 2**32, 2**20):
    kept[n:n + 2**20] = b"x" * 2**20
"""
BOMB = """
import zlib
packed = zlib.compress(bytes(2**27), 9)
kept = []
while True: kept.append(zlib.decompress(packed))
"""
RESOURCES = {
    "starts-threads": Case(THREADS, *RAISED, error="RuntimeError: can't start new thread"),
    "makes-files": Case(FILES, *RAISED, error="OSError: [Errno 28]"),
    "makes-folders-in-folders": Case(DEEP_FOLDERS, *RAISED, error="OSError: [Errno 28]"),
    "opens-files-without-end": Case(DESCRIPTORS, *RAISED, error="OSError: [Errno 24]"),
    "asks-for-all-memory": Case("'x' * 10**12", *NO_MEMORY, error="MemoryError"),
    "asks-numpy-for-memory": Case("import numpy\nnumpy.zeros(10**12)", *NO_MEMORY, error="MemoryError: Unable"),
    "fills-shared-memory": Case(SHARED, *NO_MEMORY),
    "unpacks-a-bomb": Case(BOMB, *NO_MEMORY, error="MemoryError"),
}  # fmt: skip

# --- goes on after its end, and leaves something behind ------------------------------------------------------------

FAREWELL = """
import atexit, os, sys
forged = b'{"done": true, "out_of_memory": false}\\n' * 9
def say_goodbye(*_):
    for fd in range(3, 256):
        try:
            os.write(fd, forged)
        except OSError:
            pass
    while True:
        pass
class Clinging:
    __del__ = say_goodbye
atexit.register(say_goodbye)
sys.clinging = Clinging()
"""
THREAD_LEFT = """
import threading
def spin():
    while True:
        pass
threading.Thread(target=spin).start()
threading.Thread(target=threading.Event().wait, daemon=False).start()
"""
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    os.close(0), os.close(1), os.close(2)
    if os.fork() == 0:
        os.execv("/bin/sh", ["/bin/sh", "-c", "trap '' 1 2 3 15; while :; do sleep 1; done; : LITTER"])
    os._exit(0)
"""
CLOSED = """
import os, sys
sys.stdout.close(); sys.stderr = sys.stdin = None
os.close(0); os.close(1); os.close(2)
"""
LITTER = """
import os, pathlib, subprocess, tempfile
for place in (".", "~", "/", "/tmp", "/var/tmp", "/dev/shm", "/etc", "/root", tempfile.gettempdir(), "CLASS", "ROOT",
              "ROOT/hookedu", "/hookedu", "/hookedu/hookedu", os.path.dirname(os.__file__)):
    for name in ("LITTER", "grades.db"):
        try:
            pathlib.Path(place, name).expanduser().write_text("LITTER")
        except OSError:
            pass
subprocess.Popen(["/bin/sh", "-c", "trap '' TERM HUP; sleep 600; : LITTER"], start_new_session=True)
"""
LINKS = """
import os, pathlib
for n, place in enumerate(("CLASS", "ROOT", "/etc/passwd", "/proc/1/root", "/proc/self/fd/9", "/dev/sda", "..")):
    os.symlink(place, f"link-{n}")
    for path in (pathlib.Path(f"link-{n}"), pathlib.Path(f"link-{n}/sleeps"), pathlib.Path(f"link-{n}/LITTER")):
        for act in (path.unlink, path.rmdir, path.touch, lambda: os.truncate(path, 0), lambda: os.rename(path, "mine")):
            try:
                if path.name[:5] != "link-" : act()
            except OSError: pass
"""
MACHINE = """
import os, socket, time
attempts = [
    lambda: socket.sethostname("litter"), lambda: time.clock_settime(time.CLOCK_REALTIME, 0), lambda: os.nice(-20),
    lambda: os.setpriority(os.PRIO_USER, 0, -5), lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    lambda: os.mknod("disk", 0o60666, os.makedev(8, 0)), lambda: os.chroot("."), lambda: os.setgroups([0]),
    lambda: os.chown("/dev/null", 1, 1), lambda: os.chmod("/dev/zero", 0), lambda: os.utime("/dev/full"),
    *(lambda path=path: open(path, "w").write("1") for path in (
        "/proc/sys/kernel/pid_max", "/proc/sysrq-trigger", "/sys/power/state", "/dev/kmsg", "/dev/mem")),
]
for attempt in attempts:
    try: attempt()
    except OSError: pass
"""
AFTERWARDS = {
    "says-goodbye": Case(with_cell(FAREWELL), *RIGHT),
    "leaves-threads": Case(with_cell(THREAD_LEFT), *RIGHT),
    "leaves-a-daemon": Case(with_cell(DAEMON), *RIGHT),
    "closes-what-is-printed-to": Case(with_cell(CLOSED), *RIGHT),
    "litters": Case(with_cell(LITTER), *RIGHT),
    "links-to-elsewhere": Case(with_cell(LINKS), *RIGHT),
    "changes-the-machine": Case(with_cell(MACHINE), *RIGHT),
}  # fmt: skip

# --- uses the network, and calls of the kernel that are refused ----------------------------------------------------

LISTEN = """
import socket, threading
server = socket.create_server(("0.0.0.0", PORT_IN))
threading.Thread(target=server.accept, daemon=True).start()
import time
time.sleep(1)
"""
CALL = """
import socket
for family, kind in ((socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM)):
    try:
        with socket.socket(family, kind) as call:
            call.settimeout(1)
            call.connect(("127.0.0.1", PORT_OUT))
            call.send(b"hello")
    except OSError:
        pass
"""
CALL_BY_NAME = """
import socket
for name in ("\\0SOCKET", "CLASS/../SOCKET", "SOCKET"):
    try:
        with socket.socket(socket.AF_UNIX) as call:
            call.connect(name)
            call.send(b"hello")
    except OSError:
        pass
"""
RAW = """
import socket
for given in ((17, 3, 3), (2, 3, 1), (16, 3, 0), (38, 5, 0), (40, 1, 0), (31, 3, 1)):
    try:
        socket.socket(*given)
        if given[0] != 16: raise SystemExit(str(given))
    except OSError: pass
"""
REFUSED_CALLS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
granted = [number for number in (425, 321, 323, 298, 250, 319, 434, 310, 165, 272, 155) if libc.syscall(number, 8, 0, 0, 0, 0) != -1]
assert not granted, granted
"""
NETWORK = {
    "listens": Case(with_cell(LISTEN), *RIGHT),
    "calls": Case(with_cell(CALL), *RIGHT),
    "calls-by-name": Case(with_cell(CALL_BY_NAME), *RIGHT),
    "makes-raw-sockets": Case(RAW + ANSWER, *RIGHT),
    "asks-the-kernel": Case(REFUSED_CALLS + ANSWER, *RIGHT, reached=("ctypes",)),
}

EFFECTS = ENDINGS | RESOURCES | AFTERWARDS | NETWORK
