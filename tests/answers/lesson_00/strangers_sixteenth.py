"""Answers to lesson 00 that got a message which was not true of them, found by a reader of all messages."""

from tests.answers import mistake


# The `return` is reached, and nothing follows it.
@mistake("00.1", "no_return")
def double(grad):
    2 * grad
    return


@mistake("00.1", "squares")
def double(grad):
    return grad * grad
