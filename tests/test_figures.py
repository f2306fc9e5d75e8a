"""What the executed solutions print, held against the figures that the syllabus asks for: a missing id fails."""

import re

import nbformat
import pytest

from hookedu import course, source

# (lesson, id) -> what its tagged cells must print, in this order, as regular expressions
FIGURES = {
    ("01", "E1"): [
        r"x: is_leaf True   grad_fn None",
        r"y: is_leaf False  grad_fn PowBackward0",
        r"x\.grad: tensor\(\[1\., 1\., 1\., 1\.\]\)  y\.grad: None  z\.grad: None",
        r"the hook on y saw: tensor\(\[0\.2500, 0\.2500, 0\.2500, 0\.2500\]\)",
        r"y\.grad: None",
    ],
    ("01", "E6"): [
        r"without a hook, v\.grad: tensor\(\[1\., 2\., 3\.\]\)",
        r"with the hook,  v\.grad: tensor\(\[1\., 4\., 9\.\]\)",
    ],
    ("01", "E7"): [
        r"first call:\n tensor\(\[\[4\., 2\., 2\., 2\., 2\.\],\n +\[2\., 4\., 2\., 2\., 2\.\],\n"
        r" +\[2\., 2\., 4\., 2\., 2\.\],\n +\[2\., 2\., 2\., 4\., 2\.\]\]\)",
        *(
            rf"{call}.*: +diagonal tensor\(\[{d}\., {d}\., {d}\., {d}\.\]\)  elsewhere tensor\(\[{o}\.\]\)"
            for call, d, o in (("second call", 8, 4), ("third call", 4, 2))
        ),
    ],
    ("01", "E13"): [
        r"w\.grad: tensor\(5\.\)  x\.grad: tensor\(2\.\)",
        r"a\.grad: None  b\.grad: None  y\.grad: None",
        r"a\.grad tensor\(2\.\)  b\.grad tensor\(3\.\)",
        r"the hook on a saw: tensor\(2\.\)",
        r"a\.grad: None",
    ],
    ("01", "F5"): [
        r"asked after backward, y\.grad: None",
        r"after the next backward, y\.grad: tensor\(\[1\., 1\.\]\)",
        r"RuntimeError: can't retain_grad on Tensor that has requires_grad=False",
    ],
    ("02", "E1"): [
        r"x\.grad: tensor\(\[1\., 1\., 1\., 1\.\]\)",
        r"y\.grad: None",
        r"z\.grad: None",
        r"the hook saw: tensor\(\[0\.2500, 0\.2500, 0\.2500, 0\.2500\]\)",
        r"y\.grad: None",
    ],
    ("02", "E13"): [
        r"w\.grad: tensor\(5\.\)",
        r"x\.grad: tensor\(2\.\)",
        r"a\.grad: None  b\.grad: None  y\.grad: None",
        r"the hook on a saw: tensor\(2\.\)",
    ],
    ("02", "E22"): [
        r"no hook yet: +tensor\(24\.\)",
        r"with the hook: +tensor\(48\.\)",
        r"after remove\(\): +tensor\(24\.\)",
    ],
    ("02", "F3"): [
        r"after autograd\.grad: \{'tensor hook': 1, 'post-accumulate hook': 0\}",
        r"after backward: +\{'tensor hook': 2, 'post-accumulate hook': 1\}",
        r"received w itself: True with \.grad tensor\(6\.\)",
    ],
    ("02", "F5"): [
        r"a hook after backward saw: \[\]",
        r"retain_grad after backward: None",
        r"RuntimeError: cannot register a hook on a tensor that doesn't require gradient",
    ],
    ("02", "F6"): [r"inside the with: +tensor\(48\.\)", r"after the with: +tensor\(24\.\)"],
    ("02", "F9"): [
        r"\['triple', 'triple'\]",
        *(rf"{way}: \['double', 'triple'\]" for way in ("default", "factory", "partial")),
    ],
    ("03", "E2"): [
        r"mean_of_squares, leave_alone: x\.grad \[1\.0, 1\.0, 1\.0, 1\.0\]",
        r"mean_of_squares, double_in_place: x\.grad \[2\.0, 2\.0, 2\.0, 2\.0\]",
    ],
    ("03", "E5"): [
        r"first look: +tensor\(\[ 4\.,  8\., 12\.\]\)",
        r"second look: tensor\(\[2\., 4\., 6\.\]\)",
    ],
    ("03", "E6"): [r"v\.grad: tensor\(\[1\., 4\., 9\.\]\)", r"g: +tensor\(\[1\., 2\., 3\.\]\)"],
    ("03", "E14"): [
        r"fork, leave_alone: w\.grad 5, x\.grad 2",
        r"fork, double_in_place: w\.grad 10, x\.grad 2",
    ],
    ("03", "E21"): [
        r"mean_of_squares, double: x\.grad \[2\.0, 2\.0, 2\.0, 2\.0\]",
        r"mean_of_squares, double_in_place: x\.grad \[2\.0, 2\.0, 2\.0, 2\.0\]",
        r"fork, double: w\.grad 10, x\.grad 2",
        r"fork, double_in_place: w\.grad 10, x\.grad 2",
    ],
    ("03", "F1"): [
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
    ("03", "F7"): [r"wrong_shape: RuntimeError: hook 'wrong_shape' has changed the size of value"],
    ("03", "F8"): [
        r"forgot_return: v\.grad is \[2\.0, 3\.0, 6\.0\]",
        r"two_values: TypeError: expected Variable, but hook returned 'tuple'",
    ],
    ("04", "E20"): [
        r"without a hook: a\.grad 13\.0  b\.grad 7\.0  c\.grad 1\.0",
        r"with the hook:  a\.grad 39\.0  b\.grad 21\.0  c\.grad 3\.0",
    ],
    ("04", "F2"): [
        r"in the hook, c\.grad is None",
        r"retain_grad, then hook: \(39\.0, 21\.0, 3\.0\)",
        r"hook, then retain_grad: \(39\.0, 21\.0, 3\.0\)",
    ],
    ("04", "F3"): [
        r"after autograd\.grad: \{'tensor hook': 1, 'post-accumulate hook': 0\}",
        r"y\.grad: tensor\(12\.\)  w\.grad: None",
        r"after backward: +\{'tensor hook': 2, 'post-accumulate hook': 1\}",
        r"RuntimeError: post accumulate grad hooks cannot be registered on non-leaf tensors",
    ],
    ("04", "F4"): [
        r"a hook from after mul_ saw: tensor\(1\.\)",
        r"the hook from before saw: +tensor\(2\.\)",
        r"y\.grad: +tensor\(1\.\)",
    ],
    ("04", "F29"): [
        r"b arrives\s+a arrives\s+multi-grad hook: \[tensor\(10\.\), tensor\(6\.\)\]",
        r"only a is used\s+a arrives\s+multi-grad hook: \[tensor\(7\.\), None\]",
        r"the hook returned zeros: tensor\(60\.\)",
        r"RuntimeError: A leaf node was passed to _will_engine_execute_node",
    ],
    ("05", "E3"): [
        r"the net returned: \(1, 2, 1, 1\) \[9\.0, 18\.0\]",
        r"the hook saw: +\(1, 2, 2, 2\) \[9\.0, 9\.0, 9\.0, 9\.0, 18\.0, 18\.0, 18\.0, 18\.0\]",
        r"args is a tuple of length 1",
        r"args\[0\]: +\(1, 1, 4, 4\) all ones: True",
    ],
    ("05", "E4"): [
        r"Linear +1\.2  difference 0\n",
        r"Linear +3\.4  difference 0\n",
        r"ReLU +3\.4  difference 0\n",
    ],
    ("05", "E23"): [
        r"image: \(1, 3, 10, 10\)  kept: \(1, 8, 4, 4\)  holds a graph: False",
        r"gives the same: True",
    ],
    ("05", "F8"): [
        r"nothing +3\.0, +5\.0  needs a gradient: True",
        r"ten times +30\.0, +50\.0  needs a gradient: True",
        r"update +3\.0, +5\.0  needs a gradient: True",
        r"setdefault +3\.0, +3\.0  needs a gradient: False",
        r"tuple +TypeError in relu\(\): argument 'input' \(position 1\) must be Tensor, not tuple",
    ],
    ("05", "F11"): [
        r"net\(x\) .* hook on net: 1, on conv: 1",
        r"net\.forward\(x\) .* hook on net: 0, on conv: 1",
        r"conv\.forward\(x\) .* hook on net: 0, on conv: 0",
    ],
    ("05", "F13"): [r"attached: .* holds 34\d\.\d MB", r"detached: .* holds [1-5]\.\d MB"],
    ("05", "F27"): [
        r"'conv1': 1, 'bn1': 1, 'relu': 3",
        r"9 outputs, 7 of them kept",
        r"the block's output: True",
    ],
    ("05", "F28"): [
        r"careless, 3 wide: hooks left on 2, outputs kept 3",
        r"careful, 4 wide: hooks left on 0, outputs kept 0",
        r"careful, 3 wide: hooks left on 0, outputs kept 1",
    ],
    ("06", "E8"): [
        r"pre-hook: +in \(6, 5\)\n",
        r"forward hook: +in \(6, 5\) out \(6, 3\)\n",
        r"backward hook: gradient of the output \(6, 3\)",
    ],
    ("06", "E12"): [
        r"Sequential positional arguments: 1",
        r"Linear +positional arguments: 1",
        r"ReLU +positional arguments: 1",
        r"output: tensor\(\[\[0\., 5\.\]\]\)",
        r"Linear +positional arguments: 0",
        r"TypeError: register_module_forward_pre_hook\(\) got an unexpected keyword argument 'with_kwargs'",
    ],
    ("06", "E16"): [
        r"tuple of 1",
        r"\(tensor\(\[\[\[\[1\., 1\., 1\., 1\.\],(\s+\[1\., 1\., 1\., 1\.\],?){3}\]\]\]?\]?\),\)",
    ],
    ("06", "F10"): [
        r"args: \(tensor\(\[\[nan, 1\.\]\]\),\)",
        r"by position: stopped",
        r"args: \(\)\n",
        r"by keyword: +passed, tensor\(\[\[nan\]\]\)",
        r"args: \(\)  kwargs: \{'input': tensor\(\[\[1\., 2\.\]\]\)\}",
        r"\(args, kwargs\) +\(1, 1\)",
        r"\(args\[0\], kwargs\) +\(1,\)",
        r"args +RuntimeError: forward pre-hook must return None or a tuple of \(new_args, new_kwargs\)",
    ],
    ("06", "F30"): [
        r"nothing +3\.0",
        r"a tuple +30\.0",
        r"a tensor +30\.0",
        r"a list +TypeError: linear\(\): argument 'input' \(position 1\) must be Tensor, not list",
        r"two inputs TypeError: Bilinear\.forward\(\) missing 1 required positional argument: 'input2'",
    ],
    ("07", "E12"): [
        r"ReLU +\(\(6, 3\),\) \(\(6, 3\),\)",
        r"Linear +\(\(6, 5\),\) \(\(6, 3\),\)",
        r"by keyword, layer\(input=x\):\nLinear +\(\) \(\(6, 3\),\)",
        r"a forward pre-hook's tensor is wrapped into a tuple: \(6, 3\)",
        r"RuntimeError: Backward hook returned an invalid number of grad_input, got 6, but expected 1",
    ],
    ("07", "E17"): [
        r"in grad_input: None",
        r"in grad_input: \(2, 1, 3, 3\)\n",
        r"in grad_input: \(2,\)\n",
        *(
            rf"{kind}\n +grad_input: +{grad_input}\n +grad_output: "
            r"\[\[\[\[0\.5, 0\.0\], \[0\.0, 0\.0\]\], \[\[0\.5, 0\.0\], \[0\.0, 0\.0\]\]\]\]"
            for kind, grad_input in (
                ("register_backward_hook", r"\(None, \(2, 1, 3, 3\), \(2,\)\)"),
                ("register_full_backward_hook", r"\(None,\)"),
                ("register_full_backward_pre_hook", "not given"),
            )
        ),
        r"the pool took, counted row by row: (\[[\d, ]+\])\ngrad_output is not 0 at: +\1",
    ],
    ("07", "F16"): [
        r"in grad_input: \(2, 1, 3, 3\)",
        r"FutureWarning: Using a non-full backward hook [^.]*\. This hook will be\s+missing some grad_input",
        r"RuntimeError: Cannot use both regular backward hooks and full backward hooks on a single Module",
    ],
    ("07", "F17"): [
        r"inplace=False: .*\n +fine",
        *(
            rf"inplace=True: {kind} on {layer}\(.*\n +RuntimeError: .* is a view and is being modified inplace"
            for kind, layer in (
                ("register_full_backward_hook", "Linear"),
                ("register_full_backward_hook", "ReLU"),
                ("register_full_backward_pre_hook", "Linear"),
            )
        ),
        r"not in place: +(tensor\(.*\))\n",
        r"in place, tensor hook: +tensor\(.*\) True",
        r"in place, retain_grad: +tensor\(.*\) False",
    ],
    ("07", "F18"): [
        r"x\.requires_grad is False\n +grad_input: +\(None,\)\n.*\n +weight\.grad: None",
        r"afterwards, weight\.grad: \(3, 5\)",
        r"UserWarning: Full backward hook is firing .* since no inputs require gradients",
        r"x\.requires_grad is True\n +grad_input: +\(\(6, 5\),\)\n.*\n +weight\.grad: filled",
        r"two inputs, only the first needs a gradient\n +not all 0: \[True, False\]",
    ],
    ("07", "F19"): [
        r"no hook: +x\.grad \[3\.0, .*\], weight\.grad \[12\.0, ",
        r"zero grad_input: +x\.grad \[0\.0, 0\.0, 0\.0, 0\.0, 0\.0\], weight\.grad \[12\.0, ",
        r"zero grad_output: +x\.grad \[0\.0, .*\], weight\.grad \[0\.0, ",
    ],
    ("08", "E8"): [
        r"forward_pre +torch\.Size\(\[6, 5\]\)\n",
        *(rf"{kind} +torch\.Size\(\[6, 5\]\) torch\.Size\(\[6, 3\]\)\n" for kind in ("forward", "backward")),
    ],
    ("08", "E9"): [
        *(rf"{name} +10×64×112×112\n" for name in ("conv1", "bn1", "relu")),
        r"maxpool +10×64×56×56\n",
        r"layer1 +10×256×56×56\nlayer2 +10×512×28×28\nlayer3 +10×1024×14×14\nlayer4 +10×2048×7×7\n",
        r"avgpool +10×2048×1×1\nfc +10×1000\n",
        r"hooks left: 0\nattributes as before: True",
    ],
    ("08", "E12"): [
        r"global forward pre-hook +got Linear and 1 more",
        r"global forward hook +got Linear and 2 more",
        r"global backward hook +got Linear and 2 more",
        r"a tensor returned, now a \(tensor\(\[\[10\., 10\.\]\]\),\)",
    ],
    ("08", "E18"): [r"forward_pre .*\nforward itself\nforward .*\n(.*\n)+backward "],
    ("08", "F9"): [
        r"late +\['second', 'second'\] .*: \[False, False\]",
        r"partial +\['first', 'second'\] .*: \[False, False\]",
        r"mark +\['first', 'second'\] .*: \[True, True\]",
    ],
    ("08", "F12"): [
        r"one forward pass, fired: 3",
        *(rf"forward {place} " for place in range(3)),
        r"taken off: 3  left: 0",
    ],
    ("08", "F20"): [
        r"forward_pre .*\nforward itself\nforward .*\noutput_grad .*\nbackward_pre .*\nparam_grad .*\n"
        r"post_accumulate .*\nbackward .*\ninput_grad "
    ],
    ("08", "F21"): [
        r"global forward hook .*\n +own, prepend=True .*\n +own, first .*\n +own, second ",
        r"forward fails:\n +always_call: None\n(?! +plain)",
    ],
    ("08", "F22"): [
        r"registered after the first call, len\(seen\): 0  warnings: 0",
        r"the same under force_eager, len\(seen\): +1",
        r"registered before compiling, len\(seen\): +1",
    ],
    ("08", "F23"): [
        r"original: \['forward', 'param_grad'\]  copy: \['forward'\]",
        r"only the copy ran, len\(seen\): 1",
        r"after the handles' remove\(\), original: \[\]  copy: \['forward'\]",
    ],
    ("08", "F24"): [
        r"the model: +(AttributeError|PicklingError): .*<lambda>",
        r"state_dict\(\): +saved",
        r"without hooks: saved",
    ],
    ("08", "F25"): [
        r"the hook on linear1 fired: 3",
        r"the hook on self_attn fired: 1",
        r"the hook on out_proj fired: 0",
        r"diagnose: never_fired self_attn\.out_proj\ndiagnose: registered_twice linear1\n",
    ],
    ("09", "E19"): [
        *(
            rf"{kernel} +maps \(1, {maps}\) +right: detach\(\) False  clone\(\) True"
            for kernel, maps in (
                (r"\(64, 3, 11, 11\)", "64, 55, 55"),
                (r"\(192, 64, 5, 5\)", "192, 27, 27"),
                (r"\(384, 192, 3, 3\)", "384, 13, 13"),
                (r"\(256, 384, 3, 3\)", "256, 13, 13"),
                (r"\(256, 256, 3, 3\)", "256, 13, 13"),
            )
        ),
        r"kernel_64x3x11x11 +steps \[100\]",
        r"kernel_256x256x3x3 +steps \[100\]",
        r"small +steps \[0, 1, 2, 3, 4, 5\]",
        r"small, read by default: steps \[\d, \d, \d, 5\]",
    ],
    ("09", "F14"): [
        r"detach\(\) +smallest  0\.00  negative  0%  _version 1",
        r"detach\(\)\.clone\(\)  smallest -4\.\d\d  negative 5\d%  _version 0",
    ],
    ("09", "F15"): [
        r"conv2 .* still right: True",
        r"bn2 .* still right: False",
        r"equals bn2 \+ identity: True",
    ],
    ("09", "F27"): [r"conv1 +calls 1", r"relu +calls 2", r"bn2 +calls 1"],
    ("10", "E10"): [
        r"conv1 +-?\d\.\d\d *\nbn1 +0\.00 +from kept: 0\.36\nrelu +0\.36 *\nmaxpool ",
        *(rf"{name} +-?\d\.\d\d *\n" for name in ("layer1", "layer2", "layer3", "layer4", "avgpool", "fc")),
    ],
    ("10", "E11"): [
        r"^fc\.bias +0\.00\nfc\.weight +0\.00\nlayer4\.2\.bn3\.weight ",
        r"bn1\.weight .*\nbn1\.bias .*\nconv1\.weight +0\.81\n161 of 161 parameters",
        r"the list of parameters upside down: False",
    ],
    ("11", "E24"): [
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
    ("12", "F13"): [
        r"attached: 34\d MB\ndetached: 0 MB\ndeleted: 0 MB",
        r"pack kept the tensor itself: 34\d MB",
    ],
    ("12", "F22"): [
        r"registered after the first call, len\(seen\): 0",
        r"the same under force_eager, len\(seen\): +1",
        r"on the compiled model itself, len\(seen\): +2",
        r"another model, registered before, len\(seen\): 0",
        r"the same after reset\(\), len\(seen\): +1",
        r"seen\.append in the hook, compiled: 5 times",
        r"torch\.compiler\.disable, compiled: +1 time\nand it fired: 5",
    ],
    ("12", "F26"): [
        r"pre0 fwd0 pre1 fwd1 \| pre0 fwd0 pre1 \n",
        r"batches that BatchNorm counted: 2",
    ],
}

# Facts that a new torch may change: they are seen anew, not only read off the solutions.
OF_THIS_TORCH = [("07", "F16"), ("08", "F22"), ("08", "F25"), ("12", "F22"), ("12", "F26")]


def printed(lesson: str, tag: str) -> str:
    """Everything that the cells tagged `tag` of a solution print."""
    notebook = nbformat.read(course.find(lesson).solution, as_version=4)
    cells = [c for c in notebook.cells if tag in c.metadata.get("tags", ())]
    return "\n".join(o.text for c in cells for o in c.outputs if o.output_type == "stream")


def hold(lesson: str, tag: str, text: str) -> None:
    """`text` against the figure."""
    at = 0
    for pattern in FIGURES[lesson, tag]:
        found = re.compile(pattern).search(text, at)
        assert found, f"{tag}: {pattern!r} is not printed after {text[:at]!r}; printed: {text[at:]!r}"
        at = found.end()


@pytest.mark.parametrize(("lesson", "tag"), FIGURES, ids=lambda v: v)
def test_the_figure_is_the_one_of_the_syllabus(lesson, tag):
    hold(lesson, tag, printed(lesson, tag))


@pytest.mark.parametrize(("lesson", "tag"), OF_THIS_TORCH, ids=lambda v: v)
def test_this_torch_still_does_what_the_lesson_says(lesson, tag, capsys):
    """Where this fails, the fact named here has changed: rewrite its box and figure for the new torch."""
    namespace: dict = {"__name__": f"lesson_{lesson}"}
    for cell in source.read(course.find(lesson)):
        if cell.is_code and ("setup" in cell.tags or tag in cell.tags):
            exec(compile(cell.text, f"course/{lesson}:{cell.line}", "exec"), namespace)
    hold(lesson, tag, capsys.readouterr().out)


@pytest.mark.parametrize("lesson", course.lessons(), ids=lambda lesson: lesson.id)
def test_no_tag_without_a_figure(lesson):
    notebook = nbformat.read(lesson.solution, as_version=4)
    tags = {t for c in notebook.cells for t in c.metadata.get("tags", ()) if re.fullmatch(r"[EF]\d+", t)}
    assert tags == {tag for number, tag in FIGURES if number == lesson.id}
