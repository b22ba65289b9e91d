"""Phrases of the olympic attributes beside the words of their sentences (jaxmon/tasks/words.py)."""

from jaxmon.tasks.english import PERSON

MENTION = {
    **PERSON,
    "height": (r"heights?|tall(?:er)?|short(?:er)?|\d+ ?cm",),
    "weight": (r"weigh(?:s|ed|ing|ts?)?|heav(?:y|ier)|light(?:er|weight)?|\d+(?:\.\d+)? ?kg|build|lean|muscular",),
    "country": (r"nation(?:s|al|ality)?|countr(?:y|ies)",),
    "season": (r"(?:summer|winter)(?: (?:games|olympics|sports?))?",),
    "city": (r"host(?:ed|s)?|venue|city",),
    "medal": (r"medal(?:s|ist|list)?|podium|gold|silver|bronze",),
}
