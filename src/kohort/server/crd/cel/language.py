"""The language with all its libraries: what rules and their checks use. Loaded by the first rule."""

from kohort.server.crd.cel import lib_authorizer, lib_core, lib_kubernetes, lib_lists, lib_strings, urls
from kohort.server.crd.cel.check import JSON_PATCH, OBJECT, Checker
from kohort.server.crd.cel.run import evaluate
from kohort.server.crd.cel.syntax import CelSyntaxError, Node, names, parse
from kohort.server.crd.cel.values import CelError, Optional, equal

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
