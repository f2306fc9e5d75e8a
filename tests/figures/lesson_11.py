"""Lesson 11: what its tagged cells print."""

FIGURES = {
    "E24": [
        r"cross +8\.1\ntriangle +4\.7\nstar +-2\.0",
        r"maps: +\(1, 64, 8, 8\) +grads: \(1, 64, 8, 8\)",
        r"largest minus smallest gradient: 0\.0",
        r"divided by 64: True",
        r"asked about the cross: +1\.03 in the middle of the cross",
        r"asked about the cross: -0\.47 in the middle of the triangle",
        r"asked about the triangle: -0\.48 in the middle of the cross",
        r"asked about the triangle: +1\.08 in the middle of the triangle",
        r"always the middle: 0\.33",
        r"trained +hit rate 0\.9[3-9]",
        r"random weights +hit rate 0\.[0-2]",
        r"forecast and experiment agree: True",
        r"without channel 51 the cross falls by 1\.8",
        r"without channel 48 it rises by 0\.6",
    ],
}
