"""What the controllers read of a PodCliqueSet: templates by name, their hashes, how it is updated."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import cached_property
from hashlib import sha256
from typing import Any, Final

from kohort.api.copying import copied
from kohort.api.kind import Context, Object
from kohort.api.objects import label, name_of, namespace_of, status_of
from kohort.api.releases import NEWEST
from kohort.apimachinery import duration
from kohort.apimachinery.podresources import in_canonical_form
from kohort.gang.compile import Lookup
from kohort.kinds.grove.api import constants
from kohort.kinds.grove.api.defaults import TERMINATION_DELAY, podcliqueset
from kohort.kinds.grove.compile import names
from kohort.kinds.grove.compile.expand import Clique, Expansion, Gang
from kohort.kinds.grove.control.writing import number

_ANY: Final = Context.of(NEWEST)  # these defaults are the same in all releases


class CliqueSet:
    """A stored PodCliqueSet. `groups`: the PodCliqueScalingGroups there are, whose sizes count."""

    def __init__(self, obj: Object, groups: list[Object] | None = None) -> None:
        self.obj = obj = _completed(obj)
        self.name = name_of(obj)
        self.namespace = namespace_of(obj)
        self.template: dict[str, Any] = obj["spec"]["template"]
        self.replicas = int(obj["spec"].get("replicas") or 0)
        self._groups = groups or []

    @cached_property
    def expansion(self) -> Expansion:
        return Expansion(self.obj, Lookup(self._groups))

    @cached_property
    def cliques(self) -> dict[str, dict[str, Any]]:
        return {str(clique["name"]): clique for clique in self.template["cliques"]}

    @cached_property
    def groups(self) -> dict[str, dict[str, Any]]:
        return {str(group["name"]): group for group in self.template.get("podCliqueScalingGroups") or ()}

    @property
    def standalone(self) -> list[str]:
        return self.expansion.standalone

    # ---- updates

    @property
    def on_delete(self) -> bool:
        return (self.obj["spec"].get("updateStrategy") or {}).get("type") == "OnDelete"

    @property
    def progress(self) -> dict[str, Any]:
        return status_of(self.obj).get("updateProgress") or {}

    @property
    def is_rolling(self) -> bool:
        """Replicas of the set are being made anew, one after the other."""
        return not self.on_delete and bool(self.progress) and not self.progress.get("updateEndedAt")

    @property
    def rolling_replica(self) -> int:
        current = self.progress.get("currentlyUpdating") or [{}]
        return int(current[0].get("replicaIndex", -1))

    @property
    def stored_hash(self) -> str:
        """The generation that the children follow."""
        return str(status_of(self.obj).get("currentGenerationHash") or "")

    @cached_property
    def generation_hash(self) -> str:
        return _hash(*(self._hashed(clique) for clique in self.template["cliques"]))

    @cached_property
    def _template_hashes(self) -> dict[str, str]:
        return {name: _hash(self._hashed(clique)) for name, clique in self.cliques.items()}

    def template_hash(self, clique: str) -> str:
        return self._template_hashes[clique]

    def _hashed(self, clique: dict[str, Any]) -> dict[str, Any]:
        """The set's priority class stands above the template's own, so a change of that one alone starts nothing."""
        spec = {**clique["spec"].get("podSpec", {}), "priorityClassName": self.template.get("priorityClassName") or ""}
        return {"labels": clique.get("labels"), "annotations": clique.get("annotations"), "spec": spec}

    @property
    def delay(self) -> timedelta:
        text = str(self.template.get("terminationDelay") or TERMINATION_DELAY)
        return timedelta(microseconds=duration.nanoseconds(text) / 1000)

    # ---- children

    def clique_of(self, pclq: Object) -> str:
        """The template of a PodClique, by its exact name (D23); "" if it is none of this set's."""
        group = label(pclq, constants.SCALING_GROUP)
        above, key = (group, constants.SCALING_GROUP_INDEX) if group else (self.name, constants.SET_INDEX)
        named = name_of(pclq).removeprefix(f"{above}-{number(pclq, key)}-")
        return named if named in self.cliques else ""

    def group_of(self, pcsg: Object) -> str:
        """The template of a scaling group."""
        named = name_of(pcsg).removeprefix(f"{self.name}-{number(pcsg, constants.SET_INDEX)}-")
        return named if named in self.groups else ""

    def gang(self, podgang: str) -> Gang | None:
        """By the name of its PodGang."""
        index = podgang.removeprefix(f"{self.name}-").partition("-")[0]
        if not (index.isascii() and index.isdigit()) or int(index) >= self.replicas:
            return None
        return next((gang for gang in self.expansion.replica(int(index)) if gang.name == podgang), None)

    def gangs_of(self, index: int) -> dict[str, tuple[Clique, Gang]]:
        """The cliques of one replica of the set by the names of their PodCliques, each with its gang."""
        return {clique.name: (clique, gang) for gang in self.expansion.replica(index) for clique in gang.cliques}

    def standalone_names(self, index: int) -> list[str]:
        return [names.clique(self.name, index, clique) for clique in self.standalone]

    def group_names(self, index: int) -> list[str]:
        return [names.scaling_group(self.name, index, group) for group in self.groups]


def _completed(obj: Object) -> Object:
    """A server without Grove's webhook stores a set as it was written; minimums and the delay are filled in here."""
    template = obj["spec"]["template"]
    if template.get("terminationDelay") and all("minAvailable" in one["spec"] for one in template["cliques"]):
        return obj
    whole = copied(obj)
    podcliqueset(whole, _ANY)
    return whole


def _hash(*parts: dict[str, Any]) -> str:
    """The hash of one template is also the hash of a set that has no other."""
    digest = sha256()
    for part in parts:
        text = json.dumps(in_canonical_form(part), sort_keys=True, separators=(",", ":"))
        digest.update(text.encode())
    return digest.hexdigest()[:12]


def selector(pcs: str, *more: tuple[str, str]) -> str:
    """The labels of everything of a set, and some more, as a selector."""
    pairs = {constants.MANAGED_BY: constants.OPERATOR, constants.PART_OF: pcs, **dict(more)}
    return ",".join(f"{key}={value}" for key, value in sorted(pairs.items()))
