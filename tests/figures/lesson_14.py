"""Expected output of the tagged cells of lesson 14."""

FIGURES = {
    "E25": [
        r"all, right after 0 to 4 blocks: \['0\.0\d', '0\.[12]\d', '0\.[67]\d', '0\.8\d', '1\.00'\]",
        r"who receives, right after 0 to 4 blocks: \['0\.0\d', '0\.\d\d', '0\.[34]\d', '0\.[45]\d', '1\.00'\]",
    ],
    "E26": [
        r"every word patched: \[1\.0, 1\.0, 1\.0, 1\.0\]",
        r"no word patched: +\[0\.0, 0\.0, 0\.0, 0\.0\]",
        r"the last word after each block: \['0\.00', '0\.00', '0\.0\d', '1\.00'\]",
    ],
    "E27": [
        r"strength 0: outdoors 0\.00\d",
        r"bit for bit the same: True",
        r"strength 0\.5: outdoors 0\.[01]\d\d",
        r"strength 1: outdoors 0\.99\d, says park",
        r"strength 2: outdoors 0\.99\d",
        r"hook off, as before: True",
    ],
    "E28": [
        r"embed     probe 0\.[45]\d   control 0\.[45]\d",
        *(
            rf"blocks\.{number}  probe 1\.00   control 0\.[45]\d \(where it was fitted 0\.[567]\d\)"
            for number in range(4)
        ),
    ],
    "E29": [
        r"words in each call: \[10, 1, 1, 1, 1\]",
        r"record\(\) has what the cache has: True",
        r"kept by the hook: False  by record\(\): True",
    ],
    "F36": [
        r"AttributeError: 'tuple' object has no attribute 'detach'",
        r"added:   \(1, 17, 64\)",
        r"pattern: \(1, 4, 17, 17\)",
    ],
}
