"""Properties of merging: no character of the learner's is lost, and all that is not the learner's is brought up to date."""

import copy
import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hookedu import catalog
from hookedu.cells import said_in, source_of, variants_of
from hookedu.learner import merging

LESSON = json.loads(catalog.find("00").notebook.read_text(encoding="utf-8"))
LANGUAGES = ("zh", "en", "both")
places = st.integers(0, 40)
texts = st.text(max_size=30)
languages = st.sampled_from(LANGUAGES)


class World:
    """A lesson that gets new versions, and one copy of it in which a learner works; each step may fail a property."""

    def __init__(self, language: str):
        self.lesson = copy.deepcopy(LESSON)
        self.base = merging.base_of(self.lesson)
        self.mine = merging.in_language(self.lesson, language)
        self.n = 0
        self.changed = False  # whether the learner changed anything but metadata and outputs

    @property
    def cells(self) -> list:
        return self.mine["cells"]

    def pick(self, place: int) -> dict:
        return self.cells[place % len(self.cells)] if self.cells else self.add(place, "")

    def own(self, cell: dict) -> dict:
        """Note in a cell's metadata, which counts for nothing, that its text is the learner's."""
        cell["metadata"] = cell["metadata"] | {"learner": True}
        self.changed = True
        return cell

    # -- what a learner does ---------------------------------------------------------------------------------

    def edit(self, place: int, text: str) -> None:
        cell = self.own(self.pick(place))
        self.n += 1
        cell["source"] = f"{text}{source_of(cell)[: place * 7]}✎{self.n}"

    def add(self, place: int, text: str) -> dict:
        self.n += 1
        cell = {"cell_type": "code", "id": f"new-{self.n}", "metadata": {}, "outputs": []}
        self.cells.insert(place % (len(self.cells) + 1), self.own(cell | {"source": text}))
        return cell

    def delete(self, place: int, _: str) -> None:
        self.cells.remove(self.pick(place))
        self.changed = True

    def move(self, place: int, _: str) -> None:
        cell = self.pick(place)
        self.cells.remove(cell)
        self.cells.insert(place * 5 % (len(self.cells) + 1), cell)

    def paste(self, place: int, _: str) -> None:
        self.n += 1
        original = self.pick(place)
        original["metadata"] = original["metadata"] | {
            "twice": True
        }  # of the two, either may be taken for ours
        cell = copy.deepcopy(original) | {"id": f"pasted-{self.n}"}
        self.cells.insert(place * 3 % (len(self.cells) + 1), cell)
        self.changed = True

    def retype(self, place: int, text: str) -> None:
        self.edit(place, text)  # or retyping it thrice would make it the lesson's again
        cell = self.pick(place)
        cell["cell_type"] = {"code": "markdown", "markdown": "raw"}.get(cell["cell_type"], "code")

    def run(self, place: int, text: str) -> None:
        cell = self.pick(place)
        cell["metadata"] = cell["metadata"] | {"execution": {"at": text}}
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [{"output_type": "stream", "text": text}], place

    def lose_ids(self, _: int, __: str) -> None:
        for cell in self.cells:
            cell.pop("id", None)
        self.mine["nbformat_minor"] = 4

    def press(self, place: int, _: str) -> None:
        """Press a button of LanguageToggle."""
        for cell in self.cells:
            variants = variants_of(cell)
            if source_of(cell) in variants.values():
                cell["source"] = variants[LANGUAGES[place % 3]]

    # -- what the authors do ---------------------------------------------------------------------------------

    def reword(self, place: int, text: str) -> None:
        cell = self.lesson["cells"][place % len(self.lesson["cells"])]
        for language in LANGUAGES:
            said = said_in(cell, language) + text + language
            cell["metadata"].setdefault("hookedu", {}).setdefault("languages", {})[language] = [said]
        cell["source"] = [said]

    def insert(self, place: int, text: str) -> None:
        self.n += 1
        cell = {"cell_type": "markdown", "id": f"00-cell-n{self.n}", "metadata": {}, "source": [text]}
        self.lesson["cells"].insert(place % (len(self.lesson["cells"]) + 1), cell)

    def drop(self, place: int, _: str) -> None:
        if len(self.lesson["cells"]) > 1:
            self.lesson["cells"].pop(place % len(self.lesson["cells"]))

    # -- hand out, and look ----------------------------------------------------------------------------------

    def hand_out(self, place: int, _: str) -> None:
        language, before = LANGUAGES[place % 3], copy.deepcopy(self.mine)
        result = merging.merged(self.mine, self.base, self.lesson, language)
        assert self.mine == before, "the copy itself is not changed, before it is written as a whole"
        self.mine, self.base = result.notebook, merging.base_of(self.lesson)
        self.nothing_is_lost(before)
        self.the_rest_is_new(language)
        if not self.changed:
            assert sources(self.mine) == sources(merging.in_language(self.lesson, language))
            assert (result.kept, result.offered) == (0, 0)
        again = merging.merged(self.mine, self.base, self.lesson, language)
        assert again.notebook == self.mine, "a second time changes nothing"
        ids = [cell["id"] for cell in self.cells]
        assert len(set(ids)) == len(ids)

    def nothing_is_lost(self, before: dict) -> None:
        for cell in before["cells"]:
            if cell["metadata"].get("learner"):
                assert [c for c in self.cells if source_of(c) == source_of(cell)], source_of(cell)

    def the_rest_is_new(self, language: str) -> None:
        new = iter(sources(merging.in_language(self.lesson, language)))
        for cell in self.cells:
            offered = source_of(cell).startswith(("**新版本**", "**New version**"))
            if not offered and not {"learner", "twice"} & cell["metadata"].keys():
                assert source_of(cell) in new, (
                    "the cells that are not the learner's are the lesson's, in its order"
                )


def sources(notebook: dict) -> list[str]:
    return [source_of(cell) for cell in notebook["cells"]]


LEARNER = ("edit", "add", "delete", "move", "paste", "retype", "run", "press", "lose_ids")
AUTHORS = ("reword", "insert", "drop")


def steps(*names: str):
    return st.lists(
        st.tuples(st.sampled_from((*names, *AUTHORS, "hand_out", "hand_out")), places, texts), max_size=25
    )


@settings(deadline=None)
@given(languages, steps(*LEARNER))
@example("zh", [("edit", 3, ""), ("reword", 3, "x"), ("hand_out", 1, ""), ("hand_out", 0, "")])
@example("zh", [("lose_ids", 0, ""), ("edit", 6, ""), ("drop", 6, ""), ("hand_out", 1, "")])
def test_whatever_happens_no_character_is_lost_and_the_rest_is_up_to_date(language, todo):
    world = World(language)
    for step, place, text in (*todo, ("hand_out", len(todo), "")):
        getattr(world, step)(place, text)


@settings(deadline=None)
@given(languages, steps("run", "press", "lose_ids"))
def test_a_copy_that_was_only_read_and_run_is_always_the_newest_version(language, todo):
    world = World(language)
    for step, place, text in (*todo, ("hand_out", len(todo), "")):
        getattr(world, step)(place, text)
    assert not world.changed
