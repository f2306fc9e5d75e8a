"""What the sixteenth strangers and readers tried on lesson 08: slips that raise."""

from tests.answers import edited, mistake

# Arguments in the wrong order: what is called `output` is the tuple of inputs.
edited(
    "08.2",
    "tuple_shape",
    ("def note(name, module, args, output)", "def note(name, module, output, args)"),
)


@mistake("08.4", "no_old_one")
def register_once(handles, name, module, hook):
    handles.get(name).remove()
    handles[name] = module.register_forward_hook(hook)
    return handles[name]
