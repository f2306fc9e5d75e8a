"""Expected output of the tagged cells of lesson 02."""

FIGURES = {
    "E1": [
        r"x\.grad: tensor\(\[1\., 1\., 1\., 1\.\]\)",
        r"y\.grad: None",
        r"z\.grad: None",
        r"the hook saw: tensor\(\[0\.2500, 0\.2500, 0\.2500, 0\.2500\]\)",
        r"y\.grad: None",
    ],
    "E13": [
        r"the hook on w saw: tensor\(5\.\)",
        r"w\.grad: tensor\(5\.\)",
        r"x\.grad: tensor\(2\.\)",
        r"a\.grad: None  b\.grad: None  y\.grad: None",
        r"the hook on a saw: tensor\(2\.\)",
    ],
    "E22": [
        r"no hook yet: +tensor\(24\.\)",
        r"with the hook: +tensor\(48\.\)",
        r"after remove\(\): +tensor\(24\.\)",
    ],
    "F3": [
        r"autograd\.grad fires: \['tensor hook'\]\nparam is w: True",
        r"backward fires: +\['tensor hook', 'post-accumulate hook'\]",
        r"w\.grad: tensor\(6\.\)",
    ],
    "F5": [
        r"a hook after backward saw: \[\]",
        r"retain_grad after backward: None",
        r"RuntimeError: cannot register a hook on a tensor that doesn't require gradient",
    ],
    "F6": [
        r"inside the with: +tensor\(48\.\)",
        r"after the with: +tensor\(24\.\)",
        r"removed again: +tensor\(24\.\)",
    ],
    "F9": [
        r"\['triple', 'triple'\]",
        r"default: \['double', 'triple'\]",
        r"\['factory double', 'factory triple', 'partial double', 'partial triple'\]",
    ],
}
