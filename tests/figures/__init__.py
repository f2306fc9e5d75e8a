"""What the tagged cells of each lesson must print: one module a lesson, found through course.yml.

FIGURES        {tag: [regular expressions]}: what the cells tagged so print, in this order
OF_THIS_TORCH  the tags whose facts a new torch may change: their cells are run anew, not only read off the solution;
               left out where there is none
"""

from importlib import import_module

from hookedu import catalog

_MODULES = {lesson.id: import_module(f"tests.figures.lesson_{lesson.id}") for lesson in catalog.lessons()}

FIGURES = {(number, tag): m.FIGURES[tag] for number, m in _MODULES.items() for tag in m.FIGURES}
OF_THIS_TORCH = [(number, tag) for number, m in _MODULES.items() for tag in getattr(m, "OF_THIS_TORCH", ())]
