"""Right answers to 06.1, `refuse_nan`."""

import torch

from tests.answers import alternative


@alternative("06.1")
def refuse_nan(layer, name):
    def guard(module, args, kwargs):
        for value in (*args, *kwargs.values()):
            if value.isnan().any():
                raise ValueError("layer " + name + ": nan x " + str(int(value.isnan().sum())))
        return args, kwargs

    handle = layer.register_forward_pre_hook(guard, with_kwargs=True)
    return handle


@alternative("06.1")
def refuse_nan(layer, name):
    class NanError(ValueError):
        pass

    class Guard:
        def __call__(self, module, args):
            for place, value in enumerate(args):
                if (value != value).any():
                    raise NanError(
                        f"input {place} of {name}: {(value != value).sum()} of {value.numel()} are nan"
                    )

    return layer.register_forward_pre_hook(Guard())


@alternative("06.1")
def refuse_nan(layer, name):
    def guard(module, args):
        counts = [torch.isnan(value).sum().item() for value in args]
        if any(counts):
            raise ValueError(f"{name}: nan in its inputs: {counts}")

    return layer.register_forward_pre_hook(guard)
