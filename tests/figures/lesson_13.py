"""Expected output of the tagged cells of lesson 13."""

FIGURES = {
    "F22": [
        r"registered after the first call, len\(seen\): 0",
        r"the same under force_eager, len\(seen\): +1",
        r"another model, registered before, len\(seen\): 0",
        r"the same after reset\(\), len\(seen\): +1",
        r"was the output right\? +True",
        r"on the compiled model itself, len\(seen\): 1",
        r"a late hook, with hooks checked, len\(seen\): 1",
        r"5 calls, compiled 5x, fired 5x, results right: True\n",
        r"5 calls, compiled 1x, fired 5x, results right: True\nin the graph: \['linear'\]",
    ],
    "F46": [
        r"12 calls, compiled 8x, fired 12x, results right: True\ntorch\._dynamo\.config\.recompile_limit: 8\n",
        r"compiled so far, with a separate Linear: 8",
    ],
    "F47": [
        r"step 0\n    bucket 0 with \['layer 0', 'layer 1', 'layer 2', 'layer 3'\](?=\n  step 1)",
        r"step 1\n    bucket 0 with \['layer 3', 'layer 2', 'layer 1'\]\n    bucket 1 with \['layer 0'\]",
    ],
    "F48": [
        r"sum, then divide: inf\n  divide, then sum: 40000\.0\n  AVG: +inf",
    ],
    "F49": [
        r"pre-hook +: Parameter \(6, 4\), here \(6, 4\)\n"
        r"  forward hook +: DTensor \(6, 4\), here \(3, 4\)\n"
        r"  \.grad +: DTensor \(6, 4\), here \(3, 4\)\n  fired: \['post-accumulate'\]",
    ],
}

OF_THIS_TORCH = ("F22", "F46", "F47", "F48", "F49")
