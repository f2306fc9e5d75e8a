"""A small language: stories in which what was said before fixes some of the words.

Today is rainy . Anna and Ben went to the kitchen . Ben gave the ball to Anna . Who has the ball ? Anna .
                                                                         ----                    ----
The weather decides which kind of place people go to. Of two people who are together, one gives something to the
*other*; somebody else may take it away again; where somebody is, and who has the thing, is asked about later. Words like
those underlined above cannot be told from their own sentence: a model has to look back. `Story.fixed` lists their
places, so the truth is known exactly.

"A gave the T to B" is the sentence with which attention heads that move names were first traced: "indirect object
identification", https://arxiv.org/abs/2211.00593.
"""

import random
from dataclasses import dataclass

NAMES = (
    "Anna", "Ben", "Carl", "Dora", "Emma", "Finn", "Gina", "Hugo",
    "Ivan", "Jane", "Karl", "Lily", "Mona", "Nils", "Olga", "Paul",
)  # fmt: skip
OUTDOORS = ("park", "garden", "forest", "zoo")
INDOORS = ("kitchen", "library", "museum", "office")
PLACES = {"sunny": OUTDOORS, "rainy": INDOORS}
THINGS = ("ball", "book", "cup", "hat", "key", "lamp", "map", "pen")
_GRAMMAR = (
    "Today",
    "is",
    "and",
    "went",
    "came",
    "to",
    "the",
    "gave",
    "took",
    "in",
    "Where",
    "Who",
    "has",
    "In",
    "?",
    ".",
)

WORDS = (*_GRAMMAR, *PLACES, *OUTDOORS, *INDOORS, *THINGS, *NAMES)
NUMBER = {word: number for number, word in enumerate(WORDS)}


@dataclass(frozen=True)
class Story:
    """Words, and the places of some that follow from earlier sentences; the thing in "Who has the ball ?" is left out."""

    words: tuple[str, ...]
    fixed: tuple[int, ...]

    def __str__(self) -> str:
        return " ".join(self.words)


def encode(text: str) -> list[int]:
    """Return the numbers of the words of a text, which are divided by spaces.

    Raises
    ------
    KeyError
        If a word is not in the language; it names the word.
    """
    return [NUMBER[word] for word in text.split()]


def decode(numbers: list[int]) -> str:
    """Return the text of these numbers of words."""
    return " ".join(WORDS[number] for number in numbers)


def tell(rng: random.Random) -> Story:
    """Return a random story of at most 44 words."""
    teller = _Teller(rng)
    teller.meet()
    teller.give()
    if rng.random() < 0.5:
        teller.take()
    for ask in rng.sample([teller.ask_where, teller.ask_who], rng.randint(0, 2)):
        ask()
    return Story(tuple(teller.words), tuple(teller.fixed))


class _Teller:
    """Tells a story sentence by sentence, and knows where the two people are and who has the thing."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.words, self.fixed = rng, [], []
        self.first, self.second, self.third = rng.sample(NAMES, 3)
        self.weather = rng.choice(list(PLACES))
        self.place, self.thing = rng.choice(PLACES[self.weather]), rng.choice(THINGS)
        self.owner = ""

    def say(self, *words: str, fixed: str | None = None) -> None:
        """Add a sentence; `fixed` is the word in it that follows from earlier ones."""
        if fixed:
            self.fixed.append(len(self.words) + words.index(fixed))
        self.words += words

    def meet(self) -> None:
        self.say("Today", "is", self.weather, ".")
        if self.rng.random() < 0.6:
            self.say(self.first, "and", self.second, "went", "to", "the", self.place, ".")
        else:
            self.say(self.first, "is", "in", "the", self.place, ".")
            self.say(self.second, "came", "to", "the", self.place, ".", fixed=self.place)

    def give(self) -> None:
        giver, self.owner = self.rng.sample((self.first, self.second), 2)
        self.say(giver, "gave", "the", self.thing, "to", self.owner, ".", fixed=self.owner)

    def take(self) -> None:
        self.owner = self.third
        self.say(self.third, "took", "the", self.thing, ".", fixed=self.thing)

    def ask_where(self) -> None:
        name = self.rng.choice((self.first, self.second))
        self.say("Where", "is", name, "?", "In", "the", self.place, ".", fixed=self.place)

    def ask_who(self) -> None:
        self.say("Who", "has", "the", self.thing, "?", self.owner, ".", fixed=self.owner)
