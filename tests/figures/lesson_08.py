"""Expected output of the tagged cells of lesson 08."""

FIGURES = {
    "E8": [
        r"forward_pre +6×5\n",
        *(rf"{kind} +6×5 6×3\n" for kind in ("forward", "backward")),
    ],
    "E9": [
        *(rf"{name} +10×64×112×112\n" for name in ("conv1", "bn1", "relu")),
        r"maxpool +10×64×56×56\n",
        r"layer1 +10×256×56×56\nlayer2 +10×512×28×28\nlayer3 +10×1024×14×14\nlayer4 +10×2048×7×7\n",
        r"avgpool +10×2048×1×1\nfc +10×1000\n",
        r"hooks left: 0\nattributes as before: True",
    ],
    "E12": [
        r"global forward pre-hook +got Linear and 1 more",
        r"global forward hook +got Linear and 2 more",
        r"global backward hook +got Linear and 2 more",
        r"a tensor returned, now a \(tensor\(\[\[10\., 10\.\]\]\),\)",
    ],
    "E18": [r"forward_pre .*\nforward itself\nforward .*\n(.*\n)+backward "],
    "F9": [
        r"late +\['second', 'second'\] .*: \[False, False\]",
        r"partial +\['first', 'second'\] .*: \[False, False\]",
        r"mark +\['first', 'second'\] .*: \[True, True\]",
    ],
    "F12": [
        r"one forward pass, fired: 3",
        *(rf"forward {place} " for place in range(3)),
        r"removed: 3  left: 0",
    ],
    "F20": [
        r"forward_pre .*\nforward itself\nforward .*\noutput_grad .*\nbackward_pre .*\nparam_grad .*\n"
        r"post_accumulate .*\nbackward .*\ninput_grad "
    ],
    "F21": [
        r"global forward hook .*\nown, prepend=True .*\nown, first .*\nown, second ",
        r"forward fails:\nalways_call: None\n(?!plain)",
    ],
    "F22": [
        r"registered after the first call, len\(seen\): 0  warnings: 0",
        r"the same under force_eager, len\(seen\): +1",
        r"compiled again for a new shape, len\(seen\): +1",
        r"registered before compiling, len\(seen\): +1",
    ],
    "F23": [
        r"original: \['forward', 'param_grad'\]  copy: \['forward'\]",
        r"only the copy ran, len\(seen\): 1",
        r"after the handles' remove\(\), original: \[\]  copy: \['forward'\]",
    ],
    "F24": [
        r"the model: +(AttributeError|PicklingError): .*<lambda>",
        r"state_dict\(\): +saved",
        r"without hooks: saved",
    ],
    "F25": [
        r"the hook on linear1 fired: 3",
        r"the hook on self_attn fired: 1",
        r"the hook on out_proj fired: 0",
        r"diagnose: never_fired self_attn\.out_proj\ndiagnose: registered_twice linear1\n",
    ],
    "F40": [
        r"registered after the call: +\['output_grad', 'backward_pre'\]\n",
        r"registered in a forward hook: +\['backward_pre', 'output_grad'\]",
    ],
    "F41": [r"with gradients: +9\nno_grad: +1\nno_grad, a hook on linear1: +9"],
}

OF_THIS_TORCH = (
    "F22",
    "F25",
    "F41",
)
