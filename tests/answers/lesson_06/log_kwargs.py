"""Answers to 06.3, `log_kwargs`."""

import copy

import torch

from tests.answers import alternative, edited, mistake, unnamed


@alternative("06.3")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: v.shape if torch.is_tensor(v) else v for k, v in kwargs.items()})

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "lists")
def log_kwargs(layer, log):
    def keep(module, args, kwargs, log=log):
        entry = {}
        for name, value in kwargs.items():
            entry[name] = list(value.shape) if isinstance(value, torch.Tensor) else value
        log += [entry]
        return args, kwargs

    return layer.register_forward_pre_hook(keep, with_kwargs=True)


@mistake("06.3", "only_after")
def log_kwargs(layer, log):
    def note(module, args, kwargs, output):
        log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})

    return layer.register_forward_hook(note, with_kwargs=True)


@mistake("06.3", "not_registered")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})

    return note


@mistake("06.3", "rebinds_log")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log = [{k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}]

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "keeps_tensors")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append(kwargs)

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "keeps_tensors")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append(dict(kwargs))

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "skips_empty")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        if kwargs:
            log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "names_only")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append(list(kwargs))

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "tensors_only")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: tuple(v.shape) for k, v in kwargs.items() if isinstance(v, torch.Tensor)})

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "no_dict")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append(
            (len(args), {k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})
        )

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "logs_positional")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        entry = {k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
        entry["x"] = tuple(args[0].shape)
        log.append(entry)

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "changes_kwargs")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        for k, v in kwargs.items():
            if isinstance(v, torch.Tensor):
                kwargs[k] = tuple(v.shape)
        log.append(kwargs)

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "changes_kwargs")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        entry = {}
        if "mask" in kwargs:
            entry["mask"] = tuple(kwargs.pop("mask").shape)
        log.append(entry | kwargs)

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "unpacks_args")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})
        return args[0], kwargs

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "replaces_args")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})
        return tuple(value.detach() for value in args), kwargs

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "as_text")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else str(v) for k, v in kwargs.items()})

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "as_text")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: str(v) for k, v in kwargs.items()})

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "flag_missing")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})

    return layer.register_forward_pre_hook(note)


@mistake("06.3", "two_arguments")
def log_kwargs(layer, log):
    def note(module, kwargs):
        log.append({})

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "returns_something")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})
        return kwargs

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "returns_something")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})
        return args

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "shape_of_a_number")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: tuple(v.shape) for k, v in kwargs.items()})

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "calls_now")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        pass

    return layer.register_forward_pre_hook(note(layer, (), {}), with_kwargs=True)


@mistake("06.3", "no_handle", points=3)
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})

    layer.register_forward_pre_hook(note, with_kwargs=True)


ENDS = "()}\n        )"  # of the call of log.append
edited("06.3", "without_flag", ("args, kwargs)", "args, **kwargs)"), (", with_kwargs=True", ""))
edited("06.3", "lists", ("tuple(v.shape)", "list(v.shape)"))
edited("06.3", "keeps_tensors", ("isinstance(v, torch.Tensor)", "type(v) is torch.Tensor"))
edited("06.3", "drops_none", ("kwargs.items()", "kwargs.items() if v is not None"))
edited("06.3", "drops_none", ("kwargs.items()", "kwargs.items() if isinstance(v, torch.Tensor) or v"))
edited("06.3", "no_dict", ("{k: tuple", "[(k, tuple"), (" else v for", " else v) for"), ("()}", "()]"))
edited(
    "06.3", "removes_itself", (ENDS, ENDS + "\n        handle.remove()"), ("return layer", "handle = layer")
)
edited("06.3", None, (ENDS, ENDS + "\n        return None"))


@mistake("06.3", "replaces_log")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log[:] = [{k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}]

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "reuses_dict")
def log_kwargs(layer, log):
    entry = {}

    def note(module, args, kwargs):
        entry.clear()
        entry.update({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})
        log.append(entry)

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "replaces_log")
def log_kwargs(layer, log):
    log.clear()

    def note(module, args, kwargs):
        log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@unnamed("06.3", "unchanged")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})
        return args, copy.deepcopy(kwargs)

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@unnamed("06.3", "logs")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.insert(0, {k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})

    return layer.register_forward_pre_hook(note, with_kwargs=True)


LOGS = "log.append("
TEST = "isinstance(v, torch.Tensor)"
edited("06.3", "logs", (LOGS, "if module.training:\n            log.append("), named=False)
edited("06.3", "logs", (LOGS, "if torch.is_grad_enabled():\n            log.append("), named=False)
edited("06.3", "replaces_log", (ENDS, ENDS + "\n        del log[:-5]"))
edited("06.3", "replaces_log", (ENDS, ENDS + "\n        del log[:-100]"))
edited("06.3", "logs", (TEST, 'hasattr(v, "shape")'), named=False)
edited("06.3", "logs", ("else v for", "else int(v) if isinstance(v, bool) else v for"), named=False)
edited("06.3", "lists", ("else v for", "else list(v) if isinstance(v, tuple) else v for"))
edited("06.3", "logs", (f"tuple(v.shape) if {TEST}", f"(tuple(v.shape) or v.item()) if {TEST}"), named=False)
edited(
    "06.3",
    "hooks",
    (
        "return layer",
        "for child in layer.children():\n        child.register_forward_pre_hook(note, with_kwargs=True)\n    return layer",
    ),
    points=3,
)


@mistake("06.3", "skips_equal")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        entry = {k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
        if not log or str(log[-1]) != str(entry):
            log.append(entry)

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@unnamed("06.3", "logs")
def log_kwargs(layer, log):
    def plain(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(plain, value))
        return tuple(value.shape) if isinstance(value, torch.Tensor) else value

    def note(module, args, kwargs):
        log.append({k: plain(v) for k, v in kwargs.items()})

    return layer.register_forward_pre_hook(note, with_kwargs=True)


edited(
    "06.3",
    "fires_backward",
    ("register_forward_pre_hook(note, with_kwargs=True)", "register_full_backward_hook(note)"),
)
edited("06.3", "logs", (" else v for", " else len(v) if isinstance(v, list) else v for"), named=False)
edited("06.3", "logs", ("log.append", "if not module.training:\n            log.append"), named=False)


@unnamed("06.3", "logs")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        if any(isinstance(v, torch.Tensor) for v in kwargs.values()):
            kwargs = {k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
        log.append(kwargs)

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@unnamed("06.3", "logs")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append(kwargs)
        for k, v in kwargs.items():
            if isinstance(v, torch.Tensor):
                log[-1] = {**log[-1], k: tuple(v.shape)}
        if not log[-1]:
            kwargs.clear()

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@unnamed("06.3", "raised")
def log_kwargs(layer, log):
    """A tensor that was computed cannot be deep-copied."""

    def note(module, args, kwargs):
        entry = copy.deepcopy(kwargs)
        log.append({key: tuple(v.shape) if isinstance(v, torch.Tensor) else v for key, v in entry.items()})

    return layer.register_forward_pre_hook(note, with_kwargs=True)
