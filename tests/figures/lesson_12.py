"""Expected output of the tagged cells of lesson 12."""

FIGURES = {
    "F13": [
        r"attached: 34\d MB\ndetached: 0 MB\n",
        r"pack kept its half\(\): 0 MB\n",
        r"pack kept the tensor itself: 34\d MB",
    ],
    "F46": [r"12 calls, compiled 8x, fired 12x\ntorch\._dynamo\.config\.recompile_limit: 8"],
    "F22": [
        r"registered after the first call, len\(seen\): 0",
        r"the same under force_eager, len\(seen\): +1",
        r"another model, registered before, len\(seen\): 0",
        r"the same after reset\(\), len\(seen\): +1",
        r"was the output right\? +True",
        r"on the compiled model itself, len\(seen\): 1",
        r"seen\.append: 5 calls, compiled 5x, fired 5x\nthe same, disabled: 5 calls, compiled 1x, fired 5x",
    ],
    "F26": [
        r"pre0 fwd0 pre1 fwd1 \| pre0 fwd0 pre1 \n",
        r"pre0 fwd0 pre1 fwd1 \| pre1 pre0 \n",
        r"batches that BatchNorm counted: 2",
    ],
}

OF_THIS_TORCH = (
    "F22",
    "F26",
)
