"""The controllers there are, by name. A module is loaded when its controller is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Final

from kohort.controllers.controller import Controller
from kohort.kube.client import Client

# One line for each: its name, the module, and the function there that makes it.
_CONTROLLERS: Final = {
    "deployment": ("kohort.controllermanager.deployment.controller", "deployment_controller"),
    "replicaset": ("kohort.controllermanager.replicaset.controller", "replicaset_controller"),
    "replicationcontroller": ("kohort.controllermanager.replicaset.controller", "replication_controller"),
    "statefulset": ("kohort.controllermanager.statefulset.controller", "statefulset_controller"),
    "daemonset": ("kohort.controllermanager.daemonset.controller", "daemonset_controller"),
    "disruption": ("kohort.controllermanager.disruption.controller", "disruption_controller"),
    "endpointslice": ("kohort.controllermanager.endpoint.controller", "endpointslice_controller"),
    "endpointslice-mirroring": (
        "kohort.controllermanager.endpoint.mirroring",
        "endpointslice_mirroring_controller",
    ),
    "endpoints": ("kohort.controllermanager.endpoint.controller", "endpoints_controller"),
    "horizontal-pod-autoscaler": ("kohort.controllermanager.autoscaler.controller", "autoscaler_controller"),
    "node-lifecycle": ("kohort.controllermanager.node.taints", "node_lifecycle_controller"),
    "taint-eviction": ("kohort.controllermanager.node.eviction", "taint_eviction_controller"),
    "persistentvolume-binder": ("kohort.controllermanager.volume.controller", "volume_controller"),
    "ephemeral-volume": ("kohort.controllermanager.volume.ephemeral", "ephemeral_volume_controller"),
    "pvc-protection": ("kohort.controllermanager.volume.protection", "claim_protection_controller"),
    "pv-protection": ("kohort.controllermanager.volume.protection", "volume_protection_controller"),
}
# Modules with install(client): objects that come with a controller.
_OBJECTS: Final = {"persistentvolume-binder": "kohort.controllermanager.volume.provision"}


def names() -> tuple[str, ...]:
    return tuple(_CONTROLLERS)


def make(wanted: Iterable[str]) -> list[Controller]:
    return [_make(*_CONTROLLERS[name]) for name in wanted]


async def install(client: Client, wanted: Iterable[str]) -> None:
    """Objects that come with these controllers, such as the default storage class."""
    for name in wanted:
        if name in _OBJECTS:
            await import_module(_OBJECTS[name]).install(client)


def _make(module: str, function: str) -> Controller:
    made: Controller = getattr(import_module(module), function)()
    return made
