"""The verbs that write an object: one object for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.server.creating import Creator
from kohort.server.patching import Patcher
from kohort.server.updating import Updater

if TYPE_CHECKING:
    from kohort.server.core import Core


class Writer:
    def __init__(self, core: Core) -> None:
        creator = Creator(core)
        updater = Updater(core, creator)
        self.create = creator.create
        self.update, self.replace = updater.update, updater.replace
        self.patch = Patcher(core, creator, updater).patch
