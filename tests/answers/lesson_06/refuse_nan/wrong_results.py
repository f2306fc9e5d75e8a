"""Wrong answers to 06.1, `refuse_nan`: what comes out is not what was asked for."""

import warnings

import torch

from tests.answers import edited, mistake, unnamed


@mistake("06.1", "adds_up", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        broken = sum(torch.isnan(value).sum().item() for value in args)
        if broken > 0:
            raise ValueError(f"{name} got {broken} nan")

    return layer.register_forward_pre_hook(guard)


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


@mistake("06.1", "no_count")
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            rows = torch.isnan(value).any(dim=1).sum().item()
            if rows:
                raise ValueError(f"{name}: {rows} nan")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "first_only", points=5)
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


edited("06.1", "only_all", ("if count:", "if torch.isnan(value).all():"))
edited("06.1", "drops_the_rest", ('numbers")', 'numbers")\n        return args[0]'), points=5)
edited(
    "06.1",
    "counts_first",
    ("{count} nan", "{args[0].isnan().sum()} nan"),
    (" of {value.numel()} numbers", ""),
    points=6,
)
edited("06.1", "no_count", ("{count} nan", "{value.numel()} nan"), points=6)
edited("06.1", "refuses_infinity", ("if count:", "if torch.isnan(value.sum()):"), points=6)
edited("06.1", "refuses_infinity", ("isnan(value).sum()", "isfinite(value).logical_not().sum()"), points=6)


@unnamed("06.1", "refuses")
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            count = torch.isnan(value).sum().item()
            if count > 1:
                raise ValueError(f"{name}: {count} nan")

    return layer.register_forward_pre_hook(guard)


edited(
    "06.1",
    "every_input",
    ("for value in args:", "for value in args * module.training:"),
    points=6,
    named=False,
)
edited(
    "06.1",
    "every_input",
    ("for value in args:", "for value in args * torch.is_grad_enabled():"),
    points=6,
    named=False,
)
edited("06.1", "every_input", ("if count:", "if count and value.dim():"), points=6, named=False)
edited("06.1", "every_input", ("if count:", "if count and value.numel() > 1:"), points=6, named=False)
edited("06.1", "every_input", ("if count:", "if all(v.isnan().any() for v in args):"), points=6, named=False)
edited("06.1", "stops_early", ("for value in args:", "for value in args[:2]:"), points=6)


@mistake("06.1", "counts_on", points=6)
def refuse_nan(layer, name):
    count = 0

    def guard(module, args):
        nonlocal count
        for value in args:
            if torch.isnan(value).any():
                count += torch.isnan(value).sum().item()
                raise ValueError(f"{name}: {count} nan")

    return layer.register_forward_pre_hook(guard)


edited("06.1", "every_input", ("if count:", "if value.max().isnan():"), points=5, named=False)
edited("06.1", "no_count", ("torch.isnan(value).sum()", "torch.isnan(value).to(value.dtype).sum()"), points=6)
edited("06.1", "no_count", ("{count} nan", "{count:.3g} nan"), points=6)


@unnamed("06.1", "refuses")
def refuse_nan(layer, name):
    clean = set()

    def guard(module, args):
        for value in args:
            if id(value) in clean:
                continue
            count = torch.isnan(value).sum().item()
            if count:
                raise ValueError(f"{name}: {count} nan")
            clean.add(id(value))

    return layer.register_forward_pre_hook(guard)
