"""What decides about 07.3, `guided_relu(model)`."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from hookedu.exercises.checks.common import HANDLE
from hookedu.exercises.checks.lesson_07.shared import MISRETURNED, NO_GRAD, all_differ, as_in_key, reads
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show_kind
from hookedu.exercises.probes.lesson_07.guided_relu import LARGE, PROBE, Net
from hookedu.exercises.tools import same

# What a ReLU may pass back of a gradient; `on` is where its input was above 0.
_RULES: dict[str, Any] = {
    "all": lambda grad, on: torch.where(on, grad, 0.0),
    "positive": lambda grad, on: torch.where(on, grad.clamp(min=0), 0.0),
    "positive, also where off": lambda grad, on: grad.clamp(min=0),
    "negative": lambda grad, on: torch.where(on, grad.clamp(max=0), 0.0),
    "size": lambda grad, on: torch.where(on, grad.abs(), 0.0),
    "above 1": lambda grad, on: torch.where(on & (grad > 1), grad, 0.0),
    "above -1": lambda grad, on: torch.where(on & (grad > -1), grad, 0.0),
    "at most 1": lambda grad, on: torch.where(on, grad.clamp(0, 1), 0.0),
    "nothing": lambda grad, on: torch.zeros_like(grad),
}


def _same(grad: torch.Tensor) -> torch.Tensor:
    return grad


def _keep(grad: torch.Tensor) -> torch.Tensor:
    return grad.clamp(min=0)


def _readings(net: Net, n: int = 0, ran: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
    """Return the gradients of x under different rules, computed by hand for the loss with ws[n].

    If the model `ran` with another x, its ReLUs pass what was above 0 in both passes.
    """
    first, second, third, last = (m.weight.detach() for m in net.model.modules() if isinstance(m, nn.Linear))

    def forward(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        low = x @ first.T
        middle = torch.where(low > 0, low, low / 2) @ second.T
        return low, middle, (middle + middle.clamp(min=0)) @ third.T

    low, middle, high = forward(net.x)
    if ran is not None:
        _, *others = forward(ran)
        middle, high = (torch.minimum(*pair) for pair in zip((middle, high), others, strict=True))

    def back(
        block: str, top: str, leaky: Any = _same, past: Any = _same, linear: Any = _same
    ) -> torch.Tensor:
        """Return the gradient of x with these rules of the ReLUs, and changes elsewhere, `past` the ReLU of the block."""
        grad = linear(net.ws[n] @ last)
        grad = linear(_RULES[top](grad, high > 0) @ third)
        grad = linear((_RULES[block](grad, middle > 0) + past(grad)) @ second)
        return linear(leaky(torch.where(low > 0, grad, grad / 2)) @ first)

    found = {name: back(name, name) for name in _RULES}
    found["positive at the top"] = back("all", "positive")
    found["positive in the block"] = back("positive", "all")
    found["positive at x"] = found["all"].clamp(min=0)
    found["positive everywhere"] = back("positive", "positive", _keep, linear=_keep)
    found["every activation"] = back("positive", "positive", _keep)
    found["past the ReLU too"] = back("positive", "positive", past=_keep)
    return found


def _key(nets: tuple[Net, Net]) -> SimpleNamespace:
    """Return what is wanted, and the gradients that x of the first net may get."""
    readings, later, other = _readings(nets[0]), _readings(nets[0], 1), _readings(nets[1])
    want = {"x_grad": readings["positive"], "again": later["positive"], "other": other["all"]}
    ran = _readings(nets[0], 1, nets[1].x)["positive"]
    training, tiny = nets[0].model.training, bool(nets[0].ws[0].abs().max() < 1)
    return SimpleNamespace(
        **want,
        full=True,
        ended="ok",
        readings=readings,
        unchanged=later["all"],
        ran=ran,
        training=training,
        tiny=tiny,
        relu="To(float16), ReLU, To(float32)" if training else "ReLU",
        x=nets[0].x.abs(),
        w=LARGE * nets[0].x,
        itself=[LARGE * nets[0].x.clamp(min=0)] * 2,
    )


def _suits(nets: tuple[Net, Net]) -> bool:
    """Check whether every rule shows, and in the other backward passes that of the exercise."""
    net, other = nets
    found = _readings(net)
    limits = [found.pop("above 1"), found.pop("above -1")]
    largest = found.pop("at most 1")
    if net.model.training and torch.equal(largest, found["positive"]):
        return False
    others = _readings(net, 1), _readings(other)
    ran = _readings(net, 1, other.x)["positive"]
    return (
        all_differ([*found.values(), net.x.clamp(min=0), net.x, net.x.clamp(max=0)])
        and not any(torch.equal(found["positive"], other) for other in limits)
        and all(all_differ([other["all"], other["positive"]]) for other in others)
        and all_differ([ran, others[0]["positive"]])
    )


def _are_handles(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(one == HANDLE for one in value)


def _handles(saw: Any, key: Any) -> str:
    return show_kind(saw.handles)


_MISTAKES = {
    "asks_training": lambda saw, key: not key.training and same(saw.x_grad, key.readings["all"]),
    "nothing_changed": reads("all"),
    "deconvnet": reads("positive, also where off"),
    "wrong_sign": reads("negative"),
    "absolute": reads("size"),
    "threshold": lambda saw, key: key.tiny and not saw.x_grad.any(),
    "all_zero": reads("nothing"),
    "top_level_only": reads("positive at the top"),
    "one_relu": reads("positive in the block"),
    "every_module": reads("positive everywhere"),
    "other_activations": reads("every activation"),
    "only_the_model": reads("positive at x"),
    "shortcut": reads("past the ReLU too"),
}
_ANOTHER = "handles = guided_relu(model); (w * another_model(x)).sum().backward()"
_KINDS = {"expected": "register_full_backward_hook", "got": "register_backward_hook"}

EXERCISE = Exercise(
    PROBE,
    key=_key,
    suits=_suits,
    given="model = Sequential(Linear, LeakyReLU, Shortcut(Linear, ReLU), Linear, {key.relu}, Linear); "
    "model.training == {key.training}; x = {case[0].x}; loss = ({case[0].ws[0]} * model(x)).sum()",
    checks=[
        as_in_key("guided", "x_grad", 1, _MISTAKES, essential=True, label="x.grad"),
        as_in_key(
            "again",
            "again",
            0,
            {
                "other_mode": lambda saw, key: not key.training and same(saw.again, key.unchanged),
                "once": Gives(lambda key: key.unchanged),
                "last_forward": Gives(lambda key: key.ran),
            },
            essential=True,
            given=[
                Say("second_backward", when=lambda saw, key: key.training),
                Say("second_backward_training"),
            ],
            label="x.grad",
        ),
        as_in_key(
            "itself",
            "itself",
            0,
            {
                "not_root": Gives(lambda key: [key.w, key.w]),
                "hooks_once": Gives(lambda key: [key.itself[0], key.w]),
            },
            essential=True,
            given=Say("itself"),
            label="x.grad",
        ),
        as_in_key("evaluation", "ended", 1, **NO_GRAD),
        as_in_key("others", "other", 1, {"every_model": True}, given=_ANOTHER, label="x.grad"),
        Check(
            "handle",
            ok=lambda saw, key: _are_handles(saw.handles) and same(saw.after, key.readings["all"]),
            points=1,
            given="handles = guided_relu(model)",
            expected=Say("all_handles"),
            got=[
                Say("still_at_work", when=lambda saw, key: _are_handles(saw.handles), given_back=_handles),
                _handles,
            ],
            mistakes={
                "one_handle": lambda saw, key: saw.handles == HANDLE,
                "some_handles": lambda saw, key: _are_handles(saw.handles),
                "no_list": lambda saw, key: isinstance(saw.handles, dict),
                "no_handle": lambda saw, key: not saw.handles,
            },
        ),
        as_in_key("full", "full", 1, {"legacy": True}, given="guided_relu(model)", **_KINDS),
    ],
    raises=MISRETURNED | {"wrong_dtype": r"has changed the type of value"},
)
