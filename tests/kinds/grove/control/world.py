"""Grove on the simulated API, with groups: for scenarios that need a server that refuses, or a kill at any write."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from tests.controllers.driver import Driver
from tests.controllers.simapi import CONTENT, Change, Key, SimApi
from tests.e2e.grove_short import cliqueset
from tests.kinds.grove.control.replay import _report

from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.controllers.controller import Controller
from kohort.gang.compile import CompileContext
from kohort.kinds.grove.api import constants
from kohort.kinds.grove.control.controller import (
    clustertopologybinding_controller,
    podclique_controller,
    podcliquescalinggroup_controller,
    podcliqueset_controller,
    podgang_controller,
)

NS = "lab"
GROUPS = {"", "scheduling.k8s.io", constants.GROUP, constants.SCHEDULER_GROUP}


class GroveWorld:
    """Pods that are let go are bound and run at once, unless `places` is off."""

    def __init__(self, minor: str = "1.37", *, without: tuple[str, ...] = (), served: bool = True) -> None:
        base = Context.of(minor)
        self.ctx = replace(base, options=(base.options | DEFAULT_OPTIONS) - set(without))
        self.api = SimApi(self.ctx, groups=set(GROUPS))
        self.served = served
        self.driver = Driver(self.api)
        self.api.watchers.append(self._changed)
        self.places = True
        self.held: set[str] = set()  # PodCliques whose pods do not stop
        self.start()

    def controllers(self) -> list[Controller]:
        ctx = CompileContext(self.ctx.release, self.ctx.gates, self.ctx.options)
        return [
            podcliqueset_controller(ctx),
            podcliquescalinggroup_controller(ctx),
            podclique_controller(ctx, grouping=self.served),
            podgang_controller(ctx, grouping=self.served),
            clustertopologybinding_controller(),
        ]

    def start(self) -> None:
        self.driver.start(*self.controllers())

    def run(self, seconds: float = 5.0) -> None:
        self.api.clock.run(seconds)

    # ---- the user

    def make(self, body: Object) -> Object:
        verdict = self.api.create(deepcopy(body), NS)
        assert verdict.object is not None, verdict
        return verdict.object

    def set(self, name: str, *cliques: Object, **more: Any) -> Object:
        return self.make(cliqueset(name, *cliques, **more))

    def patch(self, kind: str, name: str, change: Any, content: str = "merge", space: str = NS) -> None:
        verdict = self.api.patch((kind, space, name), change, CONTENT[content])
        assert verdict.object is not None, verdict

    def scale(self, kind: str, name: str, replicas: int) -> None:
        self.patch(kind, name, {"spec": {"replicas": replicas}})

    def delete(self, kind: str, name: str) -> None:
        self.api.delete((kind, NS, name), propagation="Background")

    # ---- scheduler and kubelet

    def _changed(self, change: Change) -> None:
        if change.kind == "Pod" and change.new is not None:
            key = ("Pod", NS, change.object["metadata"]["name"])
            self.api.clock.later(0.2, lambda: self._drive(key))

    def drive(self) -> None:
        for key in list(self.api.objects):
            if key[0] == "Pod":
                self._drive(key)

    def _drive(self, key: Key) -> None:
        pod = self.api.objects.get(key)
        if pod is None:
            return
        if pod["metadata"].get("deletionTimestamp"):
            if pod["metadata"]["labels"].get(constants.PODCLIQUE) not in self.held:
                self.api.delete(key, grace=0)
            return
        if pod["spec"].get("schedulingGates") or not self.places:
            return
        if not pod["spec"].get("nodeName"):
            self.api.set_status(key, lambda one: one["spec"].update(nodeName="n1"))
        self.api.set_status(key, lambda one: _report(one, "run"))

    # ---- looking

    def every(self, kind: str) -> list[Object]:
        return self.api.every(kind)

    def names(self, kind: str) -> list[str]:
        return sorted(str(one["metadata"]["name"]) for one in self.every(kind))

    def find(self, kind: str, name: str) -> Object:
        found = self.api.find(kind, name)
        assert found is not None, f"no {kind} {name}"
        return found

    def gated(self) -> list[str]:
        """PodCliques of the pods that wait."""
        waiting = [pod for pod in self.every("Pod") if pod["spec"].get("schedulingGates")]
        return sorted(str(pod["metadata"]["labels"][constants.PODCLIQUE]) for pod in waiting)

    def reasons(self, kind: str = "") -> list[str]:
        return [told.reason for told in self.driver.events if not kind or told.regarding["kind"] == kind]

    def condition(self, kind: str, name: str, wanted: str) -> tuple[str, str]:
        found = self.find(kind, name).get("status", {}).get("conditions") or ()
        return next(((one["status"], one["reason"]) for one in found if one["type"] == wanted), ("", ""))

    def calls(self, *kinds: str) -> list[tuple[str, str, int]]:
        return [call for call in self.api.calls if call[1].partition("/")[0] in kinds]
