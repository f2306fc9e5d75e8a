"""Expected output of the tagged cells of lesson 03."""

FIGURES = {
    "E2": [
        r"mean_of_squares, leave_alone: x\.grad \[1\.0, 1\.0, 1\.0, 1\.0\]",
        r"mean_of_squares, double_in_place: x\.grad \[2\.0, 2\.0, 2\.0, 2\.0\]",
    ],
    "E5": [
        r"first look: +tensor\(\[ 4\.,  8\., 12\.\]\)",
        r"second look: tensor\(\[2\., 4\., 6\.\]\)",
    ],
    "E6": [r"v\.grad: tensor\(\[1\., 4\., 9\.\]\)", r"g: +tensor\(\[1\., 2\., 3\.\]\)"],
    "E14": [
        r"fork, leave_alone: w\.grad 5, x\.grad 2",
        r"fork, double_in_place: w\.grad 10, x\.grad 2",
    ],
    "E21": [
        r"mean_of_squares, double: x\.grad \[2\.0, 2\.0, 2\.0, 2\.0\]",
        r"mean_of_squares, double_in_place: x\.grad \[2\.0, 2\.0, 2\.0, 2\.0\]",
        r"fork, double: w\.grad 10, x\.grad 2",
        r"fork, double_in_place: w\.grad 10, x\.grad 2",
    ],
    "F1": [
        r"a\.grad: tensor\(2\.\)",
        r"b\.grad: tensor\(2\.\)",
        r"double_in_place\n +after the hook, one object: +True\n +after the hook, one address: True",
        r"mine: \[10\.0, 14\.0\]  _version: 1",
        r"double\n +after the hook, one object: +False\n +after the hook, one address: False",
        r"mine: \[5\.0, 7\.0\]  _version: 0",
        r"in place, w \+ x: w\.grad 4, x\.grad 4",
        r"in place, x \+ w: w\.grad 4, x\.grad 2",
        r"returned, w \+ x: w\.grad 4, x\.grad 2",
        r"branch \* 0, returned: +\[1\.0, 1\.0\]",
        r"branch zeroed in place: \[0\.0, 0\.0\]",
    ],
    "F7": [r"wrong_shape: RuntimeError: hook 'wrong_shape' has changed the size of value"],
    "F8": [
        r"forgot_return: v\.grad is \[2\.0, 3\.0, 6\.0\]",
        r"two_values: TypeError: expected Variable, but hook returned 'tuple'",
    ],
}
