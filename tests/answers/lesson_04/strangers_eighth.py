"""What the eighth strangers tried on lesson 04: wrong answers that had been accepted."""

from tests.answers import edited, unnamed

# Under `create_graph=True` grad mode is on.
edited("04.2", "needs_no_grad", ("with torch.no_grad():", "if True:"), points=4)


@unnamed("04.3", "freezes")
def freeze_rows(embedding, rows):
    """The first rows only."""

    def freeze(grad):
        grad = grad.clone()
        for row in rows[:3]:
            grad[row] = 0
        return grad

    return embedding.weight.register_hook(freeze)
