"""Which names the definitions of an API group have, kept at hand: to read all of a group for one of them would take as
long as all their schemas are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from kohort.server.crd import definition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.api.kind import Object
    from kohort.server.store.records import Item


class _Status(msgspec.Struct):
    """A definition without its schemas."""

    status: dict[str, Any] | None = None


_read: Final = msgspec.json.Decoder(_Status).decode


class GroupNames:
    """Of definitions that are stored. The group of one is the rest of its name."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, Object]] = {}  # group -> definition -> its status

    def see(self, name: str, item: Item | None) -> None:
        """Its state now; None: it is gone."""
        group = name.partition(".")[2]
        if item is not None:
            self._groups.setdefault(group, {})[name] = {"status": _read(item.value).status or {}}
            return
        known = self._groups.get(group, {})
        known.pop(name, None)
        if not known:
            self._groups.pop(group, None)

    def others(self, group: str, but: str) -> Sequence[Object]:
        """Their statuses, each in an object."""
        return [one for name, one in self._groups.get(group, {}).items() if name != but]

    def waiting(self, group: str) -> Sequence[str]:
        """Those that do not have all names that they ask for."""
        known = self._groups.get(group, {})
        return [name for name, one in known.items() if not definition.is_true(one, "NamesAccepted")]
