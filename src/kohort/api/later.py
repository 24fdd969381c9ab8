"""Modules that are imported when something of them is first used, for what a server need not have to start."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Later:
    __slots__ = ("_module", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Any = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = import_module(self._name)
        return getattr(self._module, attribute)


def module(name: str) -> Any:
    """A stand-in for the module. Those who check types are told what it is:

    if TYPE_CHECKING:
        from kohort.api import patch
    else:
        patch = module("kohort.api.patch")
    """
    return _Later(name)
