"""Watch whether a submission reaches behind the scenes: for frames, the garbage collector, the engine of the exercises.

The probes run in the same process as the learner's code, which can find them there: the case, its seed, the functions
that write down what an answer does. None of this can be forbidden, because libraries do the same. Here it is reported
to the grader, by a line of its own that is sent before anything happens and cannot be taken back, for a person to judge:

    {"reached": "sys._getframe"}                              the learner's own code asked for a frame
    {"reached": "import hookedu.exercises.probing"}           it imported the engine
    {"reached": "ctypes"}                                     it imported or called what reads all memory
    {"reached": "hookedu.exercises.probing.encode = ..."}     it changed the engine; the change is undone

Code is the learner's own unless its file is a library's. It also answers for a library that calls on its behalf: one
that hands out frames, such as `inspect.stack`, and one that calls what it does not name, such as a pool of threads.
THREATS.md describes what all this is worth, and what it is not.
"""

import bdb
import ctypes
import importlib
import inspect
import logging
import os
import sys
import traceback
import types
from asyncio import base_tasks
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from json.encoder import encode_basestring_ascii
from operator import is_
from threading import RLock
from typing import Any

from hookedu.exercises import probing

Tell = Callable[[str], None]

_HIDDEN = ("hookedu.exercises", "hookedu.grading", "hookedu.learner")  # no cell has a reason to import them
_OF_MEMORY = ("ctypes",)  # reads and writes all memory, and much of what it does raises no event
_KEPT = ("hookedu.exercises", "hookedu.hooks.state", "hookedu.grading.run.worker")

# Audit event -> the name under which a library calls what raises it; None: the caller may be written in C.
_EVENTS = {
    "sys._getframe": "_getframe",
    "sys._current_frames": "_current_frames",
    "sys._current_exceptions": "_current_exceptions",
    "gc.get_objects": "get_objects",
    "gc.get_referrers": "get_referrers",
    "gc.get_referents": "get_referents",
    "sys.settrace": None,
    "sys.setprofile": None,
    "sys.monitoring.register_callback": None,
    "sys.addaudithook": None,
    "code.__new__": None,  # it may name a library's file as its own
}
_IMPORT = "hookedu.import"  # an event of our own
_FRAMES = ("tb_frame", "gi_frame", "cr_frame", "ag_frame")  # attributes that give a frame
_OF_FUNCTIONS = ("__code__", "__defaults__", "__kwdefaults__")
# What hands out frames, and whole files that do on their caller's behalf what is watched.
_HAND_OUT = {
    function.__code__
    for function in (
        *(inspect.currentframe, inspect.stack, inspect.trace, inspect.getouterframes, inspect.getinnerframes),
        *(traceback.walk_stack, traceback.walk_tb, logging.currentframe, base_tasks._task_get_stack),
    )
}
_ON_BEHALF = (
    "<frozen importlib",
    os.path.join(os.path.dirname(importlib.__file__), ""),
    os.path.join(os.path.dirname(ctypes.__file__), ""),
    bdb.__file__,
    os.path.join(os.path.dirname(bdb.__file__), "pdb.py"),
    __file__,
)


def teller(channel: int, lock: RLock) -> Tell:
    """Return a function that reports each thing to the grader once; nothing that a learner can patch takes part in it.

    The process ends if the channel is no longer the pipe that it was.
    """
    write, fstat, end, quote = os.write, os.fstat, os._exit, encode_basestring_ascii
    pipe = fstat(channel)[:3]
    told: set[str] = set()

    def tell(what: str) -> None:
        if what not in told:
            told.add(what)
            with lock:
                try:
                    if fstat(channel)[:3] != pipe:
                        end(1)
                    write(channel, b'{"reached": %s}\n' % quote(what[:200]).encode())
                except OSError:
                    end(1)

    return tell


def watch(tell: Tell, modules: "Modules") -> Callable[[], None]:
    """Watch this process from now on, and return a function that puts hookedu's own modules back.

    To be called before the learner's first cell.
    """
    _add_hook(tell, modules)
    sys.meta_path.insert(0, _Finder())

    def put_back() -> None:
        for name in modules.put_back():
            tell(f"{name} = ...")

    put_back()
    return put_back


def _attribution() -> Callable[..., bool]:
    """Return the function by which the audit hook finds out whose call raised an event.

    All that it and the hook use is bound here, where no patch reaches it.
    """
    getframe, libraries, hand_out, kind, string = sys._getframe, probing.libraries(), _HAND_OUT, type, str

    def is_learners(name: str | None, on_behalf: tuple[str, ...] = _ON_BEHALF) -> bool:
        frame = caller = getframe().f_back.f_back  # type: ignore[union-attr]
        while frame:
            code = frame.f_code
            if kind(code.co_filename) is not string or not code.co_filename.startswith(libraries):
                return True
            if code not in hand_out and not code.co_filename.startswith(on_behalf):
                return frame is caller and name is not None and name not in code.co_names
            frame = frame.f_back
        return False

    return is_learners


def _add_hook(tell: Tell, modules: "Modules") -> None:
    """Add the audit hook, which nothing can remove; if it fails, as deep in a recursion, so does what raised the event."""
    is_learners, libraries = _attribution(), probing.libraries()
    events, attributes, of_functions, importing = _EVENTS, _FRAMES, _OF_FUNCTIONS, _IMPORT
    own, kind, string = is_learners.__code__, type, str

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in events:
            itself = event == "sys._getframe" and args[0].f_code is own
            if not itself and is_learners(events[event]):
                tell(event)
        elif event == "object.__getattr__":
            if args[1] in attributes and is_learners(args[1]):
                tell(args[1])
        elif event == "object.__setattr__":
            if args[1] in of_functions:
                modules.functions_too = True
        elif event == "compile":  # under the name of a library's file
            if kind(args[1]) is string and args[1].startswith(libraries) and is_learners(None, ()):
                tell("compile")
        elif event == importing:
            if args[0] in modules.hidden:
                if is_learners(None):
                    tell("ctypes" if args[0].startswith("ctypes") else f"import {args[0]}")
                args[1].append(modules.hidden[args[0]])
        elif event.startswith("ctypes.") and is_learners(None):
            tell("ctypes")

    sys.addaudithook(hook)


class Modules:
    """The modules of hookedu's engine as they are now, before any learner's cell.

    Made in the warm process: a fork would have to copy every page of memory that this looks at. In the fork they, and
    ctypes, are hidden: gone from `sys.modules`, so that whoever imports one comes by `_Finder` and gets the very same one.
    """

    def __init__(self) -> None:
        self._modules, self._package = sys.modules, vars(sys.modules["hookedu"])
        own = {name: module for name, module in sys.modules.items() if name.startswith("hookedu.")}
        hidden = (*_HIDDEN, *_OF_MEMORY)
        self.hidden = {name: module for name, module in sys.modules.items() if _within(name, hidden)}
        self._tables: list[_Table] = []
        self._functions: list[tuple[str, types.FunctionType, list[Any]]] = []
        for module in [module for name, module in own.items() if _within(name, _KEPT)]:
            names = vars(module)
            self._tables.append(_Table(module.__name__, names, names.__setitem__, names.__delitem__))
            for name, value in list(names.items()):
                self._keep(f"{module.__name__}.{name}", value, module.__name__)
        self.functions_too = False  # set when the code of any function has been replaced

    def _keep(self, name: str, value: Any, module: str) -> None:
        """Keep what a module defines: the code of a function, the parts of a class, the items of a dict."""
        if isinstance(value, types.FunctionType) and value.__module__ == module:
            self._functions.append((name, value, [getattr(value, part) for part in _OF_FUNCTIONS]))
        elif isinstance(value, type) and value.__module__ == module:
            put, remove = partial(type.__setattr__, value), partial(type.__delattr__, value)
            self._tables.append(_Table(name, vars(value), put, remove))
            for key, part in vars(value).items():
                if isinstance(part, types.FunctionType):
                    self._keep(f"{name}.{key}", part, module)
        elif type(value) is dict and not name.endswith("__"):
            self._tables.append(_Table(name, value, value.__setitem__, value.__delitem__, named=False))

    def put_back(self) -> list[str]:
        """Undo every change, hide the modules again, and return the full names of what had changed."""
        changed = [name for table in self._tables for name in table.put_back()]
        if self.functions_too:
            self.functions_too = False
            for name, function, parts in self._functions:
                for attribute, part in zip(_OF_FUNCTIONS, parts, strict=True):
                    if getattr(function, attribute) is not part:
                        setattr(function, attribute, part)
                        changed.append(name)
        for name in self.hidden:
            self._modules.pop(name, None)
            self._package.pop(name.removeprefix("hookedu."), None)
        return changed


class _Table:
    """What is in a module, a class or a dict, and what was; a change in a dict is reported without its key."""

    def __init__(
        self,
        name: str,
        now: Mapping[Any, Any],
        put: Callable[[Any, Any], None],
        remove: Callable[[Any], None],
        named: bool = True,
    ) -> None:
        self._name, self._now, self._put, self._remove, self._named = name, now, put, remove, named
        self._then = dict(now)

    def put_back(self) -> list[str]:
        """Undo every change, and return the full names of what had changed."""
        now, then = self._now, self._then
        if len(now) == len(then) and all(map(is_, now, then)) and all(map(is_, now.values(), then.values())):
            return []
        changed = [key for key, value in then.items() if key not in now or now[key] is not value]
        for key in changed:
            self._put(key, then[key])
        for key in [key for key in now if key not in then]:
            if not self._is_harmless(key, now[key]):  # which may go again as it came
                changed.append(key)
                self._remove(key)
        return [f"{self._name}.{key}" if self._named else self._name for key in changed]

    def _is_harmless(self, key: Any, value: Any) -> bool:
        """Check whether what was added comes from Python or torch and stands for nothing that the code here uses."""
        if key == "__slotnames__":  # from `copy`, in a class
            return True
        if isinstance(value, types.ModuleType) and value.__name__ == f"{self._name}.{key}":
            return True  # a part of hookedu that is loaded late
        # From `warnings` and from torch.compile, in a module.
        return type(key) is str and key.startswith("__") and type(self._now) is dict


class _Finder:
    """Finds the hidden modules for the import system. It has no list of them: a learner can find it in `sys.meta_path`."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return how a hidden module is imported: by asking the audit hook for it."""
        found: list[types.ModuleType] = []
        sys.audit(_IMPORT, name, found)
        return ModuleSpec(name, _Loader(found[0])) if found else None


class _Loader(Loader):
    """Loads a module by returning it."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self._spec  # which the import system has replaced


def _within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)
