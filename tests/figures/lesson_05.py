"""Expected output of the tagged cells of lesson 05."""

FIGURES = {
    "E3": [
        r"the net returned: \(1, 2, 1, 1\) \[9\.0, 18\.0\]",
        r"the hook saw: +\(1, 2, 2, 2\) \[9\.0, 9\.0, 9\.0, 9\.0, 18\.0, 18\.0, 18\.0, 18\.0\]",
        r"args is a tuple of length 1",
        r"args\[0\]: +\(1, 1, 4, 4\) all ones: True",
    ],
    "E4": [
        r"Linear +1\.2  difference 0\n",
        r"Linear +3\.4  difference 0\n",
        r"ReLU +3\.4  difference 0\n",
    ],
    "E23": [
        r"image: \(1, 3, 10, 10\)  kept: \(1, 8, 4, 4\)  holds a graph: False",
        r"gives the same: True",
    ],
    "F8": [
        r"nothing +3\.0, +5\.0  needs a gradient: True",
        r"ten times +30\.0, +50\.0  needs a gradient: True",
        r"update +3\.0, +5\.0  needs a gradient: True",
        r"setdefault +3\.0, +3\.0  needs a gradient: False",
        r"tuple +TypeError in relu\(\): argument 'input' \(position 1\) must be Tensor, not tuple",
    ],
    "F11": [
        r"net\(x\) .* hook on net: 1, on conv: 1",
        r"net\.forward\(x\) .* hook on net: 0, on conv: 1",
        r"conv\.forward\(x\) .* hook on net: 0, on conv: 0",
    ],
    "F13": [r"attached: .* holds 34\d\.\d MB", r"detached: .* holds [1-5]\.\d MB"],
    "F27": [
        r"'conv1': 1, 'bn1': 1, 'relu': 3",
        r"9 outputs, 7 of them kept",
        r"the block's output: True",
    ],
    "F28": [
        r"careless, 3 wide: hooks left on 2, outputs kept 3",
        r"careful, 4 wide: hooks left on 0, outputs kept 0",
        r"careful, 3 wide: hooks left on 0, outputs kept 1",
    ],
}
