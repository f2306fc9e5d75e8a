"""Expected output of the tagged cells of lesson 01."""

FIGURES = {
    "E1": [
        r"x: is_leaf True   grad_fn None",
        r"y: is_leaf False  grad_fn PowBackward0",
        r"x\.grad: tensor\(\[1\., 1\., 1\., 1\.\]\)  y\.grad: None  z\.grad: None",
        r"the hook on y saw: tensor\(\[0\.2500, 0\.2500, 0\.2500, 0\.2500\]\)",
        r"y\.grad: None",
    ],
    "E6": [
        r"without a hook, v\.grad: tensor\(\[1\., 2\., 3\.\]\)",
        r"with the hook,  v\.grad: tensor\(\[1\., 4\., 9\.\]\)",
    ],
    "E7": [
        r"first call:\n tensor\(\[\[4\., 2\., 2\., 2\., 2\.\],\n +\[2\., 4\., 2\., 2\., 2\.\],\n"
        r" +\[2\., 2\., 4\., 2\., 2\.\],\n +\[2\., 2\., 2\., 4\., 2\.\]\]\)",
        *(
            rf"{call}.*: +diagonal tensor\(\[{d}\., {d}\., {d}\., {d}\.\]\)  elsewhere tensor\(\[{o}\.\]\)"
            for call, d, o in (("second call", 8, 4), ("third call", 4, 2))
        ),
    ],
    "E13": [
        r"w\.grad: tensor\(5\.\)  x\.grad: tensor\(2\.\)",
        r"a\.grad: None  b\.grad: None  y\.grad: None",
        r"a\.grad tensor\(2\.\)  b\.grad tensor\(3\.\)",
        r"the hook on a saw: tensor\(2\.\)",
        r"a\.grad: None",
    ],
    "F5": [
        r"asked after backward, y\.grad: None",
        r"after the next backward, y\.grad: tensor\(\[1\., 1\.\]\)",
        r"RuntimeError: can't retain_grad on Tensor that has requires_grad=False",
    ],
}
