"""The controllers there are, by name. A module is loaded when its controller is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Final

from kohort.controllers.controller import Controller

# One line for each: its name, the module, and the function there that makes it.
_CONTROLLERS: Final = {
    "replicaset": ("kohort.controllermanager.replicaset.controller", "replicaset_controller"),
    "replicationcontroller": ("kohort.controllermanager.replicaset.controller", "replication_controller"),
}


def names() -> tuple[str, ...]:
    return tuple(_CONTROLLERS)


def make(wanted: Iterable[str]) -> list[Controller]:
    return [_make(*_CONTROLLERS[name]) for name in wanted]


def _make(module: str, function: str) -> Controller:
    made: Controller = getattr(import_module(module), function)()
    return made
