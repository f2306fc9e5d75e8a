"""Expected output of the tagged cells of lesson 10."""

FIGURES = {
    "E10": [
        r"conv1 +-?\d\.\d\d *\nbn1 +0\.00 +from kept: 0\.36\nrelu +0\.36 *\nmaxpool ",
        *(rf"{name} +-?\d\.\d\d *\n" for name in ("layer1", "layer2", "layer3", "layer4", "avgpool", "fc")),
    ],
    "E11": [
        r"^fc\.bias +0\.0e\+00\nfc\.weight +0\.0e\+00\nlayer4\.2\.bn3\.weight ",
        r"bn1\.weight .*\nbn1\.bias .*\nconv1\.weight +8\.3e-01\n161 of 161 parameters",
        r"the list of parameters, reversed: False",
    ],
    # The share of one picture of 30, then of all; after a step the weights are nan.
    "F43": [
        r"black picture\n +contrast +share of nan: 0\.000 in, 0\.033 out\n +conv +share of nan: 0\.033 in, 0\.033 out",
        r"bn +share of nan: 0\.033 in, 1\.000 out",
        r"after the run\n +contrast +share of nan: 0\.000 in, 0\.000 out\n +conv +share of nan: 0\.000 in, 1\.000 out",
    ],
    "F44": [r"tensor hook: +2048\.0\nstep pre-hook: +2\.0"],
    # The first step of Adam is as large as its rate where the gradient is far above eps; in 300 steps it learns, and SGD does not.
    "F45": [
        r"SGD +largest gradient 4e-06, largest move 4e-07\n.*\['1\.8', '1\.8', '1\.8', '1\.8'\]",
        r"Adam +largest gradient 4e-06, largest move 3e-03\n.*'0\.\d'\]",
    ],
}
