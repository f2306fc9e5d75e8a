"""Expected output of the tagged cells of lesson 15."""

FIGURES = {
    # The loss is fine; the gradient falls a hundredfold between two layers, and comes back when the hook is taken off.
    "E30": [
        r"loss 1\.\d at first, 0\.\d at last\n",
        r"inp\.linear +gradient \de-03 .*\n(.*\n)+stage2\.nonlin +gradient \de-03 .*\nstage3\.linear +gradient \de-01 ",
        r"stage3\.linear: backward, _damp\ngradient at inp\.linear: \de-03 with the hook, \de-01 without\n",
        r"the label was: forgotten_hook",
    ],
}
