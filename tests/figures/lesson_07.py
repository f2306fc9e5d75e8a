"""Expected output of the tagged cells of lesson 07."""

FIGURES = {
    "E12": [
        r"ReLU +\(\(6, 3\),\) \(\(6, 3\),\)",
        r"Linear +\(\(6, 5\),\) \(\(6, 3\),\)",
        r"by keyword, layer\(input=x\):\nLinear +\(\) \(\(6, 3\),\)",
        r"a forward pre-hook's tensor is wrapped into a tuple: \(6, 3\)",
        r"RuntimeError: Backward hook returned an invalid number of grad_input, got 6, but expected 1",
    ],
    "E17": [
        r"in grad_input: None",
        r"in grad_input: \(2, 1, 3, 3\)\n",
        r"in grad_input: \(2,\)\n",
        *(
            rf"{kind}\n +grad_input: +{grad_input}\n +grad_output: "
            r"\[\[\[\[0\.5, 0\.0\], \[0\.0, 0\.0\]\], \[\[0\.5, 0\.0\], \[0\.0, 0\.0\]\]\]\]"
            for kind, grad_input in (
                ("register_backward_hook", r"\(None, \(2, 1, 3, 3\), \(2,\)\)"),
                ("register_full_backward_hook", r"\(None,\)"),
                ("register_full_backward_pre_hook", "not given"),
            )
        ),
        r"the pool took, counted row by row: (\[[\d, ]+\])\ngrad_output is not 0 at: +\1",
    ],
    "F16": [
        r"in grad_input: \(2, 1, 3, 3\)",
        r"FutureWarning: Using a non-full backward hook [^.]*\.\s+This\s+hook\s+will\s+be\s+missing\s+some\s+grad_input",
        r"RuntimeError: Cannot use both regular backward hooks and full backward hooks on a\s+single\s+Module",
    ],
    "F17": [
        r"inplace=False: .*\n +fine",
        *(
            rf"inplace=True: {kind} on {layer}\(.*\n +RuntimeError: .* is a view and is being modified inplace"
            for kind, layer in (
                ("register_full_backward_hook", "Linear"),
                ("register_full_backward_hook", "ReLU"),
                ("register_full_backward_pre_hook", "Linear"),
            )
        ),
        r"not in place: +(tensor\(.*\))\n",
        r"in place, tensor hook: +tensor\(.*\) True",
        r"in place, retain_grad: +tensor\(.*\) False",
    ],
    "F18": [
        r"x\.requires_grad is False\n +grad_input: +\(None,\)\n.*\n +weight\.grad: None",
        r"afterwards, weight\.grad: \(3, 5\)",
        r"UserWarning: Full backward hook is firing [\s\S]* since\s+no\s+inputs\s+require\s+gradients",
        r"x\.requires_grad is True\n +grad_input: +\(\(6, 5\),\)\n.*\n +weight\.grad: filled",
        r"two inputs, only the first needs a gradient\n +not all 0: \[True, False\]",
        r"two outputs, only the first is used\n +grad_output: \(\(6, 4\), None\)",
    ],
    # Weight decay moves what has a gradient of zeros, and leaves alone what has none.
    "F38": [
        r"zeros +moved by 0\.0285, \.grad is \[\[-?0\.0, -?0\.0\], \[-?0\.0, -?0\.0\]\]",
        r"None +moved by 0\.0000, \.grad is None",
    ],
    "F39": [r"fired: 0\nUserWarning: For backward hooks to be called,\s+module output should be a Tensor"],
    "F19": [
        r"no hook: +x\.grad \[3\.0, .*\], weight\.grad \[12\.0, ",
        r"zero grad_input: +x\.grad \[0\.0, 0\.0, 0\.0, 0\.0, 0\.0\], weight\.grad \[12\.0, ",
        r"zero grad_output: +x\.grad \[0\.0, .*\], weight\.grad \[0\.0, ",
    ],
}

OF_THIS_TORCH = ("F16",)
