"""Right and wrong answers to the exercises of lesson 06."""

import warnings

import torch
from torch import nn
from torch.nn import functional as F

from tests.answers import alternative, mistake

# --- 06.1 ---------------------------------------------------------------------------------------------------


@mistake("06.1", "adds_up", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        broken = sum(torch.isnan(value).sum().item() for value in args)
        if broken > 0:
            raise ValueError(f"{name} got {broken} nan")

    return layer.register_forward_pre_hook(guard)


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


@mistake("06.1", "not_registered")
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            count = torch.isnan(value).sum().item()
            if count:
                raise ValueError(f"{name}: {count} nan")

    return guard


@mistake("06.1", "not_registered")
def refuse_nan(layer, name):
    pass


@mistake("06.1", "never_true")
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            if (value == float("nan")).any():
                raise ValueError(f"{name}: {value.numel()} nan")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "never_true")
def refuse_nan(layer, name):
    def guard(module, args):
        if float("nan") in args[0].tolist():
            raise ValueError(f"{name}: nan")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "only_says")
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            if torch.isnan(value).any():
                print(f"{name}: {torch.isnan(value).sum()} nan")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "only_says")
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            if torch.isnan(value).any():
                warnings.warn(f"{name}: {torch.isnan(value).sum()} nan")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "too_late")
def refuse_nan(layer, name):
    def guard(module, args, output):
        for value in args:
            count = torch.isnan(value).sum().item()
            if count:
                raise ValueError(f"{name}: {count} nan")

    return layer.register_forward_hook(guard)


@mistake("06.1", "too_late")
def refuse_nan(layer, name):
    def guard(module, args, output):
        count = torch.isnan(output).sum().item()
        if count:
            raise ValueError(f"{name}: {count} nan")

    return layer.register_forward_hook(guard)


@mistake("06.1", "refuses_everything")
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            if torch.isnan(value).any:
                raise ValueError(f"{name}: {torch.isnan(value).sum()} nan")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "changes_output")
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            count = torch.isnan(value).sum().item()
            if count:
                raise ValueError(f"{name}: {count} nan")
        return torch.nan_to_num(args[0]) * 0

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "wrong_kind", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            count = torch.isnan(value).sum().item()
            assert count == 0, f"{name}: {count} nan"

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "wrong_kind", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            count = torch.isnan(value).sum().item()
            if count:
                raise Exception(f"{name}: {count} nan")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "no_name", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            count = torch.isnan(value).sum().item()
            if count:
                raise ValueError(f"{type(module).__name__}: {count} nan")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "no_count", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            if torch.isnan(value).any():
                raise ValueError(f"{name}: nan in the input")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "no_count", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            rows = torch.isnan(value).any(dim=1).sum().item()
            if rows:
                raise ValueError(f"{name}: {rows} nan")

    return layer.register_forward_pre_hook(guard)


@alternative("06.1")
def refuse_nan(layer, name):
    def guard(module, args):
        counts = [torch.isnan(value).sum().item() for value in args]
        if any(counts):
            raise ValueError(f"{name}: nan in its inputs: {counts}")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "cuts_gradient", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            count = torch.isnan(value).sum().item()
            if count:
                raise ValueError(f"{name}: {count} nan")
        return tuple(value.detach() for value in args)

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "first_only", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        count = torch.isnan(args[0]).sum().item()
        if count:
            raise ValueError(f"{name}: {count} nan")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "refuses_infinity", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            count = (~torch.isfinite(value)).sum().item()
            if count:
                raise ValueError(f"{name}: {count} values are not finite")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "tuple_for_tensor")
def refuse_nan(layer, name):
    def guard(module, args):
        if torch.isnan(args).any():
            raise ValueError(name)

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "tuple_for_tensor")
def refuse_nan(layer, name):
    def guard(module, args):
        if args.isnan().any():
            raise ValueError(name)

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "ambiguous")
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            if torch.isnan(value):
                raise ValueError(name)

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "calls_now")
def refuse_nan(layer, name):
    def guard(module, args):
        pass

    return layer.register_forward_pre_hook(guard(layer, ()))


@mistake("06.1", "one_argument")
def refuse_nan(layer, name):
    def guard(args):
        for value in args:
            count = torch.isnan(value).sum().item()
            if count:
                raise ValueError(f"{name}: {count} nan")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "no_handle", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            count = torch.isnan(value).sum().item()
            if count:
                raise ValueError(f"{name}: {count} nan")

    layer.register_forward_pre_hook(guard)


# --- 06.2 ---------------------------------------------------------------------------------------------------


@alternative("06.2")
def normalise(layer, mean, std):
    def scale(module, args):
        x, *rest = args
        return (x - mean) / std, *rest

    return layer.register_forward_pre_hook(scale)


@alternative("06.2")
def normalise(layer, mean, std):
    return layer.register_forward_pre_hook(lambda module, args: ((args[0] - mean) / std,) + args[1:])


@alternative("06.2")
def normalise(layer, mean, std):
    def scale(module, args, kwargs):
        args = list(args)
        args[0] = args[0].sub(mean).div(std)
        return tuple(args), kwargs

    return layer.register_forward_pre_hook(scale, with_kwargs=True)


@mistake("06.2", "not_registered")
def normalise(layer, mean, std):
    def scale(module, args):
        return ((args[0] - mean) / std, *args[1:])

    return scale


@mistake("06.2", "forgets_return")
def normalise(layer, mean, std):
    def scale(module, args):
        x = (args[0] - mean) / std

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "forgets_return")
def normalise(layer, mean, std):
    def scale(module, args):
        args = ((args[0] - mean) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "too_late")
def normalise(layer, mean, std):
    def scale(module, args, output):
        return (output - mean) / std

    return layer.register_forward_hook(scale)


@mistake("06.2", "wrong_formula")
def normalise(layer, mean, std):
    def scale(module, args):
        return (args[0] / std - mean, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "wrong_formula")
def normalise(layer, mean, std):
    def scale(module, args):
        return (args[0] - mean / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "wrong_formula")
def normalise(layer, mean, std):
    def scale(module, args):
        return ((args[0] - mean) * std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "own_statistics")
def normalise(layer, mean, std):
    def scale(module, args):
        x = args[0]
        return ((x - x.mean(0)) / x.std(0), *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "own_statistics")
def normalise(layer, mean, std):
    def scale(module, args):
        x = args[0]
        return ((x - x.mean()) / x.std(), *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "in_place")
def normalise(layer, mean, std):
    def scale(module, args):
        args[0].sub_(mean).div_(std)

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "in_place")
def normalise(layer, mean, std):
    def scale(module, args):
        x = args[0]
        x -= mean
        x /= std
        return (x, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "changes_the_rest", points=3)
def normalise(layer, mean, std):
    def scale(module, args):
        return tuple((value - mean) / std for value in args)

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "cuts_gradient", points=3)
def normalise(layer, mean, std):
    def scale(module, args):
        return ((args[0].detach() - mean) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "cuts_gradient", points=3)
def normalise(layer, mean, std):
    def scale(module, args):
        with torch.no_grad():
            return ((args[0] - mean) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "drops_the_rest")
def normalise(layer, mean, std):
    def scale(module, args):
        return (args[0] - mean) / std

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "drops_the_rest")
def normalise(layer, mean, std):
    def scale(module, args):
        return ((args[0] - mean) / std,)

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "drops_the_rest")
def normalise(layer, mean, std):
    def scale(module, args):
        return [(args[0] - mean) / std, *args[1:]]

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "tuple_for_tensor")
def normalise(layer, mean, std):
    def scale(module, args):
        return (args - mean) / std

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "calls_layer")
def normalise(layer, mean, std):
    def scale(module, args):
        return layer((args[0] - mean) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "calls_now")
def normalise(layer, mean, std):
    def scale(module, args):
        pass

    return layer.register_forward_pre_hook(scale(layer, ()))


@mistake("06.2", "one_argument")
def normalise(layer, mean, std):
    def scale(args):
        return ((args[0] - mean) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "no_handle", points=3)
def normalise(layer, mean, std):
    def scale(module, args):
        return ((args[0] - mean) / std, *args[1:])

    layer.register_forward_pre_hook(scale)


# --- 06.3 ---------------------------------------------------------------------------------------------------


@alternative("06.3")
def log_kwargs(layer, log):
    def note(module, args, kwargs):
        log.append({k: v.shape if torch.is_tensor(v) else v for k, v in kwargs.items()})

    return layer.register_forward_pre_hook(note, with_kwargs=True)


@alternative("06.3")
def log_kwargs(layer, log):
    def keep(module, args, kwargs, log=log):
        entry = {}
        for name, value in kwargs.items():
            entry[name] = list(value.shape) if isinstance(value, torch.Tensor) else value
        log += [entry]
        return args, kwargs

    return layer.register_forward_pre_hook(keep, with_kwargs=True)


@alternative("06.3")
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


@mistake("06.3", "logs_positional")
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


# --- 06.4 ---------------------------------------------------------------------------------------------------


@alternative("06.4")
def standardise(conv):
    conv.register_parameter("weight_raw", conv.weight)
    del conv.weight

    def rebuild(module, args):
        flat = module.weight_raw.flatten(1)
        flat = flat - flat.mean(1, keepdim=True)
        flat = flat * torch.rsqrt(flat.square().mean(1, keepdim=True) + 1e-5)
        module.weight = flat.view_as(module.weight_raw)

    return conv.register_forward_pre_hook(rebuild)


@alternative("06.4")
def standardise(conv):
    conv.weight_raw = nn.Parameter(conv.weight.detach().clone())
    del conv._parameters["weight"]

    def rebuild(module, args):
        w = module.weight_raw
        setattr(module, "weight", F.layer_norm(w, w.shape[1:], eps=1e-5))

    return conv.register_forward_pre_hook(rebuild)


@alternative("06.4")
def standardise(conv):
    def formula(w):
        var, mean = torch.var_mean(w, (1, 2, 3), keepdim=True, correction=0)
        return (w - mean) / torch.sqrt(var + 1e-5)

    conv.weight_raw = conv.weight
    del conv.weight
    conv.weight = formula(conv.weight_raw)
    return conv.register_forward_pre_hook(lambda m, args: setattr(m, "weight", formula(m.weight_raw)))


@mistake("06.4", "changes_nothing")
def standardise(conv):
    def rebuild(module, args):
        w = module.weight
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        w = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "changes_nothing")
def standardise(conv):
    def rebuild(module, args):
        w = module.weight
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return rebuild


@mistake("06.4", "whole_tensor")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((0, 1, 2, 3), keepdim=True)
        var = w.var((0, 1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "wrong_dims")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean(0, keepdim=True)
        var = w.var(0, keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "sample_variance")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=1)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "sample_variance")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        module.weight = (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-5)

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "no_root")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5)

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "only_centres")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        module.weight = w - w.mean((1, 2, 3), keepdim=True)

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "no_eps")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / var.sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "misplaces_eps")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-3).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "misplaces_eps")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var.sqrt() + 1e-5)

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "keeps_mean")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = w / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "other_start")
def standardise(conv):
    conv.weight_raw = nn.Parameter(torch.randn_like(conv.weight))
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "returns_weight")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()
        return module.weight

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "overwrites_weight", points=3)
def standardise(conv):
    def rebuild(module, args):
        w = module.weight
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight.data = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "overwrites_weight", points=3)
def standardise(conv):
    def rebuild(module, args):
        with torch.no_grad():
            w = module.weight
            mean = w.mean((1, 2, 3), keepdim=True)
            var = w.var((1, 2, 3), keepdim=True, correction=0)
            w.copy_((w - mean) / (var + 1e-5).sqrt())

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "raw_not_parameter", points=3)
def standardise(conv):
    raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "new_parameter", points=4)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = nn.Parameter((w - mean) / (var + 1e-5).sqrt())

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "detached", points=4)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = ((w - mean) / (var + 1e-5).sqrt()).detach()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "detached", points=4)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw.data
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "half_detached", points=4)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.detach().mean((1, 2, 3), keepdim=True)
        var = w.detach().var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "once_only", points=5)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    w = conv.weight_raw
    mean = w.mean((1, 2, 3), keepdim=True)
    var = w.var((1, 2, 3), keepdim=True, correction=0)
    conv.weight = (w - mean) / (var + 1e-5).sqrt()
    return conv.register_forward_pre_hook(lambda module, args: None)


@mistake("06.4", "assigns_to_parameter")
def standardise(conv):
    def rebuild(module, args):
        w = module.weight
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "leaf_in_place")
def standardise(conv):
    def rebuild(module, args):
        w = module.weight
        w -= w.mean((1, 2, 3), keepdim=True)

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "no_weight_yet")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args, output):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_hook(rebuild)


@mistake("06.4", "calls_now")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild(conv, ()))


@mistake("06.4", "one_argument")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "no_handle", points=5)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    conv.register_forward_pre_hook(rebuild)
