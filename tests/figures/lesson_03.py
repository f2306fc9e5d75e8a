"""Expected output of the tagged cells of lesson 03."""

FIGURES = {
    "E2": [
        r"leave_alone: x\.grad \[1\.0, 1\.0, 1\.0, 1\.0\]",
        r"double_in_place: x\.grad \[2\.0, 2\.0, 2\.0, 2\.0\]",
    ],
    "E5": [
        r"recorded: \[tensor\(\[ 4\.,  8\., 12\.\]\), tensor\(\[2\., 4\., 6\.\]\)\]",
        r"v\.grad: +tensor\(\[2\., 4\., 6\.\]\)",
    ],
    "E6": [r"v\.grad: tensor\(\[1\., 4\., 9\.\]\)", r"g: +tensor\(\[1\., 2\., 3\.\]\)"],
    "E14": [
        r"leave_alone: w\.grad 5, x\.grad 2",
        r"double_in_place: w\.grad 10, x\.grad 2",
    ],
    "E21": [
        r"double: x\.grad \[2\.0, 2\.0, 2\.0, 2\.0\]",
        r"double_in_place: x\.grad \[2\.0, 2\.0, 2\.0, 2\.0\]",
        r"double: w\.grad 10, x\.grad 2",
        r"double_in_place: w\.grad 10, x\.grad 2",
    ],
    "F1": [
        r"a\.grad: tensor\(2\.\)",
        r"b\.grad: tensor\(2\.\)",
        r"one object: True\none address: True",
        r"mine: \[10\.0, 14\.0\]  _version: 1",
        r"returned, one object: False",
        r"returned, mine: \[5\.0, 7\.0\]  _version: 0",
        r"in place, w \+ x: w\.grad 4, x\.grad 4",
        r"in place, x \+ w: w\.grad 4, x\.grad 2",
        r"returned, w \+ x: w\.grad 4, x\.grad 2",
        r"branch \* 0, returned: +\[1\.0, 1\.0\]",
        r"branch zeroed in place: \[0\.0, 0\.0\]",
    ],
    "F7": [r"wrong shape +RuntimeError: hook '<lambda>' has changed the size of value"],
    "F8": [
        r"forgot_return: v\.grad is \[2\.0, 3\.0, 6\.0\]",
        r"two values +TypeError: expected Variable, but hook returned 'tuple'",
    ],
    "F31": [
        r"RuntimeError: unsupported operation: more than one element of the written-to tensor",
        r"2 elements in 4 bytes, stride \(0,\)",
    ],
    "F32": [
        r"a\.grad: +tensor\(1\.\)",
        r"recorded: tensor\(7\.\)",
        r"grad +7\ngrad\.detach\(\) +7\ngrad\.detach\(\)\.clone\(\) +1\ngrad\.item\(\) +1",
        r"attached: \{'grad': True, 'clone\(\)': True, 'detach\(\)': False\}",
    ],
    "F33": [
        r"wrong dtype +RuntimeError: hook '<lambda>' has changed the type of value "
        r"\(was torch\.FloatTensor got torch\.DoubleTensor\)"
    ],
}
