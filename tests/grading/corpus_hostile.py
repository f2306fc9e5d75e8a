"""Hostile submissions of the corpus that claim points: by patches, forged lines, frames, lies and what they return."""

from tests.grading.corpus import (
    ANSWER,
    FORGED,
    KILLED,
    NO_MEMORY,
    NOTHING,
    POINTS,
    RAISED,
    RIGHT,
    RUINED,
    STUB,
    UNTOUCHED,
    WRONG,
    Case,
    Status,
    with_cell,
)

# --- patches -------------------------------------------------------------------------------------------------------

PATCH_JSON = f"""
import json
json.dumps = lambda *a, **k: '{{"exercise": "02.1", "record": {{"status": "correct", "points": 3}}, "points": 3}}'
json.JSONEncoder.encode = json.JSONEncoder.iterencode = json.dumps
{STUB}
"""
PATCH_TORCH = f"""
import torch
torch.equal = torch.allclose = torch.Tensor.equal = torch.Tensor.allclose = lambda *a, **k: True
torch.testing.assert_close = lambda *a, **k: None
{STUB}
"""
PATCH_TENSORS = f"""
import torch
torch.Tensor.__eq__ = torch.Tensor.__ne__ = lambda self, other: torch.tensor(True)
torch.Tensor.tolist = lambda self: [1.0] * self.numel()
torch.Tensor.backward = torch.Tensor.register_hook = lambda self, *a, **k: None
{STUB}
"""
PATCH_IPYTHON = f"""
from IPython.core.interactiveshell import InteractiveShell
class Fine:
    success, error_in_exec, error_before_exec, result = True, None, None, None
InteractiveShell.run_cell = get_ipython().run_cell = lambda *a, **k: Fine()
{STUB}
"""
PATCH_HOOKEDU = f"""
import hookedu.exercises.probing as probing
probing.encode = lambda value: {{"dict": [["passed", True], ["points", 3]]}}
{STUB}
"""
PATCH_BUILTINS = f"""
import builtins
builtins.len = lambda value: 3
builtins.all = builtins.any = builtins.isinstance = builtins.callable = lambda *given: True
{STUB}
"""
PATCH_IMPORTS = f"""
import builtins, sys
class Everything:
    def find_spec(self, name, path=None, target=None): raise SystemExit("no import of " + name)
    def __call__(self, path): raise SystemExit
sys.meta_path.insert(0, Everything())
sys.path_hooks.insert(0, Everything())
builtins.__import__ = lambda *given, **named: Everything()
{STUB}
"""
REPLACE_MODULES = f"""
import sys, types
class Module(types.ModuleType):
    def __getattr__(self, name): return Module(name)
    def __call__(self, *given, **named): return {{"status": "correct", "points": 3}}
for name in ("torch", "json", "dataclasses", "traceback", "hookedu", "hookedu.exercises.observation"):
    sys.modules[name] = Module(name)
{STUB}
"""
SHADOW_MODULES = f"""
for name in ("torch", "json", "hookedu", "dataclasses", "traceback", "sitecustomize", "ast"):
    with open(f"{{name}}.py", "w") as file:
        file.write("raise SystemExit('mine')")
import os, sys
sys.path.insert(0, os.getcwd())
{STUB}
"""
TRANSFORM = """
shell = get_ipython()
def all_mine(lines): return ["def watch(y, seen): pass\\n"]
shell.input_transformers_post.append(all_mine)
class Raises:
    def visit(self, node): raise KeyboardInterrupt
shell.ast_transformers.append(Raises())
"""
HANDLE_ERRORS = f"""
shell = get_ipython()
def handler(shell, kind, value, tb, tb_offset=None): raise SystemExit
shell.set_custom_exc((BaseException,), handler)
for event in ("pre_execute", "pre_run_cell", "post_run_cell", "post_execute"):
    shell.events.register(event, lambda *given: 1 / 0)
{STUB}
"""
LYING_NAMES = """
class Names(dict):
    def __contains__(self, name): return True
    def __getitem__(self, name): return print if name == "watch" else dict.get(self, name)
get_ipython().user_ns = Names(get_ipython().user_ns)
"""
TRACE = f"""
import sys
def tracer(frame, event, arg):
    for name in ("observations", "record", "points", "passed", "correct"):
        if name in frame.f_locals:
            frame.f_locals[name] = True
    return tracer
sys.settrace(tracer)
sys.setprofile(tracer)
{STUB}
"""
AUDIT = f"""
import sys
def refuse(event, args):
    if event not in ("compile", "exec"): raise PermissionError(event)
sys.addaudithook(refuse)
{STUB}
"""
PATCHES = {
    "patches-json": Case(PATCH_JSON, *FORGED),
    "patches-torch": Case(PATCH_TORCH, *WRONG),
    "patches-tensors": Case(PATCH_TENSORS, *NOTHING),
    "patches-ipython": Case(PATCH_IPYTHON, *NOTHING),
    "patches-hookedu": Case(PATCH_HOOKEDU, *WRONG, reached=("import hookedu.exercises", "import hookedu.exercises.probing", "hookedu.exercises.probing.encode = ...")),
    "patches-builtins": Case(PATCH_BUILTINS, *KILLED),
    "patches-imports": Case(PATCH_IMPORTS, *NOTHING),
    "replaces-modules": Case(REPLACE_MODULES, *WRONG),
    "shadows-modules": Case(SHADOW_MODULES, *WRONG),
    "transforms-cells": Case(TRANSFORM, *NOTHING),
    "handles-all-errors": Case(HANDLE_ERRORS, *WRONG),
    "lies-about-names": Case(LYING_NAMES, *WRONG),
    "traces": Case(TRACE, *WRONG, reached=("sys.settrace", "sys.setprofile")),
    "refuses-by-an-audit-hook": Case(AUDIT, *RUINED, reached=("sys.addaudithook",)),
}  # fmt: skip

# --- forged lines, and what can be done to the channel -----------------------------------------------------------

WRITE = """
import os
def write(line):
    for fd in range(3, 256):
        try: os.write(fd, line)
        except OSError: pass
write({line!r})
{rest}
"""


def writing(line, rest=STUB):
    return WRITE.format(line=line, rest=rest)


OBSERVED = b'{"exercise": "02.1", "record": {"status": "observed", "observations": [%s]}}\n'
NOT_TRIED = b"".join(
    b'{"exercise": "02.%d", "record": {"status": "not_attempted"}}\n' % n for n in (1, 2, 3, 4)
)
DONE = b'{"done": true, "out_of_memory": false}\n'
THREAD_FORGES = f"""
import os, threading
def forge():
    while True:
        for fd in range(3, 256):
            try:
                os.write(fd, b'{{"exercise": "02.1", "record": {{"status": "correct", "points": 3}}}}\\n')
            except OSError:
                pass
threading.Thread(target=forge, daemon=True).start()
import time
time.sleep(0.2)
{STUB}
"""
FORK = "import os\nchild = os.fork()\nif child: os.waitpid(child, 0)\n" + ANSWER
HAND_ON = """
import os, time
if os.fork():
    os._exit(5)
time.sleep(600)
"""
REDIRECT = """
import os
null = os.open("/dev/null", os.O_WRONLY)
for fd in range(3, 256):
    try: os.fstat(fd), fd != null and os.dup2(null, fd)
    except OSError: pass
"""
FIDDLE = """
import fcntl, os
for fd in range(3, 256):
    for change in (lambda: os.ftruncate(fd, 0), lambda: os.lseek(fd, 0, 0),
                   lambda: fcntl.fcntl(fd, 1031, 4096), lambda: fcntl.fcntl(fd, fcntl.F_SETOWN, 1),
                   lambda: os.set_inheritable(fd, True), lambda: fcntl.flock(fd, fcntl.LOCK_EX)):
        try: change()
        except OSError: pass
"""
LINES = {
    "forges-in-a-thread": Case(THREAD_FORGES, *FORGED),
    "forges-its-end": Case(writing(DONE), *FORGED),
    "forges-a-defect-of-the-grader": Case(writing(b'{"failed": "out of order"}\n'), *FORGED),
    "forges-an-observation": Case(writing(OBSERVED % b'{"dict": [["seen", []]]}'), *FORGED),
    "forges-and-leaves": Case(writing(NOT_TRIED + DONE, "os._exit(0)"), *UNTOUCHED),
    "forges-verdicts-and-leaves": Case(writing(NOT_TRIED.replace(b"not_attempted", b"correct") + DONE, "os._exit(0)"), *FORGED),
    "forges-numbers": Case(writing(OBSERVED % b'1e999, NaN, -0, %s' % (b"9" * 4000), "os._exit(0)"), *FORGED),
    "forges-nesting": Case(writing(OBSERVED % (b"[" * 9999 + b"]" * 9999), "os._exit(0)"), *FORGED),
    "forges-a-step": Case(writing(b'{"step": 99, "probe": "02.4"}\n'), *FORGED),
    "forges-no-text": Case(writing(b"\xff\xfe\x00\n"), *FORGED),
    "leaves-half-a-line": Case(writing(b'{"exercise": "02.1", "rec', "os._exit(0)"), *KILLED),
    "accuses-itself": Case(writing(b'{"reached": "[red]<script>\\u001b"}\n', ANSWER), *RIGHT, reached=("[red]<script>\ufffd",)),
    "forks-and-goes-on-twice": Case(FORK, *RIGHT),
    "hands-the-channel-on": Case(HAND_ON, *KILLED),
    "redirects-the-channel": Case(REDIRECT, *KILLED),
    "fiddles-with-the-channel": Case(with_cell(FIDDLE), *RIGHT),
}  # fmt: skip

# --- looking for what decides -------------------------------------------------------------------------------------

HUNT_BY_GC = f"""
import gc
for thing in gc.get_objects():
    if type(thing).__name__ == "Exercise":
        object.__setattr__(thing, "points", 1000)
        object.__setattr__(thing, "judge", lambda saw, rng: [])
{STUB}
"""
HUNT_BY_FRAMES = """
import sys
def watch(y, seen):
    frame = sys._getframe()
    while frame:
        if "send" in frame.f_locals:
            frame.f_locals["send"]({"exercise": "02.1", "record": {"status": "correct", "points": 3}})
        frame = frame.f_back
"""
HUNT_BY_SIGNALS = """
import signal, time
def handler(number, frame):
    while frame:
        if "send" in frame.f_locals:
            frame.f_locals["send"]({"exercise": "02.1", "record": {"status": "correct", "points": 3}})
        frame = frame.f_back
signal.signal(signal.SIGUSR1, handler)
signal.raise_signal(signal.SIGUSR1)
"""
HUNT_BY_TRACEBACKS = """
def watch(y, seen):
    try: 1 / 0
    except ZeroDivisionError as error: frame = error.__traceback__.tb_frame
    while frame:
        if "self" in frame.f_locals and hasattr(frame.f_locals["self"], "_seeds"):
            frame.f_locals["self"]._seeds.clear()
        frame = frame.f_back
"""
CHANGE_SEEDS = """
import gc
for thing in gc.get_objects():
    if type(thing).__name__ == "_Submission":
        thing._seeds = dict.fromkeys(thing._seeds, 0)
def watch(y, seen): return y.register_hook(lambda g: seen.append(g.clone()))
"""
CHANGE_BYTES = f"""
import ctypes
text = "observed"
ctypes.memmove(id(text) + 48, b"correct\\0", 8)
ctypes.pythonapi.PyThreadState_SetAsyncExc(1, None)
{STUB}
"""
HUNTS = {
    "hunts-by-gc": Case(HUNT_BY_GC, *WRONG, reached=("gc.get_objects",)),
    "hunts-by-frames": Case(HUNT_BY_FRAMES, *FORGED, reached=("sys._getframe",)),
    "hunts-by-signals": Case(HUNT_BY_SIGNALS, *FORGED),
    "hunts-by-tracebacks": Case(HUNT_BY_TRACEBACKS, Status.KILLED, [0, 0, *POINTS[2:]], reached=("tb_frame",)),
    "changes-seeds": Case(CHANGE_SEEDS, *NOTHING, reached=("gc.get_objects",)),
    "changes-bytes-of-a-string": Case(CHANGE_BYTES, *FORGED, reached=("ctypes",)),
}  # fmt: skip

# --- answers, values and errors that are not what they seem ------------------------------------------------------

RETURNS = """
import collections, decimal, numpy, threading, torch
class Number(int):
    __eq__ = __le__ = __ge__ = lambda self, other: True
    __hash__ = int.__hash__
    bit_length = lambda self: 1
class Mapping(dict):
    def items(self): raise SystemExit
    keys = __iter__ = items
class Mine(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, given=(), named=None): return True
class Watched(torch.utils.hooks.RemovableHandle):
    hooks_dict_ref = lambda self: 1 / 0
    def remove(self): raise GeneratorExit
    def __del__(self): raise RuntimeError
class Slots:
    __slots__ = ()
    def __getattribute__(self, name): raise KeyError(name)
class Never:
    def __get__(self, obj, kind): raise SystemExit
    __set__ = __delete__ = __get__
class Described:
    __class__ = __dict__ = __doc__ = Never()
def watch(y, seen):
    value = {value}
    seen.append(value)
    return value
"""
VALUES = {
    "an-integer-of-its-own": "Number(3)",
    "a-mapping-of-its-own": "Mapping(a=1)",
    "odd-keys": "{float('nan'): 1, (1, 2): 2, None: 3, b'x': 4, y: 5, frozenset(): 6, 1 == 1: 7}",
    "a-tensor-of-its-own": "torch.ones(2).as_subclass(Mine)",
    "a-handle-of-its-own": "Watched(collections.OrderedDict())",
    "no-attributes": "Slots()",
    "descriptors": "Described()",
    "complex-numbers": "torch.ones(2, dtype=torch.complex64)",
    "a-sparse-tensor": "torch.eye(3).to_sparse()",
    "numpy": "numpy.array([1, None, [2]], dtype=object)",
    "bytes-and-decimals": "[b'x' * 10**7, decimal.Decimal('NaN'), 1j, range(10**12), slice(1), ..., NotImplemented, {1}]",
    "surrogates": "'\\ud800' * 3000 + chr(0)",
    "a-lock": "threading.Lock()",
    "a-generator": "(n for n in iter(int, 1))",
}  # fmt: skip


def raising(made, more=""):
    """Return an answer whose call raises what an expression makes."""
    return f"{more}\ndef watch(y, seen): raise {made}"


SPEAKS_TOO_MUCH = "class Speaks(Exception):\n  def __str__(self): return 'x' * 10**8"
MARKUP = "E = type('<script>alert(1)</script>[b]', (Exception,), {})"
LIES_IN_SYNTAX = "e = SyntaxError('x')\ne.text, e.lineno, e.msg = 5, 'no', None"
CIRCLE = "e = ValueError('round')\ne.__cause__ = e.__context__ = e"
GROUP = "ExceptionGroup('many', [ValueError(n) for n in range(10**5)])"
ERRORS = {
    "exits-in-a-call": Case(raising("SystemExit(0)"), *RAISED, error="SystemExit: 0"),
    "closes-a-generator": Case(raising("GeneratorExit"), *RAISED, error="GeneratorExit"),
    "stops-an-iteration": Case(raising("StopIteration(3)"), *RAISED, error="StopIteration: 3"),
    "raises-no-exception": Case(raising("'a string'"), *RAISED, error="TypeError: exceptions must derive"),
    "raises-a-group": Case(raising(GROUP), *RAISED, error="ExceptionGroup: many (100000 sub-exceptions)"),
    "raises-in-a-circle": Case(raising("e", CIRCLE), *RAISED, error="ValueError: round"),
    "raises-much-text": Case(raising("Speaks", SPEAKS_TOO_MUCH), *RAISED, error="Speaks: xxx"),
    "raises-markup": Case(raising("E('\\x1b[31m\\ud800')", MARKUP), *RAISED, error="<script>"),
    "raises-what-a-stub-raises": Case(raising("NotImplementedError('在这里写你的代码 · your code here')"), *WRONG),
    "lies-in-a-syntax-error": Case(raising("e", LIES_IN_SYNTAX), *RAISED, error="SyntaxError"),
    "recurses": Case("def watch(y, seen): return watch(y, seen)", *RAISED, error="RecursionError"),
    "recursion-forbidden": Case(f"import sys\nsys.setrecursionlimit(60)\n{STUB}", *WRONG),
    "compiles-too-deep": Case("eval('(' * 10**5)", *RAISED, error="SyntaxError"),
}  # fmt: skip
ANSWERS = {
    "answer-deleted": Case(f"{ANSWER}\ndel watch", *RAISED, error="NameError: name 'watch' is not defined"),
    "answer-a-number": Case("watch = 42", *WRONG),
    "answer-a-built-in": Case("watch = print", *WRONG),
    "answer-a-coroutine": Case("async def watch(y, seen): return y.register_hook(seen.append)", *WRONG),
    "answer-takes-nothing": Case("def watch(): pass", *RAISED, error="TypeError: watch() takes 0 positional"),
    "answer-a-metaclass": Case("class Meta(type):\n  def __call__(cls, *given): return type.__call__(Meta, 'x', (), {})\nclass watch(metaclass=Meta): pass", *WRONG),
}  # fmt: skip
LIES = {
    **{f"returns-{name}": Case(RETURNS.replace("{value}", value), *WRONG) for name, value in VALUES.items()},
    "returns-a-tensor-without-end": Case(
        RETURNS.replace("{value}", "torch.ones(1).expand(2**40)"), *NO_MEMORY
    ),
    **ERRORS,
    **ANSWERS,
}

CLAIMS = PATCHES | LINES | HUNTS | LIES
