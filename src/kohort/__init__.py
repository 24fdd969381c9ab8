"""Kohort: every workload becomes one tree of groups; every tree starts together or not at all.

>>> import kohort
>>> problems = kohort.validate({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
...                             "metadata": {"name": "ring"}, "spec": {"schedulingPolicy": {"gang": {}}}})
>>> print(problems[0])
document 1, PodGroup/ring: spec.schedulingPolicy.gang.minCount: Required value
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kohort.library import Compiled, Converted, Problem, compile, convert, validate  # noqa: A004
    from kohort.manifest import Document, read
    from kohort.yamlread import ManifestError

__version__ = "0.1.0"
__all__ = [
    "Compiled",
    "Converted",
    "Document",
    "ManifestError",
    "Problem",
    "compile",
    "convert",
    "read",
    "validate",
]
_HOME = {"Document": "kohort.manifest", "read": "kohort.manifest", "ManifestError": "kohort.yamlread"}

if not TYPE_CHECKING:  # a type checker that sees it believes every name

    def __getattr__(name: str) -> Any:
        """Loaded when first used, so that importing the package, and the command line, stay quick."""
        if name not in __all__:
            raise AttributeError(f"module 'kohort' has no attribute {name!r}")
        value = getattr(import_module(_HOME.get(name, "kohort.library")), name)
        globals()[name] = value
        return value
