"""What the ninth strangers tried on lesson 03: an answer that some seeds accepted."""

from tests.answers import unnamed


@unnamed("03.2", "decides")
def clip_by_norm(y, max_norm):
    def hook(grad):
        scale = (max_norm / (grad.norm() + 1e-5)).clamp(max=1.0)
        return grad * scale

    return y.register_hook(hook)
