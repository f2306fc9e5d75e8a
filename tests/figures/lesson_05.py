"""Expected output of the tagged cells of lesson 05."""

FIGURES = {
    "E3": [
        r"the net returned: \(1, 2, 1, 1\) \[9\.0, 18\.0\]",
        r"the hook saw: \(1, 2, 2, 2\) \[9\.0, 9\.0, 9\.0, 9\.0, 18\.0, 18\.0, 18\.0, 18\.0\]",
        r"args is a tuple of length 1",
        r"args\[0\]: \(1, 1, 4, 4\) is x itself: True",
    ],
    "E4": [
        r"Linear +1\.2  difference 0\n",
        r"Linear +3\.4  difference 0\n",
        r"ReLU +3\.4  difference 0\n",
    ],
    "E23": [
        r"image: \(1, 3, 10, 10\)  kept: \(1, 8, 4, 4\)",
        r"holds a graph: False",
        r"gives the same: True",
    ],
    "F8": [
        r"nothing +\[3\.0, 5\.0\] requires_grad: \[True, True\]",
        r"ten times +\[30\.0, 50\.0\] requires_grad: \[True, True\]",
        r"update +\[3\.0, 5\.0\] requires_grad: \[True, True\]",
        r"setdefault +\[3\.0, 3\.0\] requires_grad: \[False, False\]",
        r"tuple +TypeError in relu\(\): argument 'input' \(position 1\) must be Tensor, not tuple",
    ],
    "F11": [
        r"net\(x\) +largest: 18\.0  fired: \{'conv': 1, 'net': 1\}",
        r"net\.forward\(x\) +largest: 18\.0  fired: \{'conv': 1\}",
        r"conv\.forward\(x\) +largest: 18\.0  fired: \{\}",
    ],
    "F13": [
        r"attached: .* holds 34\d\.\d MB",
        r"detached: .* holds [1-5]\.\d MB",
        r"after backward: Saved intermediate values of the graph are freed",
        r"under no_grad: holds 1\.6 MB",
    ],
    "F27": [
        r"'conv1': 1, 'bn1': 1, 'relu': 3",
        r"9 outputs, 7 of them kept",
        r"the block's output: True",
        r"changed since: \['bn1', 'bn2', 'bn3'\]",
    ],
    "F28": [
        r"careless, width 3: hooks on 2, kept 3",
        r"careful, width 4: hooks on 0, kept 0",
        r"careful, width 3: hooks on 0, kept 1",
    ],
    "F36": [
        r"LSTM gave \['Tensor', 'tuple'\]\n   AttributeError: 'tuple' object has no attribute 'detach'",
        r"MultiheadAttention gave \['Tensor', 'NoneType'\]\n   AttributeError: 'tuple' object",
        r"Named gave \['Tensor'\]\n   AttributeError: 'dict' object has no attribute 'detach'",
        r"missing children: \['self_attn'\]",
        r"modules of type nn\.ReLU: 0",
        r"is the function relu",
        r"self_attn gave \(3, 2, 4\) and None",
        r"the relu of the first is the second: True",
        r"first_item +sentences as before: \[True, False, False\]",
        r"whole_tuple +sentences as before: \[True, True, True\]",
    ],
}
