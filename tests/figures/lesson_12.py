"""Lesson 12: what its tagged cells print."""

FIGURES = {
    "F13": [
        r"attached: 34\d MB\ndetached: 0 MB\ndeleted: 0 MB",
        r"pack kept the tensor itself: 34\d MB",
    ],
    "F22": [
        r"registered after the first call, len\(seen\): 0",
        r"the same under force_eager, len\(seen\): +1",
        r"on the compiled model itself, len\(seen\): +2",
        r"another model, registered before, len\(seen\): 0",
        r"the same after reset\(\), len\(seen\): +1",
        r"seen\.append in the hook, compiled: 5 times",
        r"torch\.compiler\.disable, compiled: +1 time\nand it fired: 5",
    ],
    "F26": [
        r"pre0 fwd0 pre1 fwd1 \| pre0 fwd0 pre1 \n",
        r"batches that BatchNorm counted: 2",
    ],
}

OF_THIS_TORCH = (
    "F22",
    "F26",
)
