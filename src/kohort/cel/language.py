"""The language with all its libraries: what rules and their checks use. Loaded by the first rule."""

from kohort.cel import lib_authorizer, lib_core, lib_kubernetes, lib_lists, lib_strings, urls
from kohort.cel.check import JSON_PATCH, OBJECT, Checker
from kohort.cel.run import evaluate
from kohort.cel.syntax import CelSyntaxError, Node, names, parse
from kohort.cel.values import CelError, Optional, equal

__all__ = [
    "JSON_PATCH",
    "OBJECT",
    "CelError",
    "CelSyntaxError",
    "Checker",
    "Node",
    "Optional",
    "equal",
    "evaluate",
    "names",
    "parse",
]
LIBRARIES = (lib_core, lib_strings, lib_lists, lib_kubernetes, lib_authorizer, urls)
