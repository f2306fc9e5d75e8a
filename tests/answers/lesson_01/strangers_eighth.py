"""What the eighth strangers tried on lesson 01: wrong answers that had been accepted, or told something untrue."""

from tests.answers import unnamed


@unnamed("01.2", "adds")
def sum_gradients(w, losses):
    w.grad = None
    for loss in losses[:3]:
        loss.backward(retain_graph=True)


@unnamed("01.2", "adds")
def sum_gradients(w, losses):
    w.grad = None
    for loss in losses[:4]:
        loss.backward(retain_graph=True)
