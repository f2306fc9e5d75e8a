"""Expected output of the tagged cells of lesson 11."""

FIGURES = {
    "E24": [
        r"cross +8\.1\ntriangle +4\.7\nstar +-2\.0",
        r"maps: +\(1, 64, 8, 8\) +grads: \(1, 64, 8, 8\)",
        r"largest minus smallest gradient, in the worst channel: 0\.0",
        r"divided by 64: True",
        r"logit +0\.00 +0\.00 +0\.00 +0\.00 +1\.00 +0\.00",
        r"probability +0\.00 +0\.00 +-0\.03 +0\.00 +0\.03 +0\.00",
        r"loss +0\.00 +0\.00 +0\.03 +0\.00 +-0\.03 +0\.00",
        r"picture 1 alone, the same gradient: True",
        r"asked about the cross +left half +12\.0 +right half +-3\.9",
        r"asked about the triangle +left half +-5\.5 +right half +10\.3",
        r"no mode +0\.00 0\.00 1\.00 1\.00",
        r"linear +0\.00 0\.25 0\.75 0\.75 0\.25",
        r"align_corners=True +0\.00 0\.43 0\.86 0\.71",
        r"afterwards +0\.00 0\.00 0\.50 0\.75",
        r"always the middle: 0\.33",
        r"trained +hit rate 0\.9[3-9]",
        r"random weights +hit rate 0\.[0-2]",
        r"block2: correlation 0\.0",
        r"block4: correlation 1\.00",
        r"without channel 51 the cross falls by 1\.8\nwithout channel 48 it rises by 0\.6",
    ],
}
