"""More answers to the exercises of lesson 06: right ones in other styles, and a wrong one to 06.1."""

import copy
import functools
import inspect
import math
import operator
import weakref
from collections import OrderedDict, defaultdict

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tests.answers import alternative, unnamed


@alternative("06.1")
def refuse_nan(layer, name):
    def guard(name, module, args):
        bad = next(((v, n) for v in args if (n := int(torch.isnan(v).sum()))), None)
        if bad is not None:
            raise ValueError(f"layer {name!r} received {bad[1]} nan, shape {tuple(bad[0].shape)}")

    return layer.register_forward_pre_hook(functools.partial(guard, name))


@alternative("06.1")
class RefuseNan:
    def __new__(cls, layer, name):
        self = super().__new__(cls)
        self.name = name
        return layer.register_forward_pre_hook(self)

    def __call__(self, module, args):
        for value in args:
            if value.numel() and value.max().isnan():  # max() passes nan on, and refuses an empty tensor
                raise ValueError(" ".join([self.name, str(value.isnan().sum()), "nan"]))


@alternative("06.1")
def refuse_nan(layer, name):
    def count(tensor):
        return np.count_nonzero(np.isnan(tensor.detach().double().numpy()))

    def guard(module, args):
        counts = list(filter(None, map(count, args)))
        if counts:
            raise ValueError(str({"layer": name, "nan": counts[0]}))
        return args

    return layer.register_forward_pre_hook(guard)


@alternative("06.1")
def refuse_nan(layer, name):
    @torch.no_grad()
    def guard(module, args):
        for place, value in enumerate(args, start=1):
            count = sum(math.isnan(number) for number in value.flatten().tolist())
            if count > 0:
                error = ValueError(f"{count}.0 nan in input {place} of {name}")
                raise error from None
        return None

    return layer.register_forward_pre_hook(guard, prepend=True)


@alternative("06.1")
def refuse_nan(layer, name):
    def counted(test):
        @functools.wraps(test)
        def guard(module, args):
            for value in args:
                if (n := test(value)) >= 1:
                    raise ValueError(name, n)

        return guard

    @counted
    def nans(value):
        return (value != value).sum().item()

    return layer.register_forward_pre_hook(nans)


@alternative("06.2")
def normalise(layer, mean, std):
    class Scale(nn.Module):
        def forward(self, x):
            return x.sub(mean).div(std)

    scale = Scale()

    def hook(module, args):
        first, *others = args
        return (scale(first), *others)

    return layer.register_forward_pre_hook(hook)


@alternative("06.2")
def normalise(layer, mean, std):
    def scale(mean, std, module, args):
        new = list(args)
        new[0] = torch.div(torch.sub(new[0], mean), std)
        return tuple(new)

    return layer.register_forward_pre_hook(functools.partial(scale, mean, std))


@alternative("06.2")
def normalise(layer, mean, std):
    mean, std = mean.clone(), std.clone()

    def scale(module, args):
        x = args[0].clone()
        x -= mean
        x /= std
        return (x,) + tuple(args[1:])

    return layer.register_forward_pre_hook(scale)


@alternative("06.2")
def normalise(layer, mean, std):
    steps = (lambda x: operator.sub(x, mean), lambda x: operator.truediv(x, std))
    chain = functools.partial(functools.reduce, lambda x, step: step(x), steps)
    return layer.register_forward_pre_hook(lambda _, args: (chain(args[0]), *args[1:]))


@alternative("06.2")
class Normalise:
    def __new__(cls, layer, mean, std):
        self = object.__new__(cls)
        self.mean, self.factor = mean, 1 / std
        return layer.register_forward_pre_hook(self.scale, with_kwargs=True)

    def scale(self, module, args, kwargs):
        return ((args[0] - self.mean) * self.factor, *args[1:]), kwargs


@alternative("06.2")
def normalise(layer, mean, std):
    owner = weakref.ref(layer)

    def scale(module, args):
        assert owner() is module
        return tuple((a - mean) / std if place == 0 else a for place, a in enumerate(args))

    handle = layer.register_forward_pre_hook(scale, prepend=True)
    return handle


@alternative("06.3")
def log_kwargs(layer, log):
    def plain(value):
        match value:
            case torch.Tensor():
                return tuple(value.shape)
            case _:
                return value

    def note(module, args, kwargs):
        log.append(OrderedDict(zip(kwargs, map(plain, kwargs.values()), strict=True)))

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@alternative("06.3")
def log_kwargs(layer, log):
    @functools.singledispatch
    def entry(value):
        return value

    @entry.register
    def _(value: torch.Tensor):
        return tuple(value.size())

    def note(log, module, args, kwargs):
        log += [{name: entry(kwargs[name]) for name in kwargs}]

    return layer.register_forward_pre_hook(functools.partial(note, log), with_kwargs=True)


@alternative("06.3")
class LogKwargs:
    def __new__(cls, layer, log):
        self = super().__new__(cls)
        self.log = log
        return layer.register_forward_pre_hook(self, with_kwargs=True)

    def __call__(self, module, args, kwargs):
        entry = defaultdict(list)
        for name, value in kwargs.items():
            entry[name] = value.shape if torch.is_tensor(value) else value
        self.log.extend([entry])


@alternative("06.3")
def log_kwargs(layer, log):
    def note(*given):
        *_, kwargs = given
        copy = dict(kwargs)
        for name in [n for n, v in kwargs.items() if isinstance(v, torch.Tensor)]:
            copy[name] = tuple(len_ for len_ in kwargs[name].shape)
        log.insert(len(log), copy)

    return layer.register_forward_pre_hook(note, with_kwargs=True, prepend=True)


@alternative("06.3")
def log_kwargs(layer, log):
    before = layer.register_forward_pre_hook(
        lambda module, args, kwargs: log.append(
            {k: (v, tuple(v.shape))[1] if hasattr(v, "untyped_storage") else v for k, v in kwargs.items()}
        ),
        with_kwargs=True,
    )
    return before


@alternative("06.4")
class Standardise:
    def __new__(cls, conv):
        self = super().__new__(cls)
        conv.weight_raw = conv._parameters.pop("weight")
        return conv.register_forward_pre_hook(self)

    def __call__(self, module, args):
        w = module.weight_raw
        centred = w - torch.mean(w, (1, 2, 3), True)
        module.weight = centred * (centred.pow(2).mean((1, 2, 3), True) + 1e-5).pow(-0.5)


@alternative("06.4")
def standardise(conv):
    raw = conv.weight
    delattr(conv, "weight")
    setattr(conv, "weight_raw", raw)

    def each(w):
        return (w - w.mean()) / torch.sqrt(w.var(unbiased=False) + 1e-5)

    def rebuild(module, args):
        module.weight = torch.stack([each(w) for w in module.weight_raw])

    return conv.register_forward_pre_hook(rebuild)


@alternative("06.4")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        channels = w.shape[0]
        module.__dict__["weight"] = F.batch_norm(
            w.reshape(1, channels, -1), None, None, training=True, eps=1e-5
        ).reshape(w.shape)

    return conv.register_forward_pre_hook(functools.partial(rebuild))


@alternative("06.4")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        n = w[0].numel()
        mean = w.sum((1, 2, 3), keepdim=True) / n
        var = ((w - mean) ** 2).sum((1, 2, 3), keepdim=True) / n
        module.weight = w.sub(mean).div(var.add(1e-5).sqrt())

    return conv.register_forward_pre_hook(rebuild)


@alternative("06.4")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight
    assert "weight" not in inspect.getattr_static(conv, "_parameters", {})

    def rebuild(module, args, kwargs):
        with torch.enable_grad():
            std, mean = torch.std_mean(module.weight_raw, dim=(1, 2, 3), correction=0, keepdim=True)
            module.weight = (module.weight_raw - mean) / (std**2 + 1e-5) ** 0.5

    return conv.register_forward_pre_hook(rebuild, with_kwargs=True)


@alternative("06.1")
def refuse_nan(layer, name):
    def check_one(value):
        where = torch.nonzero(torch.isnan(value.detach()))
        if len(where):
            raise ValueError("%s: %d nan" % (name, len(where)))  # noqa: UP031
        return value

    return layer.register_forward_pre_hook(
        lambda m, args, kwargs: (tuple(map(check_one, args)), kwargs), with_kwargs=True
    )


@alternative("06.1")
def refuse_nan(layer, name):
    def guard(module, args):
        if bad := [n for value in args if (n := int((value != value).sum()))]:
            raise ValueError(f"nan in {name}: {bad[0]:,} of them")

    return layer.register_forward_pre_hook(guard)


@alternative("06.2")
def normalise(layer, mean, std):
    def scale(mean, std, module, args, kwargs):
        return (args[0].sub(mean).div(std), *args[1:]), dict(sorted(kwargs.items(), reverse=True))

    return layer.register_forward_pre_hook(functools.partial(scale, mean, std), with_kwargs=True)


@alternative("06.3")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        entry = dict(kwargs)
        for key in entry:
            match entry[key]:
                case torch.Tensor() as tensor:
                    entry[key] = tensor.size()
        log[len(log) :] = [entry]
        return args, kwargs

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@alternative("06.3")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: v.shape if torch.is_tensor(v) else copy.deepcopy(v) for k, v in kwargs.items()})

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@alternative("06.3")
def log_kwargs(layer, log):
    def note(module, args, kwargs, output):
        log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})

    return layer.register_forward_hook(note, with_kwargs=True, always_call=True)


@alternative("06.4")
def standardise(conv):
    conv.register_parameter("weight_raw", conv._parameters.pop("weight"))
    return conv.register_forward_pre_hook(
        lambda module, args: setattr(
            module, "weight", F.layer_norm(module.weight_raw, module.weight_raw.shape[1:], eps=1e-5)
        )
    )


@alternative("06.4")
def standardise(conv):
    conv.register_parameter("weight_raw", conv._parameters.pop("weight"))

    def rebuild(module, args):
        module.weight = F.group_norm(module.weight_raw, 1, eps=1e-5)

    return conv.register_forward_pre_hook(rebuild)


@unnamed("06.1", "refuses")
def refuse_nan(layer, name):
    seen = []

    def guard(module, args):
        if not seen:
            seen.append(module)
            for value in args:
                count = torch.isnan(value).sum().item()
                if count:
                    raise ValueError(f"{name}: {count} nan")

    return layer.register_forward_pre_hook(guard)
