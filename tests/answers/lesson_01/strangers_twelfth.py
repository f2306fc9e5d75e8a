"""Answers to lesson 01 of strangers who had not read the checks, in their twelfth round."""

from tests.answers import edited

edited("01.3", "keeps_graph", ("loss.backward()", "loss.backward(create_graph=True)"))
