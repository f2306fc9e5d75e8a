"""list_hooks and remove_hooks: every kind of hook in every place."""

import copy
import functools
import importlib
import os
import random
import sys
import sysconfig

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_full_backward_hook

from hookedu import list_hooks, record, remove_hooks
from hookedu.hooks.inspection import Removal
from hookedu.hooks.state import GLOBAL_HOOKS
from tests.hooks.capture_models import conv_relu, hook_tables, images


def silent(*_):
    """Do nothing, as a hook at module level, which can be pickled."""


@pytest.fixture(autouse=True)
def no_global_hooks():
    """Remove global hooks after each test, also after one that failed."""
    yield
    for table in GLOBAL_HOOKS.values():
        table.clear()


class TestListHooks:
    def test_a_model_without_hooks(self):
        assert list_hooks(conv_relu()) == [] and repr(list_hooks()) == "no hooks"

    def test_every_kind_is_listed_where_it_lives(self):
        model = conv_relu()
        model[0].register_forward_pre_hook(silent)
        model[0].register_forward_hook(silent, with_kwargs=True, always_call=True)
        model[0].register_full_backward_pre_hook(silent)
        model[0].register_full_backward_hook(silent)
        model[1].register_backward_hook(silent)
        model.register_state_dict_pre_hook(silent)
        model.register_state_dict_post_hook(silent)
        model.register_load_state_dict_pre_hook(silent)
        model.register_load_state_dict_post_hook(silent)
        model[3].weight.register_hook(silent)
        model[3].bias.register_post_accumulate_grad_hook(silent)
        register_module_forward_hook(silent, with_kwargs=True)
        register_module_full_backward_hook(silent)
        assert [(hook.kind, hook.path) for hook in list_hooks(model)] == [
            ("global backward", None),
            ("global forward", None),
            ("state_dict_pre", ""),
            ("state_dict", ""),
            ("load_state_dict_pre", ""),
            ("load_state_dict_post", ""),
            ("forward_pre", "0"),
            ("forward", "0"),
            ("backward_pre", "0"),
            ("backward", "0"),
            ("legacy_backward", "1"),
            ("param_grad", "3.weight"),
            ("post_accumulate", "3.bias"),
        ]
        assert {(h.owner, h.function, h.line) for h in list_hooks(model)} == {
            ("user", "silent", silent.__code__.co_firstlineno)
        }
        assert all(hook.file == __file__ for hook in list_hooks(model))

    def test_order_function_and_source_of_each(self):
        model = nn.Linear(1, 1)
        model.register_forward_hook(functools.partial(silent, 1))
        model.register_forward_hook([].append, prepend=True)
        rows = [(hook.index, hook.function) for hook in list_hooks(model)]
        assert rows == [(0, "list.append"), (1, "silent")]
        assert (
            "test_inspection.py" in repr(list_hooks(model)) and "<table>" in list_hooks(model)._repr_html_()
        )

    def test_a_function_made_by_exec_is_the_users(self):
        space = {}
        exec("def look(module, args, output): pass", space)
        space["look"].__module__ = None
        model = nn.ReLU()
        model.register_forward_hook(space["look"])
        assert [hook.owner for hook in list_hooks(model)] == ["user"]

    def test_owners(self):
        from torch.nn.utils import spectral_norm

        model = nn.Sequential(spectral_norm(nn.Linear(2, 2)), nn.LazyLinear(2), nn.Linear(2, 2))
        model[2].register_forward_hook(silent)
        with record(model, "2"):
            owners = {(hook.path, hook.owner) for hook in list_hooks(model)}
        assert ("0", "torch") in owners and ("1", "torch") in owners
        assert {owner for path, owner in owners if path == "2"} == {"user", "hookedu"}

    def test_what_runs_as_main_is_the_users_wherever_its_file_lies(self):
        code = compile("def look(*_): pass", os.path.join(sysconfig.get_path("purelib"), "look.py"), "exec")
        for name, owner in (("__main__", "user"), ("somelib.look", "somelib")):
            space = {"__name__": name}
            exec(code, space)
            model = nn.Linear(1, 1)
            model.register_forward_hook(space["look"])
            assert list_hooks(model)[0].owner == owner

    @pytest.mark.parametrize(
        ("place", "metadata", "owner"),
        [
            ("home/lib/python3.9/site-packages", [], "somelib"),  # the user site of another Python
            ("modules/dist-packages", [], "somelib"),
            ("pythonpath", ["somelib-1.0.dist-info"], "somelib"),  # pip install --target
            ("project", ["somelib.egg-info"], "user"),  # pip install --editable
            ("project", [], "user"),
        ],
    )
    def test_a_library_is_none_of_the_users_wherever_it_lies(
        self, tmp_path, monkeypatch, place, metadata, owner
    ):
        folder = tmp_path / place
        (folder / "somelib").mkdir(parents=True)
        for name in metadata:
            (folder / name).mkdir()
        (folder / "somelib" / "__init__.py").write_text(
            "import dataclasses\n\n\ndef look(*_):\n    pass\n\n\n"
            "@dataclasses.dataclass\nclass Keeper:\n    name: str = ''\n\n    def __call__(self, *_):\n        pass\n"
        )
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, "somelib", raising=False)
        somelib = importlib.import_module("somelib")
        model = nn.Linear(1, 1)
        model.register_forward_hook(somelib.look)
        model.register_forward_hook(somelib.Keeper())
        model.register_forward_hook(functools.partial(silent, 1))
        model.register_forward_hook([].append)
        assert [hook.owner for hook in list_hooks(model)] == [owner, owner, "user", "user"]
        assert len(remove_hooks(model, owner="user")) == (4 if owner == "user" else 2)
        monkeypatch.delitem(sys.modules, "somelib")

    def test_a_module_under_two_names_is_listed_once(self):
        model = conv_relu()
        model.again = model[0]
        model[0].register_forward_hook(silent)
        assert len(list_hooks(model)) == 1

    def test_the_copy_of_a_model_has_its_own_list(self):
        model = conv_relu()
        model[0].register_forward_hook(silent)
        twin = copy.deepcopy(model)
        list_hooks(twin)[0].remove()
        assert len(list_hooks(model)) == 1 and not list_hooks(twin)


class TestRemoveHooks:
    def test_only_those_of_the_owner_go(self):
        model = conv_relu()
        handle = model[0].register_forward_hook(silent)
        rec = record(model, nn.Module, inputs=True)
        removed = remove_hooks(model, owner="hookedu")
        assert len(removed) == 2 * len(rec) and {hook.owner for hook in removed} == {"hookedu"}
        assert list(model[0]._forward_hooks) == [handle.id]
        model(images())
        assert set(rec.missed) == set(rec)
        rec.close()

    def test_by_kind_and_path(self):
        model = conv_relu()
        for module in model:
            module.register_forward_hook(silent)
            module.register_forward_pre_hook(silent)
        assert [h.path for h in remove_hooks(model, owner="user", kind="forward", path="0")] == ["0"]
        assert len(remove_hooks(model, owner="user", kind="forward")) == 3
        with pytest.raises(ValueError, match=r"'fwd'.*forward_pre, forward"):
            remove_hooks(model, owner="user", kind="fwd")
        assert len(remove_hooks(model, owner="user")) == 4 and not list_hooks(model)

    def test_what_else_torch_notes_about_a_hook_goes_too(self):
        """In torch 2.15, the handle of a global hook with_kwargs leaves its entry in one of the tables."""
        model = conv_relu()
        tables = hook_tables(model)
        register_module_forward_hook(silent, with_kwargs=True, always_call=True)
        model[0].register_forward_hook(silent, with_kwargs=True, always_call=True)
        assert len(remove_hooks(model, owner="user")) == 2
        assert hook_tables(model) == tables

    def test_a_handle_and_a_hook_may_both_remove(self):
        model = conv_relu()
        handle = model[0].register_forward_hook(silent)
        (hook,) = list_hooks(model)
        handle.remove()
        hook.remove()
        assert not list_hooks(model)

    def test_torch_s_own_are_refused(self):
        with pytest.raises(ValueError, match="part of how the model works"):
            remove_hooks(nn.LazyLinear(2), owner="torch")


def loud(*_):
    """Do nothing, as another hook."""


class TestRemoval:
    """A hook that was taken off can be put back where it was."""

    @staticmethod
    def model_with_three_hooks_of_each_kind():
        model = conv_relu()
        for hook in (silent, loud, silent):
            model[0].register_forward_pre_hook(hook)
            model[0].register_forward_hook(hook, with_kwargs=hook is loud, always_call=True)
            model[0].register_full_backward_hook(hook)
            model.register_state_dict_pre_hook(hook)
            model.register_load_state_dict_post_hook(hook)
            model[3].weight.register_hook(hook)
            model[3].bias.register_post_accumulate_grad_hook(hook)
            register_module_forward_hook(hook, with_kwargs=True)
        return model

    @staticmethod
    def tables(model) -> list:
        """Return all hooks with their options, in order."""
        hooks = list_hooks(model)
        return [
            (hook.kind, hook.path, hook.id, [list(table.items()) for table in hook._tables]) for hook in hooks
        ]

    def test_several_come_back_one_after_the_other_each_to_its_place(self):
        model = self.model_with_three_hooks_of_each_kind()
        states, removals = [], []
        for seed in range(20):
            random.seed(seed)
            while hooks := list_hooks(model):
                states.append(self.tables(model))
                removals.append(Removal(random.choice(hooks)))
                assert not removals[-1].hook.registered
            while removals:
                assert removals[-1].undo(model) and removals.pop().hook.registered
                assert self.tables(model) == states.pop()

    def test_it_fires_again_between_its_neighbours_and_its_handle_still_works(self):
        model, fired = nn.Linear(2, 2), []
        handles = [model.weight.register_hook(lambda grad, n=n: fired.append(n)) for n in range(3)]
        removal = Removal(list_hooks(model)[1])
        model(torch.ones(1, 2)).sum().backward()
        assert removal.undo(model)
        model(torch.ones(1, 2)).sum().backward()
        assert fired == [0, 2, 0, 1, 2]
        handles[1].remove()
        assert [hook.id for hook in list_hooks(model)] == [handles[0].id, handles[2].id]

    @pytest.mark.parametrize(
        "change", ["more", "fewer", "another function", "another module", "back already"]
    )
    def test_when_something_has_changed_there_it_stays_off(self, change):
        model = nn.Sequential(nn.ReLU(), nn.ReLU())
        handles = [model[0].register_forward_hook(hook) for hook in (silent, loud, silent)]
        removal = Removal(list_hooks(model)[1])
        if change == "more":
            model[0].register_forward_hook(loud)
        elif change == "fewer":
            handles[2].remove()
        elif change == "another function":
            model[0]._forward_hooks[handles[2].id] = loud
        elif change == "another module":
            model[0] = nn.ReLU()
        else:
            assert removal.undo(model)
        before = self.tables(model)
        assert not removal.undo(model) and self.tables(model) == before

    def test_what_changes_elsewhere_does_not_matter(self):
        model = nn.Sequential(nn.ReLU(), nn.ReLU())
        model[0].register_forward_hook(silent)
        removal = Removal(list_hooks(model)[0])
        model[0].register_forward_pre_hook(loud)
        model[1].register_forward_hook(loud)
        assert removal.undo(model)
        assert [(hook.kind, hook.path) for hook in list_hooks(model)] == [
            ("forward_pre", "0"),
            ("forward", "0"),
            ("forward", "1"),
        ]


def test_a_hook_that_answers_every_attribute_or_wraps_itself_is_listed():
    class Any:
        def __getattr__(self, name):
            return Any()

        def __call__(self, *args):
            pass

    def itself(module, args, output):
        pass

    itself.__wrapped__ = itself
    layer = nn.Linear(1, 1)
    layer.register_forward_hook(Any())
    layer.register_forward_hook(itself)
    assert [hook.owner for hook in list_hooks(layer)] == ["user", "user"]
