"""Answers to lesson 08 of strangers who had not read the checks, in their eleventh round."""

import weakref

from tests.answers import edited, mistake

# A child that a configuration leaves out is None.
edited("08.2", "raised", ("model.named_children()", "model._modules.items()"), named=False)

# The names say too much or too little, while just the leaked hooks come off: no hook was taken for another.
edited(
    "08.3",
    "found",
    ("return [hook.path for hook in leaked]", "return [*names]"),
    (
        "    for hook in leaked:",
        "    names = [hook.path for hook in list_hooks(model)]\n    for hook in leaked:",
    ),
    named=False,
)
edited("08.3", "found", ("for hook in leaked]", "for hook in leaked if hook.path]"), named=False)

# A module that calls itself is open twice.
edited(
    "08.5",
    "closes_itself",
    (
        "        rows.append",
        "        if module in running:\n            del running[running.index(module) :]\n        rows.append",
    ),
    ("running.pop()", "if module in running:\n            del running[running.index(module) :]"),
)
edited("08.5", "closes_itself", ("(len(running), ", "(len({*running, module}) - 1, "))


# A weak reference does not keep a hook.
@mistake("08.4", "held_weakly")
def register_once(handles, name, module, hook):
    if name in handles:
        handles[name].remove()
    ref = weakref.ref(hook)

    def call(module, args, output):
        hook = ref()
        return hook(module, args, output) if hook else None

    handles[name] = module.register_forward_hook(call)
    return handles[name]
