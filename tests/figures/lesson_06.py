"""Expected output of the tagged cells of lesson 06."""

FIGURES = {
    "E8": [
        r"pre-hook: +in \(6, 5\)\n",
        r"forward hook: +in \(6, 5\) out \(6, 3\)\n",
        r"backward hook: gradient of the output \(6, 3\)",
    ],
    "E12": [
        r"Sequential positional arguments: 1",
        r"Linear +positional arguments: 1",
        r"ReLU +positional arguments: 1",
        r"output: tensor\(\[\[0\., 5\.\]\]\)",
        r"Linear +positional arguments: 0",
        r"TypeError: register_module_forward_pre_hook\(\) got an unexpected keyword argument 'with_kwargs'",
    ],
    "E16": [
        r"tuple of 1",
        r"\(tensor\(\[\[\[\[1\., 1\., 1\., 1\.\],(\s+\[1\., 1\., 1\., 1\.\],?){3}\]\]\]?\]?\),\)",
    ],
    "F10": [
        r"args: \(tensor\(\[\[nan, 1\.\]\]\),\)",
        r"by position: stopped",
        r"args: \(\)\n",
        r"by keyword: +passed, tensor\(\[\[nan\]\]\)",
        r"args: \(\)  kwargs: \{'input': tensor\(\[\[1\., 2\.\]\]\)\}",
        r"\(args, kwargs\) +\(1, 1\)",
        r"\(args\[0\], kwargs\) +\(1,\)",
        r"args +RuntimeError: forward pre-hook must return None or a tuple of \(new_args, new_kwargs\)",
    ],
    "F37": [
        r"pre-hook: RuntimeError: Only Tensors created explicitly by the user \(graph leaves\) support the deepcopy",
        r"parametrize: copied, True",
    ],
    "F30": [
        r"nothing +3\.0",
        r"a tuple +30\.0",
        r"a tensor +30\.0",
        r"a list +TypeError: linear\(\): argument 'input' \(position 1\) must be Tensor, not list",
        r"two inputs TypeError: Bilinear\.forward\(\) missing 1 required positional argument: 'input2'",
    ],
}
