"""Expected output of the tagged cells of lesson 12."""

FIGURES = {
    "F13": [
        r"attached: 34\d MB\ndetached: 0 MB\n",
        r"pack kept its half\(\): 0 MB\n",
        r"pack kept the tensor itself: 34\d MB",
    ],
    "F26": [
        r"pre0 fwd0 pre1 fwd1 \| pre0 fwd0 pre1 \n",
        r"pre0 fwd0 pre1 fwd1 \| pre1 pre0 \n",
        r"batches that BatchNorm counted: 2",
    ],
}

OF_THIS_TORCH = ("F26",)
