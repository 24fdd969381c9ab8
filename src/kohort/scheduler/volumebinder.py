"""Volumes before bindings: what was promised to claims is written, and waited for, as kube-scheduler does it.

A free volume gets a reference to its claim, a claim without one the node to be provisioned for; the volume controllers
of the cluster do the rest. Nothing of a decision is bound before all its volumes are there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from kohort.scheduler.volumes import SELECTED_NODE, VolumeBinding, VolumeCache

if TYPE_CHECKING:
    from kohort.kube.client import Client
    from kohort.kube.clock import Clock

_LOOK_SECONDS = 0.2
Insist = Callable[[Callable[[], Coroutine[Any, Any, object]]], Awaitable[None]]


class VolumeBindingError(Exception):
    """A promise did not come true."""


class VolumeBinder:
    """`insist`: makes a call, again where no answer came."""

    def __init__(self, client: Client, storage: VolumeCache, clock: Clock, insist: Insist, limit: float) -> None:
        self._volumes = client.resource("persistentvolumes")
        self._claims = client.resource("persistentvolumeclaims")
        self._storage = storage
        self._clock = clock
        self._insist = insist
        self._limit = limit

    async def bind(self, bindings: list[VolumeBinding]) -> None:
        """Until every claim has its volume; VolumeBindingError, or what the API server says."""
        for one in bindings:
            await self._write(one)
        end = self._clock.monotonic() + self._limit
        waiting = list(bindings)
        while waiting:
            completed = {one.claim: self._storage.completed(one) for one in waiting}
            failed = [claim for claim, come in completed.items() if come is False]
            if failed:
                raise VolumeBindingError(f"no volume was made for {', '.join(failed)}")
            waiting = [one for one in waiting if completed[one.claim] is None]
            if waiting and self._clock.monotonic() >= end:
                names = ", ".join(one.claim for one in waiting)
                raise VolumeBindingError(f"{names}: no volume was bound within {self._limit:.0f} s")
            if waiting:
                await self._clock.sleep(_LOOK_SECONDS)

    async def _write(self, binding: VolumeBinding) -> None:
        claim = self._storage.claim(binding.claim)
        if claim is None:
            raise VolumeBindingError(f"{binding.claim} is gone")
        namespace, name = binding.claim.split("/", 1)
        if binding.volume is None:
            patch = {"metadata": {**_same(claim), "annotations": {SELECTED_NODE: binding.node}}}
            await self._insist(lambda: self._claims.patch(name, patch, namespace, kind="merge"))
            return
        volume = self._storage.volume(binding.volume)
        if volume is None:
            raise VolumeBindingError(f"the volume {binding.volume} is gone")
        if (volume.get("spec") or {}).get("claimRef", {}).get("uid"):
            return  # it is the claim's already
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": namespace,
            "name": name,
            "uid": claim["metadata"].get("uid"),
            "resourceVersion": claim["metadata"].get("resourceVersion"),
        }
        annotations = {"pv.kubernetes.io/bound-by-controller": "yes"}
        patch = {"metadata": {**_same(volume), "annotations": annotations}, "spec": {"claimRef": reference}}
        await self._insist(lambda: self._volumes.patch(str(binding.volume), patch, kind="merge"))


def _same(obj: dict[str, Any]) -> dict[str, Any]:
    """What makes a patch fail if somebody else was faster."""
    return {name: obj["metadata"][name] for name in ("uid", "resourceVersion") if obj["metadata"].get(name)}
