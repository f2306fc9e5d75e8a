"""Answers to lesson 10 that were told a cause that was not theirs, found in the seventh reading."""

from tests.answers import edited, mistake

# Nothing is overwritten: the last entry of the list is taken.
edited("10.3", "later_one", ("found[0] if found", "found[-1] if found"))
# It returns nothing: it takes the tuple of inputs for a tensor.
edited("10.3", "returns_tuple", ("args[0].isnan()", "torch.isnan(args)"))


@mistake("10.5", "none_grad")  # every parameter is used, but no backward has run yet
def clip_before_step(optimizer, max_norm):
    params = [param for group in optimizer.param_groups for param in group["params"]]
    total = sum(param.grad.norm() ** 2 for param in params) ** 0.5

    def clip(optimizer, args, kwargs):
        for param in params:
            if total > max_norm:
                param.grad.mul_(max_norm / total)

    return optimizer.register_step_pre_hook(clip)
