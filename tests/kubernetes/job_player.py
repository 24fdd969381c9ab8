"""Stories of Jobs played on a server, whichever it is.

A story is data: objects to create, requests, what a kubelet says of pods. Every story has a namespace of its own, so
that hundreds are played at once; after each step its namespace comes to rest and is looked at.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from tests.kubernetes.job_look import look, plainer
from tests.kubernetes.job_side import NODE, PATIENCE, Object, Side, Story, Told, finished

from kohort.kinds.batch.compile.names import pod_group_name, template_name, workload_name
from kohort.kube.errors import ApiError
from kohort.testing.environment.versions import MINORS

CALM = 1.6  # seconds: a Job controller gathers changes for one
COLLECTED = 22.0  # seconds: the collector of pods that nobody runs comes by every 20
LONGEST = 20.0  # deadlines and ttls up to this are waited for


class Player:
    """One story on one side."""

    def __init__(self, side: Side, story: Story) -> None:
        self.side, self.story, self.space = side, story, story.name
        self.told = Told()
        self.failures = 0  # since something succeeded: what the next pod waits for
        self.retried = 0.0  # when it has waited long enough
        self.plucked = False
        self.uids: dict[str, str] = {}
        self.jobs = 0
        self.places: dict[str, str] = {}  # pods that the story knows by a name of its own

    async def prepare(self) -> None:
        await self.side.ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.space}})
        for step in self.story.before:
            self.told.looks.append({"step": step, "answer": self._plain(await self._do(step))})

    async def play(self) -> Told:
        self.side.touch(self.space)
        if self.story.before:
            await self._look({"begin": True}, [])
        for step in self.story.steps:
            answers = await self._do(step)
            if all(one["code"] >= 400 for one in answers):  # nothing has come of it
                self.told.looks.append({"step": step, "answer": self._plain(answers)})
                continue
            self.side.touch(self.space)
            try:
                await self._look(step, answers)
            except TimeoutError:
                self.told.problem = f"no rest within {PATIENCE:.0f} s of {json.dumps(step)}"
                break
        return self.told

    async def _look(self, step: Object, answers: list[Object]) -> None:
        await self.side.rest(self.space, self._calm)
        self.told.looks.append({"step": step, "answer": self._plain(answers), **look(self.side, self.space)})

    def _calm(self) -> float:
        """How long nothing must have happened before nothing will."""
        now = self.side.clock.monotonic()
        found = [CALM]
        if any(map(_lost, self.side.every("Pod", self.space))):
            found.append(COLLECTED)
        for one in self.side.every("Job", self.space):
            spec = one["spec"]
            if finished(one):
                found.append(_bearable(spec.get("ttlSecondsAfterFinished")) + 2)
            elif not spec.get("suspend") and "deletionTimestamp" not in one["metadata"]:
                found.append(_bearable(spec.get("activeDeadlineSeconds")) + 2)
                if now < self.retried and int(one.get("status", {}).get("active") or 0) < _most(one):
                    found.append(self.retried - self.side.changed[self.space])
        return max(found)

    # ---- steps

    async def _do(self, step: Object) -> list[Object]:
        if "create" in step:
            return [await self._create(self._filled(step["create"]))]
        if "patch" in step:
            return [await self.side.ask("PATCH", self._path(step["patch"]), self._filled(step["body"]))]
        if "delete" in step:
            path = self._path(step["delete"])
            if step["delete"].startswith("pods/"):
                self._failed(1)
                self.plucked = True
            return [await self.side.ask("DELETE", path, step.get("options"))]
        return [answer for one in step["kubelet"] for answer in await self._kubelet(one)]

    async def _create(self, body: Object) -> Object:
        plural = body["kind"].lower() + "s"
        answer = await self.side.ask("POST", self._path(plural, body["apiVersion"]), body, fieldValidation="Strict")
        if answer["code"] == 200:
            meta = answer["object"]["metadata"]
            labels = [f"{body['kind'].upper()}_UID", f"{meta['name'].upper()}_UID"]
            if body["kind"] == "Job":
                self.jobs += 1
                labels = [f"JOB{self.jobs}_UID", *([] if self.jobs > 1 else ["JOB_UID"])]
                self.places |= _names(meta["name"], meta["uid"])
            self.uids |= dict.fromkeys(labels, meta["uid"])
        return answer

    def _filled(self, body: Any) -> Any:
        text = json.dumps(body)
        for label, value in {**self.uids, **self.places}.items():
            text = text.replace(f'"{label}"', f'"{value}"')
        return json.loads(text.replace("<time>", _stamp(self.side)))

    def _path(self, target: str, api_version: str = "") -> str:
        plural, _, rest = target.partition("/")
        name, slash, sub = rest.partition("/")
        known = {"jobs": "batch/v1", "pods": "v1", "configmaps": "v1", "resourcequotas": "v1"}
        version = api_version or known.get(plural) or MINORS[self.side.minor].workload_api
        if plural == "pods":
            name = self._pod_name(name) or name
        name = self.places.get(name, name)
        root = "api" if version == "v1" else "apis"
        return f"/{root}/{version}/namespaces/{self.space}/{plural}" + (f"/{name}{slash}{sub}" if name else "")

    # ---- pods

    async def _kubelet(self, one: Object) -> list[Object]:
        chosen = self._chosen(one["pods"], one["do"])
        if one["do"] in {"fail", "delete"} or (one["do"] == "stop" and self.plucked):
            self._failed(len(chosen))
            self.plucked = self.plucked or one["do"] == "delete"
        self.failures = 0 if one["do"] == "succeed" and chosen else self.failures
        return [answer for pod in chosen for answer in await self._one_pod(pod, one)] or [{"code": 0}]

    def _failed(self, count: int) -> None:
        self.failures += count
        if count:
            self.retried = self.side.clock.monotonic() + 10 * 2 ** (min(self.failures, 3) - 1) + 3

    def _pod_name(self, wish: str) -> str:
        """`base-{2}`: the second pod that was made under that name; else the name itself."""
        match = re.fullmatch(r"(.*)\{(\d+)\}", wish)
        if match is None:
            return wish
        made = [pod for pod in self.side.pods[self.space] if pod["metadata"].get("generateName") == match[1]]
        return str(made[int(match[2]) - 1]["metadata"]["name"]) if len(made) >= int(match[2]) else ""

    def _chosen(self, pods: list[Any], what: str) -> list[Object]:
        """By name, or as places among those that the step can happen to."""
        live = {pod["metadata"]["uid"]: pod for pod in self.side.every("Pod", self.space)}
        there = [live[pod["metadata"]["uid"]] for pod in self.side.pods[self.space] if pod["metadata"]["uid"] in live]
        if pods != ["all"] and isinstance(pods[0], str):
            names = [self._pod_name(one) for one in pods]
            return [pod for name in names for pod in there if pod["metadata"]["name"] == name]
        going = what == "stop"
        fit = [pod for pod in there if _may(pod) and ("deletionTimestamp" in pod["metadata"]) == going]
        fit.sort(key=_index)
        if pods == ["all"]:
            return fit
        return [fit[place] for place in dict.fromkeys(one % len(fit) for one in pods)] if fit else []

    async def _one_pod(self, pod: Object, one: Object) -> list[Object]:
        side, name = self.side, pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{self.space}/pods/{name}"
        if one["do"] == "bind":
            if pod["spec"].get("nodeName"):
                return []
            with suppress(ApiError):
                await side.client.kind("v1", "Pod").bind(name, NODE, self.space)
            return []
        if one["do"] == "delete":
            return [await side.ask("DELETE", path)]
        status = _status(pod, one, _stamp(side))
        answer = await side.ask("PATCH", f"{path}/status", {"status": status})
        if one["do"] == "stop":
            return [answer, await side.ask("DELETE", path, {"gracePeriodSeconds": 0})]
        return [answer]

    # ---- what is compared

    def _plain(self, answers: list[Object]) -> list[Object]:
        plain = plainer(self.side, self.space)
        return [{name: plain(value) for name, value in one.items() if name != "object"} for one in answers]


def _names(name: str, uid: str) -> dict[str, str]:
    workload = workload_name(name, uid)
    return {f"<workload {name}>": workload, f"<podgroup {name}>": pod_group_name(workload, template_name(name))}


def _bearable(seconds: int | None) -> float:
    return float(seconds) if seconds is not None and seconds <= LONGEST else 0.0


def _most(one: Object) -> int:
    spec, done = one["spec"], int(one.get("status", {}).get("succeeded") or 0)
    parallelism = int(spec.get("parallelism", 1))
    return min(parallelism, int(spec["completions"]) - done) if "completions" in spec else 0 if done else parallelism


def _stamp(side: Side) -> str:
    return side.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def _may(pod: Object) -> bool:
    return pod["status"].get("phase") not in {"Succeeded", "Failed"}


def _lost(pod: Object) -> bool:
    """Told to stop, and on no node where somebody could say that it has."""
    return "deletionTimestamp" in pod["metadata"] and not pod["spec"].get("nodeName") and _may(pod)


def _index(pod: Object) -> int:
    return int((pod["metadata"].get("annotations") or {}).get("batch.kubernetes.io/job-completion-index") or 0)


def _status(pod: Object, one: Object, now: str) -> Object:
    """What a kubelet would say."""
    what, named = one["do"], one.get("container")
    ready = "True" if what == "run" else "False"
    known = next((it for it in pod["status"].get("conditions") or () if it["type"] == "Ready"), {"status": ""})
    moment = known["lastTransitionTime"] if known["status"] == ready else now
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": moment, "lastProbeTime": now}]
    given = [it if isinstance(it, dict) else {"type": it, "status": "True"} for it in one.get("conditions") or ()]
    conditions += [{"lastTransitionTime": now, "lastProbeTime": now, **it} for it in given]
    before = {it["name"]: it.get("restartCount", 0) for it in pod["status"].get("containerStatuses") or ()}

    def container(name: str, code: int | None) -> Object:
        ended = {"exitCode": code, "startedAt": now, "finishedAt": now, "reason": "Ended"}
        state = {"running": {"startedAt": now}} if code is None else {"terminated": ended}
        count = one.get("restarts", before.get(name, 0))
        same = {"ready": False, "image": "", "imageID": "", "lastState": {}}
        return {"name": name, "restartCount": count, "state": state, **same}

    phase = {"run": "Running", "unready": "Running", "succeed": "Succeeded"}.get(what, "Failed")
    code = None if phase == "Running" else int(one.get("exit", 0))
    status: Object = {"phase": phase, "conditions": conditions}
    status["containerStatuses"] = [
        container(it["name"], code if code is None or named in (None, it["name"]) else 0)
        for it in pod["spec"]["containers"]
    ]
    if "init" in one:
        inits = pod["spec"].get("initContainers") or ()
        status["initContainerStatuses"] = [container(it["name"], one["init"]) for it in inits]
    return status


def _length(story: Story) -> int:
    """About how many seconds it takes, so that the longest begin first."""
    text = str(story)
    return 3 * len(story.steps) + 12 * (text.count('"do": "fail"') + text.count('"do": "delete"'))


async def played(
    side: Side, stories: Iterable[Story], start: Callable[[], Any], *, per_second: float = 10.0
) -> dict[str, Told]:
    """All of them, at the same time; `start` starts the controller."""
    players = [Player(side, story) for story in stories]
    hands = asyncio.Semaphore(16)

    async def prepare(player: Player) -> None:
        async with hands:
            await player.prepare()

    async def play(player: Player, after: float) -> None:
        await side.clock.sleep(after)  # a controller manager drops events when there are too many at once
        await player.play()

    await asyncio.gather(*(prepare(player) for player in players))
    await start()
    players.sort(key=lambda player: (not player.story.before, -_length(player.story)))
    await asyncio.gather(*(play(player, place / per_second) for place, player in enumerate(players)))
    return {player.story.name: player.told for player in players}
