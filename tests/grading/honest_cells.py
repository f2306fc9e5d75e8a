"""Cells that learners write to try things, and that look odd: none of them reaches behind the scenes.

Each runs in a notebook after `import torch`, `from torch import nn`. Many use what attackers use as well (tracebacks,
inspection, generators, threads), or let a library do what a cell must not: ask for frames, trace, walk the heap.
"""

PYTHON = r"""
def plain(x): return x
---
from functools import wraps
def shout(f):
    @wraps(f)
    def g(*a, **k): return f(*a, **k)
    return g
@shout
def h(): return 1
h()
---
from dataclasses import dataclass, field, replace, asdict
@dataclass(frozen=True, order=True)
class P:
    x: int
    y: list = field(default_factory=list)
replace(P(1), x=2), asdict(P(1)), P(1) < P(2)
---
from dataclasses import make_dataclass
make_dataclass("Q", ["a", "b"])(1, 2)
---
from collections import namedtuple
Point = namedtuple("Point", "x y", defaults=[0])
Point(1)._replace(y=2)
---
from typing import NamedTuple
class Row(NamedTuple):
    a: int
    b: str = ""
Row(1)
---
from enum import Enum, auto
class Colour(Enum):
    RED = auto()
Colour["RED"], Enum("E", "a b")
---
from typing import TypeVar, Generic, Protocol, get_type_hints
T = TypeVar("T")
class Box(Generic[T]):
    x: "int"
get_type_hints(Box)
---
from typing import NewType, TypedDict
Uid = NewType("Uid", int)
class D(TypedDict):
    a: int
---
import inspect
inspect.signature(lambda a, *b, c=1: None)
---
import inspect
inspect.getsource(torch.nn.Linear), inspect.getdoc(torch.relu), inspect.getfile(torch.nn.Linear)
---
import inspect
inspect.getmembers(nn.ReLU()), inspect.isfunction(print), inspect.getmodule(nn.Linear)
---
import inspect
inspect.getfullargspec(nn.Conv2d.__init__), inspect.getmro(nn.Conv2d)
---
def told(): pass
told.__code__.co_varnames, told.__code__.co_name, told.__defaults__, told.__globals__.keys()
---
def curious(a=1): "doc"
curious.__defaults__ = (2,)
curious()
---
from functools import lru_cache, cache, partial, reduce, singledispatch
@cache
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(30), fib.cache_info(), reduce(max, [1, 2])
---
from functools import singledispatch
@singledispatch
def show(x): return 1
@show.register
def _(x: int): return 2
show(1)
---
from functools import cached_property, total_ordering
@total_ordering
class A:
    def __lt__(self, o): return False
    def __eq__(self, o): return True
    @cached_property
    def v(self): return 1
A().v, A() >= A()
---
import warnings
warnings.warn("careful", stacklevel=2)
---
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.warn("x", DeprecationWarning)
assert caught
---
import logging
logging.basicConfig(level=logging.DEBUG, format="%(funcName)s %(lineno)d %(message)s")
logging.getLogger("me").warning("x", stack_info=True)
---
import logging
try:
    1 / 0
except ZeroDivisionError:
    logging.exception("failed")
---
import traceback
try:
    1 / 0
except ZeroDivisionError:
    traceback.print_exc()
---
import traceback
traceback.print_stack(), traceback.extract_stack(), traceback.format_stack(limit=2)
---
import traceback
try:
    nn.Linear(2, 3)(torch.ones(5))
except RuntimeError as error:
    traceback.format_exception(error), traceback.extract_tb(error.__traceback__), str(error)
---
import traceback
try:
    1 / 0
except ZeroDivisionError as error:
    "".join(traceback.TracebackException.from_exception(error).format())
---
import sys
try:
    1 / 0
except ZeroDivisionError:
    kind, value, tb = sys.exc_info()
    tb.tb_lineno
---
try:
    try:
        1 / 0
    except ZeroDivisionError as e:
        raise ValueError("again") from e
except ValueError as e:
    e.__cause__, e.__context__, e.with_traceback(None)
---
try:
    raise ExceptionGroup("many", [ValueError(1), TypeError(2)])
except* (ValueError, TypeError) as group:
    len(group.exceptions)
---
from contextlib import contextmanager, suppress, ExitStack, redirect_stdout, nullcontext
@contextmanager
def managed():
    yield 1
with managed() as m, suppress(KeyError): pass
---
from contextlib import ExitStack
with ExitStack() as stack:
    stack.callback(print, "bye")
    stack.enter_context(torch.no_grad())
---
import io, contextlib
with contextlib.redirect_stdout(io.StringIO()) as out:
    print(1)
assert out.getvalue()
---
def gen():
    x = yield 1
    yield x
g = gen()
next(g), g.send(2), g.close()
---
import inspect
def gen():
    yield 1
g = gen()
inspect.isgenerator(g), inspect.isgeneratorfunction(gen)
---
import asyncio
async def work(): await asyncio.sleep(0); return 1
assert await work() == 1
---
import asyncio
async def both(): return await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2))
assert await both() == [1, 2]
---
import copy
copy.deepcopy({"a": [1, nn.Linear(2, 2)]}), copy.copy(nn.ReLU())
---
import pickle
pickle.loads(pickle.dumps({"a": torch.ones(2), "b": nn.Linear(2, 2)}))
---
class Mine:
    def __init__(self): self.a = 1
import pickle, copy
pickle.loads(pickle.dumps(Mine())).a, copy.deepcopy(Mine()).a
---
import threading
t = threading.Thread(target=lambda: torch.ones(2).sum())
t.start(); t.join()
---
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    assert list(pool.map(abs, [-1, 2])) == [1, 2]
---
import threading
local = threading.local(); local.x = 1
with threading.Lock(): pass
threading.current_thread().name, threading.enumerate()
---
import weakref
class W: pass
w = W(); r = weakref.ref(w); weakref.finalize(w, print, "gone")
del w
---
import gc
gc.collect(), gc.get_count(), gc.disable(), gc.enable(), gc.get_stats()
---
import sys
sys.getsizeof([]), sys.getrefcount(None), sys.version_info, sys.getrecursionlimit(), sys.path, list(sys.modules)
---
import sys
sys.setrecursionlimit(5000)
def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
deep(1500)
---
def endless(): return endless()
try:
    endless()
except RecursionError:
    pass
---
exec("made = 3"), eval("made + 1"), compile("1 + 1", "mine.py", "eval")
---
import ast
ast.dump(ast.parse("x = 1")), ast.literal_eval("[1, 2]")
---
import dis, io
dis.dis(lambda x: x + 1, file=io.StringIO())
---
type("Made", (nn.Module,), {"forward": lambda self, x: x})()(1)
---
class Meta(type):
    def __new__(m, *a): return super().__new__(m, *a)
class WithMeta(metaclass=Meta):
    def __getattr__(self, name): return name
WithMeta().anything
---
class Desc:
    def __set_name__(self, o, n): self.n = n
    def __get__(self, o, t): return 1
class Uses:
    d = Desc()
assert Uses().d == 1
---
class Counter:
    calls = 0
    def __call__(self, *a): Counter.calls += 1; return self
    def __enter__(self): return self
    def __exit__(self, *a): return True
with Counter()(): 1 / 0
---
import os, pathlib, tempfile
pathlib.Path("notes.txt").write_text("x"), os.listdir("."), os.environ.get("HOME"), tempfile.mkdtemp()
---
with open("helper_of_mine.py", "w") as f: f.write("def helper(): return 7\n")
import helper_of_mine
assert helper_of_mine.helper() == 7
---
import json, csv, re, math, statistics, random, datetime, decimal, fractions, itertools, operator, string, textwrap, time
json.dumps({}), re.sub("a", "b", "aa"), random.random(), time.perf_counter(), datetime.datetime.now()
---
import unittest
class T(unittest.TestCase):
    def test(self): self.assertRaises(ZeroDivisionError, lambda: 1 / 0)
unittest.TextTestRunner(stream=__import__("io").StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(T))
---
from unittest import mock
with mock.patch("torch.relu", return_value=1): assert torch.relu(3) == 1
mock.MagicMock().anything()
---
import doctest
def twice(x):
    '''>>> twice(2)
    4
    '''
    return 2 * x
doctest.run_docstring_examples(twice, globals())
---
import timeit, cProfile, pstats, io
timeit.timeit("1 + 1", number=10)
with cProfile.Profile() as p: sum(range(10))
pstats.Stats(p, stream=io.StringIO()).print_stats()
---
import tracemalloc
tracemalloc.start(); x = [0] * 1000; tracemalloc.take_snapshot().statistics("lineno"); tracemalloc.stop()
---
import signal
signal.signal(signal.SIGALRM, lambda *a: None); signal.alarm(0)
---
import atexit, builtins, operator, types
atexit.register(print, "bye"), builtins.len([]), types.SimpleNamespace(a=1), types.MethodType(print, 1)
---
import types
f = types.FunctionType((lambda x: x).__code__, globals(), "f")
assert f(1) == 1
---
id(1), hash("x"), vars(nn.Linear(1, 1)), dir(nn), globals().keys(), locals().keys(), callable(print)
---
print(*range(100)); print("错误", file=__import__("sys").stderr); input if False else None
---
import platform, getpass, socket, uuid, hashlib, zlib, struct, array
platform.platform(), uuid.uuid4(), hashlib.sha256(b"").hexdigest(), struct.pack("i", 1), array.array("f", [1.0])
---
import subprocess
subprocess.run(["echo", "hello"], capture_output=True)
---
import importlib
importlib.import_module("colorsys"), importlib.reload(__import__("colorsys")), importlib.util.find_spec("numpy")
---
def outer():
    n = 0
    def inner():
        nonlocal n
        n += 1
        return n
    return inner
f = outer(); f(); f.__closure__[0].cell_contents
"""

IPYTHON = r"""
%timeit -n 2 -r 2 torch.ones(3).sum()
---
%time torch.ones(3).sum()
---
%%time
x = torch.ones(3)
x.sum()
---
%%timeit -n 2 -r 1
torch.ones(3)
---
%prun -q sum(range(100))
---
%%capture out
print("caught")
---
%matplotlib inline
---
%who
%whos
%pwd
---
!echo hello
---
files = !ls
len(files)
---
%%bash
echo hello
---
%%writefile mine.py
VALUE = 3
---
%load_ext autoreload
%autoreload 2
---
?torch.relu
---
torch.relu??
---
%xmode Verbose
---
%pinfo nn.Linear
---
%history -n 1
---
%env HOME
---
%config InlineBackend.figure_format = "retina"
---
get_ipython().run_line_magic("pwd", ""), get_ipython().run_cell("inside = 1"), get_ipython().ast_node_interactivity
---
from IPython.display import display, HTML, Markdown, clear_output
display(HTML("<b>x</b>")), display(Markdown("x")), clear_output()
"""

TORCH = r"""
torch.manual_seed(0), torch.randn(2, 3, requires_grad=True).sum().backward()
---
y = torch.ones(2, requires_grad=True) * 2
h = y.register_hook(lambda g: print(g)); y.sum().backward(); h.remove()
---
m = nn.Linear(2, 2)
for register in (m.register_forward_hook, m.register_forward_pre_hook, m.register_full_backward_hook):
    register(lambda *a: None)
m(torch.ones(1, 2)).sum().backward()
---
handle = nn.modules.module.register_module_forward_hook(lambda m, i, o: None)
nn.ReLU()(torch.ones(1)); handle.remove()
---
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.BatchNorm1d(2)
    def forward(self, x): return self.b(self.a(x))
print(Net()); Net()(torch.ones(3, 2)); list(Net().named_parameters())
---
with torch.autograd.detect_anomaly():
    (torch.ones(2, requires_grad=True) * 2).sum().backward()
---
with torch.autograd.profiler.profile() as prof:
    torch.ones(3).sum()
prof.key_averages().table()
---
from torch.profiler import profile, ProfilerActivity
with profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
    torch.ones(3).sum()
---
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): ctx.save_for_backward(x); return x * x
    @staticmethod
    def backward(ctx, g): return 2 * ctx.saved_tensors[0] * g
Square.apply(torch.ones(2, requires_grad=True)).sum().backward()
---
torch.autograd.gradcheck(lambda x: x ** 2, torch.ones(2, dtype=torch.float64, requires_grad=True))
---
from torch.utils.checkpoint import checkpoint
checkpoint(nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True), use_reentrant=False).sum().backward()
---
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    (torch.ones(2, requires_grad=True) ** 2).sum().backward()
---
traced = torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))
traced(torch.ones(1, 2)), traced.code
---
@torch.jit.script
def scripted(x: torch.Tensor): return x + 1
scripted(torch.ones(1))
---
from torch import fx
fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))(torch.ones(1, 2))
---
torch.compile(nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))
---
from torch.func import grad, vmap, functional_call
grad(lambda x: x ** 2)(torch.ones(())), vmap(torch.sum)(torch.ones(2, 3))
---
from torch.utils.data import DataLoader, TensorDataset
for batch in DataLoader(TensorDataset(torch.ones(4, 2)), batch_size=2, shuffle=True): pass
---
torch.save(nn.Linear(2, 2).state_dict(), "m.pt"); torch.load("m.pt")
---
torch.save(nn.Sequential(nn.Linear(2, 2)), "whole.pt"); torch.load("whole.pt", weights_only=False)
---
opt = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.StepLR(opt, 1)
opt.step(); sched.step(); opt.state_dict()
---
from torch.utils._python_dispatch import TorchDispatchMode
class Log(TorchDispatchMode):
    def __torch_dispatch__(self, f, t, a=(), k=None): return f(*a, **(k or {}))
with Log(): torch.ones(2) + 1
---
from torch.overrides import TorchFunctionMode
class Log(TorchFunctionMode):
    def __torch_function__(self, f, t, a=(), k=None): return f(*a, **(k or {}))
with Log(): torch.ones(2) + 1
---
class Sub(torch.Tensor): pass
torch.ones(2).as_subclass(Sub) + 1
---
t = torch.ones(2, requires_grad=True) * 3
t.grad_fn, t.grad_fn.next_functions, t.grad_fn.name(), t.grad_fn.metadata
---
t = torch.ones(2, requires_grad=True) * 3
t.grad_fn.register_hook(lambda i, o: None), t.grad_fn.register_prehook(lambda g: None), t.retain_grad()
---
l = nn.Linear(2, 2)
l._forward_hooks, l._backward_hooks, l.weight._backward_hooks, l.weight.data_ptr(), l.weight.untyped_storage()
---
l = nn.Linear(2, 2)
original = l.forward
l.forward = lambda x: original(x) + 1
l(torch.ones(1, 2))
---
original = nn.ReLU.forward
nn.ReLU.forward = lambda self, x: x.clamp(min=0)
nn.ReLU()(torch.ones(1)); nn.ReLU.forward = original
---
nn.utils.clip_grad_norm_(nn.Linear(2, 2).parameters(), 1.0), nn.utils.parameters_to_vector(nn.Linear(2, 2).parameters())
---
from torch.nn.utils import parametrize
class Half(nn.Module):
    def forward(self, w): return w / 2
parametrize.register_parametrization(nn.Linear(2, 2), "weight", Half())
---
torch.nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2))(torch.ones(1, 2))
---
torch.testing.assert_close(torch.ones(2), torch.ones(2)); torch.set_printoptions(precision=2); print(torch.ones(2))
---
from torch.utils.hooks import RemovableHandle
from collections import OrderedDict
RemovableHandle(OrderedDict()).remove()
---
torch.library.custom_op("honest::twice", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")(torch.ones(1))
---
from torch.utils.flop_counter import FlopCounterMode
with FlopCounterMode(display=False): nn.Linear(2, 2)(torch.ones(1, 2))
---
import numpy as np
np.ones(3).mean(), torch.from_numpy(np.ones(2)), np.testing.assert_allclose(1, 1), np.vectorize(abs)([-1])
---
import matplotlib.pyplot as plt
fig, ax = plt.subplots(); ax.plot([1, 2]); ax.imshow([[1, 2]]); fig.savefig("f.png"); plt.show(); plt.close("all")
---
import ipywidgets
s = ipywidgets.IntSlider(); s.observe(print, "value"); s.value = 3; ipywidgets.interact(lambda x: x, x=(0, 3))
---
import hookedu, inspect
hookedu.__version__, dir(hookedu), inspect.signature(hookedu.record), help
---
from hookedu import record, list_hooks, remove_hooks, diagnose, timeline
net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
with record(net, layers=nn.ReLU) as rec: net(torch.ones(1, 2))
print(list_hooks(net), rec), diagnose
---
from hookedu import plot_feature_maps, plot_stats, record, timeline
net = nn.Sequential(nn.Conv2d(1, 2, 1), nn.ReLU())
with record(net, layers=nn.Conv2d) as rec: net(torch.ones(1, 1, 4, 4))
plot_feature_maps(rec["0"].activation), plot_stats(rec)
---
from hookedu import check, hint, progress, solution
check("02.1", abs), check("02.1"), hint("02.1"), progress(), solution("02.1")
---
from hookedu import *
Text(zh="钩子", en="hook")
---
from hookedu.models.shapes import SmallCNN, Shapes
SmallCNN()
---
from hookedu import LanguageToggle, HookInspector, LayerPicker
LanguageToggle()
---
from hookedu import guess
guess("02.a")
guess("02.b")
---
import hookedu.hooks, hookedu.plots
from hookedu.hooks.capture import record
"""

CELLS = [cell.strip() for table in (PYTHON, IPYTHON, TORCH) for cell in table.split("\n---\n")]
