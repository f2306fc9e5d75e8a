"""Expected output of the tagged cells: one module per lesson, found through course.yml.

FIGURES        {tag: [regular expressions]}: must match the output of the cells with this tag, in this order
OF_THIS_TORCH  optional: tags of facts that a new version of torch may change; a test executes their cells, in
               addition to the comparison with the output stored in the solution
"""

from importlib import import_module

from hookedu import catalog

_MODULES = {lesson.id: import_module(f"tests.figures.lesson_{lesson.id}") for lesson in catalog.lessons()}

FIGURES = {(number, tag): m.FIGURES[tag] for number, m in _MODULES.items() for tag in m.FIGURES}
OF_THIS_TORCH = [(number, tag) for number, m in _MODULES.items() for tag in getattr(m, "OF_THIS_TORCH", ())]
