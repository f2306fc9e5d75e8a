"""Expected output of the tagged cells of lesson 04."""

FIGURES = {
    "E20": [
        r"without a hook: a\.grad 13\.0  b\.grad 7\.0  c\.grad 1\.0",
        r"with the hook:  a\.grad 39\.0  b\.grad 21\.0  c\.grad 3\.0",
    ],
    "F2": [
        r"in the hook, c\.grad is None",
        r"retain_grad, then hook: \(39\.0, 21\.0, 3\.0\)",
        r"hook, then retain_grad: \(39\.0, 21\.0, 3\.0\)",
    ],
    "F3": [
        r"autograd\.grad: \['tensor hook'\]  y\.grad: tensor\(12\.\)  w\.grad: None",
        r"backward: +\['tensor hook', 'post-accumulate hook'\]  y\.grad: tensor\(24\.\)  w\.grad: tensor\(24\.\)",
        r"RuntimeError: post accumulate grad hooks cannot be registered on non-leaf tensors",
    ],
    "F4": [
        r"a hook from after mul_ saw: tensor\(1\.\)",
        r"the hook from before saw: +tensor\(2\.\)",
        r"y\.grad: +tensor\(1\.\)",
    ],
    "F29": [
        r"b arrives\s+a arrives\s+multi-grad hook: \[tensor\(10\.\), tensor\(6\.\)\]",
        r"only a is used\s+a arrives\s+multi-grad hook: \[tensor\(7\.\), None\]",
        r"return_zeros: x\.grad 60",
        r"zero_in_place: x\.grad 30",
        r"RuntimeError: A leaf node was passed to _will_engine_execute_node",
    ],
    "F34": [
        r"grad mode is on: False",
        r"after backward: w is 2\.4",
        r"grad mode is on: True",
        r"RuntimeError: a leaf Variable that requires grad is being used in an in-place operation",
    ],
    "F35": [
        r"b arrives\s+any: tensor\(6\.\)\s+a arrives\s+all: \[tensor\(10\.\), tensor\(6\.\)\]",
    ],
}
