"""Expected output of the tagged cells of lesson 15."""

FIGURES = {
    # The loss is fine; the gradient falls a hundredfold between two layers, and comes back when the hook is taken off.
    "E30": [
        r"loss 1\.\d at first, 0\.3 at last\n",
        r"embed\.mix +gradient 7e-04 .* ratio \de-0[56]\n(.*\n)+hidden1\.fire +gradient 1e-03 .*\nhidden2\.mix +gradient \de-02 .* ratio \de-03",
        r"hidden2\.mix: backward, _damp\ngradient at embed\.mix: \de-04 with the hook, \de-02 without\n",
        r"loss at last: 0\.3 with the hook, 0\.1 without\nthe label was: forgotten_hook",
    ],
}
