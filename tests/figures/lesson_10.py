"""Expected output of the tagged cells of lesson 10."""

FIGURES = {
    "E10": [
        r"conv1 +-?\d\.\d\d *\nbn1 +0\.00 +from kept: 0\.36\nrelu +0\.36 *\nmaxpool ",
        *(rf"{name} +-?\d\.\d\d *\n" for name in ("layer1", "layer2", "layer3", "layer4", "avgpool", "fc")),
    ],
    "E11": [
        r"^fc\.bias +0\.00\nfc\.weight +0\.00\nlayer4\.2\.bn3\.weight ",
        r"bn1\.weight .*\nbn1\.bias .*\nconv1\.weight +0\.83\n161 of 161 parameters",
        r"the list of parameters upside down: False",
    ],
}
