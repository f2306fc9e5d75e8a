"""What the eighth strangers tried on lesson 06: wrong answers that had been accepted or told something untrue."""

import torch

from tests.answers import mistake, unnamed


@unnamed("06.1", "refuses")
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            if value.numel() and torch.isnan(value[0] if value.dim() else value).any():
                raise ValueError(f"{name}: {int(torch.isnan(value).sum())} nan")

    return layer.register_forward_pre_hook(guard)


@unnamed("06.1", "refuses")
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            if torch.isnan(value[:2] if value.dim() else value).any():
                raise ValueError(f"{name}: {int(torch.isnan(value).sum())} nan")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "stops_early", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args[:3]:
            if count := int(torch.isnan(value).sum()):
                raise ValueError(f"{name}: {count} nan")

    return layer.register_forward_pre_hook(guard)


@unnamed("06.1", "every_input", points=4)
def refuse_nan(layer, name):
    def guard(module, args):
        if args and torch.isnan(torch.cat(args)).any():
            raise ValueError(f"{name}: {max(int(value.isnan().sum()) for value in args)} nan")

    return layer.register_forward_pre_hook(guard)


@unnamed("06.3", "unchanged")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: tuple(v.shape) if torch.is_tensor(v) else v for k, v in kwargs.items()})
        return (args[0],), kwargs

    return layer.register_forward_pre_hook(note, with_kwargs=True)
