"""Which levels of `spec.scheduling` are active, and what each one means once defaults are filled in (spec lws 4.4).

The stored object keeps what the user wrote; admission, the compiler and the controller all read it through here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from kohort.api.kind import Object
from kohort.api.objects import annotation, controller_of
from kohort.kinds.leaderworkerset.api import constants

Level = Literal["lws", "replica", "role"]
Role = Literal["leader", "worker"]
Block = dict[str, Any]

ROLES: Final[tuple[Role, ...]] = ("leader", "worker")
_BLOCKS: Final = ("schedulingPolicy", "schedulingConstraints", "disruptionMode")


@dataclass(frozen=True, slots=True)
class Shape:
    """The user's intent, normalized.

    `gangs` names the nodes whose policy is gang in force: "lws", "replica", "leader", "worker"; nodes that are not
    made in this shape are never in it.
    """

    active: tuple[Level, ...]
    blocks: dict[str, Block]  # node -> what the user wrote there
    gangs: frozenset[str]

    @property
    def flat(self) -> bool:
        return len(self.active) == 1

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that become templates."""
        if not self.flat:
            return ("lws", "replica", *ROLES)
        return ROLES if self.active == ("role",) else (self.active[0],)

    @property
    def mixes_roles(self) -> bool:
        """Whether some gang needs a leader and its workers at the same time."""
        if self.flat:
            return bool(self.gangs & {"lws", "replica"})
        return "replica" in self.gangs and minimum_groups(self.blocks["replica"]) != 1


def shape_of(obj: Object) -> Shape | None:
    """The shape that an object asks for, or None when it asks for nothing."""
    scheduling = (obj.get("spec") or {}).get("scheduling")
    if scheduling is None:
        return None
    replica = scheduling.get("replica") or {}
    blocks: dict[str, Block] = {"lws": scheduling, "replica": replica}
    blocks |= {role: replica.get(role) or {} for role in ROLES}
    active = _active(blocks, any(replica.get(role) is not None for role in ROLES))
    alone = len(active) == 1
    made = Shape(active, blocks, frozenset()).nodes
    gangs = {node for node in made if wants_gang(blocks[node], default=alone and node == "replica")}
    return Shape(active, blocks, frozenset(gangs))


def _active(blocks: dict[str, Block], roles: bool) -> tuple[Level, ...]:
    found: list[Level] = [level for level in ("lws", "replica") if _written(blocks[level])]
    if roles:
        found.append("role")
    return tuple(found) or ("replica",)


def _written(block: Block) -> bool:
    return any(block.get(name) is not None for name in _BLOCKS)


def wants_gang(block: Block, *, default: bool) -> bool:
    policy = block.get("schedulingPolicy") or {}
    if policy.get("gang") is not None:
        return True
    return default and policy.get("basic") is None


def minimum_groups(block: Block) -> int | None:
    """The explicit minGroupCount."""
    gang = (block.get("schedulingPolicy") or {}).get("gang") or {}
    found = gang.get("minGroupCount")
    return found if isinstance(found, int) else None


def path_of(node: str) -> str:
    """Where a node stands in the object."""
    return {"lws": "spec.scheduling", "replica": "spec.scheduling.replica"}.get(node, f"spec.scheduling.replica.{node}")


def path_of_level(level: Level) -> str:
    return "spec.scheduling.replica.{leader,worker}" if level == "role" else path_of(level)


# ---- numbers and templates that rules and compiler both need


def replicas(obj: Object) -> int:
    found = (obj.get("spec") or {}).get("replicas")
    return found if isinstance(found, int) else 1


def size(obj: Object) -> int:
    found = ((obj.get("spec") or {}).get("leaderWorkerTemplate") or {}).get("size")
    return found if isinstance(found, int) else 1


def template_name(obj: Object, role: Role) -> str:
    """The member of leaderWorkerTemplate that describes the pods of a role."""
    template = (obj.get("spec") or {}).get("leaderWorkerTemplate") or {}
    return "leaderTemplate" if role == "leader" and template.get("leaderTemplate") is not None else "workerTemplate"


def pod_spec(obj: Object, role: Role) -> Object:
    template = (obj.get("spec") or {}).get("leaderWorkerTemplate") or {}
    found = (template.get(template_name(obj, role)) or {}).get("spec")
    return found if isinstance(found, dict) else {}


def is_delegated(obj: Object) -> bool:
    """Whether a parent made the Workload: a controller owner, and the name of the template to use (spec lws 4.7)."""
    return controller_of(obj) is not None and bool(annotation(obj, constants.TEMPLATE_NAME))
