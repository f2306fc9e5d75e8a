"""What the twelfth strangers tried on lesson 06: values that nobody passed by keyword, and lists that hold tensors."""

import inspect

import torch

from tests.answers import mistake, unnamed


@mistake("06.3", "logs_positional")
def log_kwargs(layer, log):
    parameters = inspect.signature(layer.forward).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}

    def note(module, args, kwargs):
        given = {**defaults, **kwargs}
        log.append({k: tuple(v.shape) if torch.is_tensor(v) else v for k, v in given.items()})

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@mistake("06.3", "logs_positional")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        entry = {k: tuple(v.shape) if torch.is_tensor(v) else v for k, v in kwargs.items()}
        log.append(entry | {f"args[{n}]": tuple(x.shape) for n, x in enumerate(args[1:], start=1)})

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@unnamed("06.3", "logs")
def log_kwargs(layer, log):
    def shape(value):
        if isinstance(value, list):
            return [shape(item) for item in value]
        return tuple(value.shape) if torch.is_tensor(value) else value

    def note(module, args, kwargs):
        log.append({name: shape(value) for name, value in kwargs.items()})

    return layer.register_forward_pre_hook(note, with_kwargs=True)
