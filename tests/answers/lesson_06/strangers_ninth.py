"""What the ninth strangers tried on lesson 06: equal entries, each of them new, were called one dictionary."""

from tests.answers import mistake


@mistake("06.3", "logs_positional")
def log_kwargs(layer, log):
    def hook(module, args):
        log.append({i: tuple(arg.shape) for i, arg in enumerate(args)})

    return layer.register_forward_pre_hook(hook)
