"""What the eighth strangers tried on lesson 04: a wrong answer that had been accepted."""

from tests.answers import unnamed


@unnamed("04.3", "freezes")
def freeze_rows(embedding, rows):
    """The first rows only."""

    def freeze(grad):
        grad = grad.clone()
        for row in rows[:3]:
            grad[row] = 0
        return grad

    return embedding.weight.register_hook(freeze)
