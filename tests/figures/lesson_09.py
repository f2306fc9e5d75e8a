"""Expected output of the tagged cells of lesson 09."""

FIGURES = {
    "E19": [
        *(
            rf"{kernel} +maps \(1, {maps}\) +right: detach\(\) False  clone\(\) True"
            for kernel, maps in (
                (r"\(64, 3, 11, 11\)", "64, 55, 55"),
                (r"\(192, 64, 5, 5\)", "192, 27, 27"),
                (r"\(384, 192, 3, 3\)", "384, 13, 13"),
                (r"\(256, 384, 3, 3\)", "256, 13, 13"),
                (r"\(256, 256, 3, 3\)", "256, 13, 13"),
            )
        ),
        r"kernel_64x3x11x11 +steps \[100\]",
        r"kernel_256x256x3x3 +steps \[100\]",
        r"small +steps \[0, 1, 2, 3, 4, 5\]",
        r"small, read by default: steps \[\d, \d, \d, 5\]",
    ],
    "F14": [
        r"detach\(\) +smallest  0\.00  negative  0%  _version 1",
        r"detach\(\)\.cpu\(\)  +smallest  0\.00  negative  0%  _version 1",
        r"detach\(\)\.clone\(\)  smallest -4\.\d\d  negative 5\d%  _version 0",
    ],
    "F42": [
        r"while it is built: \[\('features', 'Proxy'\), \('features', 'Proxy'\)\]",
        r"while it runs: +\[\('features\.0', 'Tensor'\)\]",
        r"the same convolution: True",
    ],
    "F15": [
        r"conv2 .* still right: True",
        r"bn2 .* still right: False",
        r"equals bn2 \+ identity: True",
    ],
    "F27": [r"conv1 +calls 1", r"relu +calls 2", r"bn2 +calls 1"],
}
