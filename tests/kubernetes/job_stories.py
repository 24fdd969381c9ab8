"""Stories of Jobs by chance, the same for the same seed."""

from random import Random
from typing import Any

from tests.kubernetes.job_side import Object, Story, job

from kohort.testing.environment.versions import MINORS


def generated(seed: str, minor: str, count: int) -> list[Story]:
    return [Chance(f"{seed}/{minor}/{number}", minor).story(f"s{number:03}") for number in range(count)]


class Chance:
    def __init__(self, seed: str, minor: str) -> None:
        self.random, self.minor = Random(seed), minor
        self.name = "w"

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def one(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def story(self, name: str) -> Story:
        self.name = self.one("w", "w", "w", "w", "trainer", "a" * 57)
        body = self._job()
        before, first = self._around(body)
        return Story(name, [*first, *([] if before else [{"create": body}]), *self._life(body)], before)

    # ---- the Job

    def _job(self) -> Object:
        spec = self._shape()
        self._policies(spec)
        self._times(spec)
        if self.minor == "1.37":
            self._scheduling(spec)
        spec["template"] = self._template(spec)
        meta: Object = {}
        if self.maybe(0.2):
            meta["labels"] = {"team": "blue"}
        if self.maybe(0.15):
            meta["annotations"] = {"note": "x"}
        if self.maybe(0.05):
            meta["finalizers"] = ["lab.example/hold"]
        body = job(self.name, {})
        return {**body, "metadata": {**body["metadata"], **meta}, "spec": spec}

    def _shape(self) -> Object:
        spec: Object = {"parallelism": self.one(0, 1, 2, 2, 3, 3, 4)}
        if self.maybe(0.6):
            spec["completionMode"] = "Indexed"
            same = self.maybe(0.6 if self.minor == "1.36" else 0.4)
            spec["completions"] = spec["parallelism"] if same else self.one(0, 1, 2, 3, 4, 5)
        elif self.maybe(0.7):
            spec["completions"] = self.one(1, 2, 3, 4)
        if self.maybe(0.1):
            del spec["parallelism"]
        if self.maybe(0.2):
            spec["suspend"] = True
        return spec

    def _policies(self, spec: Object) -> None:
        indexed = spec.get("completionMode") == "Indexed"
        if self.maybe(0.5):
            spec["backoffLimit"] = self.one(0, 0, 1, 2, 6)
        if indexed and self.maybe(0.3):
            spec["backoffLimitPerIndex"] = self.one(0, 1, 1)
            if self.maybe(0.4):
                spec["maxFailedIndexes"] = self.one(0, 1, 2)
        if self.maybe(0.25):
            spec["podFailurePolicy"] = {"rules": [self._rule(spec) for _ in range(self.random.randint(1, 3))]}
        if indexed and spec["completions"] and self.maybe(0.25):
            spec["successPolicy"] = {"rules": [self._success(spec) for _ in range(self.random.randint(1, 2))]}
        if self.maybe(0.25):
            spec["podReplacementPolicy"] = (
                "Failed" if "podFailurePolicy" in spec else self.one("Failed", "Failed", "TerminatingOrFailed")
            )
        if self.maybe(0.06):
            spec["managedBy"] = self.one("corp.example/runner", "kubernetes.io/job-controller")

    def _rule(self, spec: Object) -> Object:
        actions = ["FailJob", "Ignore", "Count", *(["FailIndex"] if "backoffLimitPerIndex" in spec else [])]
        rule: Object = {"action": self.one(*actions)}
        if self.maybe(0.3):
            return {**rule, "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        codes: Object = {"operator": self.one("In", "In", "NotIn"), "values": sorted({self.one(1, 2), self.one(2, 42)})}
        if self.maybe(0.3):
            codes["containerName"] = "main"
        return {**rule, "onExitCodes": codes}

    def _success(self, spec: Object) -> Object:
        last = int(spec["completions"]) - 1
        listed = str(last) if last == 0 or self.maybe(0.5) else f"0-{last}"
        if self.maybe(0.5):
            return {"succeededIndexes": listed, **({"succeededCount": 1} if self.maybe(0.5) else {})}
        return {"succeededCount": self.random.randint(1, last + 1)}

    def _times(self, spec: Object) -> None:
        if self.maybe(0.12):
            spec["activeDeadlineSeconds"] = self.one(3, 3, 1000)
        if self.maybe(0.15):
            spec["ttlSecondsAfterFinished"] = self.one(0, 1, 1000)

    def _scheduling(self, spec: Object) -> None:
        if self.maybe(0.35):
            return
        parallelism = int(spec.get("parallelism", 1))
        gang: Object = {} if self.maybe(0.5) or not parallelism else {"minCount": self.random.randint(1, parallelism)}
        policy = self.one({"basic": {}}, {"gang": gang}, {"gang": gang}, {"gang": gang}, None)
        block: Object = {} if policy is None else {"schedulingPolicy": policy}
        if self.maybe(0.25):
            block["schedulingConstraints"] = {"topology": [{"key": "example.com/rack"}]}
        if self.maybe(0.3):
            is_gang = bool(policy and "gang" in policy)
            block["disruptionMode"] = self.one({"single": {}}, {"all": {}}) if is_gang else {"single": {}}
        if self.maybe(0.15):
            block["resourceClaims"] = [{"name": "nic", "resourceClaimName": "shared-nic"}]
        spec["scheduling"] = block

    def _template(self, spec: Object) -> Object:
        never = "podFailurePolicy" in spec or "backoffLimitPerIndex" in spec or self.maybe(0.8)
        main: Object = {"name": "main", "image": "lab.example/img:1"}
        if self.maybe(0.2):
            main["env"] = [{"name": "A", "value": "1"}]
        if self.maybe(0.2):
            main["resources"] = {"requests": {"cpu": "100m"}}
        inside: Object = {"restartPolicy": "Never" if never else "OnFailure", "containers": [main]}
        if self.maybe(0.15):
            inside["containers"].append({"name": "side", "image": "lab.example/img:2"})
        if self.maybe(0.1):
            inside["initContainers"] = [{"name": "prepare", "image": "lab.example/img:3"}]
        if self.maybe(0.25):
            inside["priorityClassName"] = "batch-high"
        if self.maybe(0.1):
            inside["schedulerName"] = "kohort"
        if self.maybe(0.1):
            inside["nodeSelector"] = {"zone": "a"}
        if self.maybe(0.1):
            inside["subdomain"] = "svc"
        if "resourceClaims" in spec.get("scheduling", {}):
            inside["resourceClaims"] = [{"name": "nic", "resourceClaimName": "shared-nic"}]
        if self.maybe(0.06):
            inside["schedulingGroup"] = {"podGroupName": "ext"}
        template: Object = {"spec": inside}
        meta: Object = {}
        if self.maybe(0.3):
            meta["labels"] = {"app": "x"}
        if self.maybe(0.15):
            meta["annotations"] = {"hint": "y"}
        if self.maybe(0.02):
            meta["finalizers"] = ["lab.example/pod"]
        return {**template, "metadata": meta} if meta else template

    # ---- what is there besides

    def _around(self, body: Object) -> tuple[list[Object], list[Object]]:
        """(done while no controller runs, done first)"""
        foreign: Object = {"create": self._workload("foreign")}
        choices: list[tuple[list[Object], list[Object]]] = [
            *[([], [])] * 14,
            ([], [foreign]),
            ([], [foreign, {"create": self._group("stray", "foreign")}]),
            *[(self._own(body, twice=twice), []) for twice in (False, True)],
        ]
        if self.minor == "1.37":
            choices.append((self._own(body, group=True), []))
        return ([], self._owner(body)) if self.maybe(0.1) else self.random.choice(choices)

    def _workload(self, name: str, **meta: Any) -> Object:
        policy = self.one({"basic": {}}, {"gang": {"minCount": 2}})
        return {
            "apiVersion": MINORS[self.minor].workload_api,
            "kind": "Workload",
            "metadata": {"name": name, **meta},
            "spec": {
                "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": self.name},
                "podGroupTemplates": [{"name": "grp", "schedulingPolicy": policy}],
            },
        }

    def _group(self, name: str, workload: str, **meta: Any) -> Object:
        new = {"workloadRef": {"workloadName": workload, "templateName": "grp"}}
        old = {"podGroupTemplateRef": {"workload": {"workloadName": workload, "podGroupTemplateName": "grp"}}}
        link = new if self.minor == "1.37" else old
        return {
            "apiVersion": MINORS[self.minor].workload_api,
            "kind": "PodGroup",
            "metadata": {"name": name, **meta},
            "spec": {**link, "schedulingPolicy": self.one({"basic": {}}, {"gang": {"minCount": 2}})},
        }

    def _own(self, body: Object, *, twice: bool = False, group: bool = False) -> list[Object]:
        """Made by somebody in the Job's name, before the controller has seen the Job."""
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": self.name, "uid": "JOB_UID", "controller": True}
        owned = {"ownerReferences": [{**owner, "blockOwnerDeletion": True}]}
        steps = [{"create": body}, {"create": self._workload("own-a", **owned)}]
        if twice:
            steps.append({"create": self._workload("own-b", **(owned if self.maybe(0.5) else {}))})
        if group:
            steps.append({"create": self._group("own-g", "own-a", **owned)})
        return steps

    def _owner(self, body: Object) -> list[Object]:
        fleet = {"apiVersion": "lab.example/v1", "kind": "FleetJob", "metadata": {"name": "f1"}, "spec": {}}
        owner = {"apiVersion": "lab.example/v1", "kind": "FleetJob", "name": "f1", "uid": "FLEETJOB_UID"}
        body["metadata"]["ownerReferences"] = [owner if self.maybe(0.25) else {**owner, "controller": True}]
        steps: list[Object] = [{"create": fleet}]
        if self.maybe(0.6):
            body["metadata"].setdefault("annotations", {})["scheduling.k8s.io/group-template-name"] = self.one(
                "grp", "grp", "", "other"
            )
        if self.maybe(0.8):
            workload = self._workload("fleet-wl")
            workload["spec"]["controllerRef"] = {"apiGroup": "lab.example", "kind": "FleetJob", "name": "f1"}
            steps.append({"create": workload})
        return steps

    # ---- its life

    def _life(self, body: Object) -> list[Object]:
        steps: list[Object] = []
        spec = body["spec"]
        if spec.get("suspend") and self.maybe(0.8):
            steps.append(self._patch({"suspend": False}))
        if self.maybe(0.5):
            steps.append(self._run())
        fails = 0
        for _ in range(self.random.randint(1, 4)):
            step = self._event(spec, fails < 2)
            fails += sum(
                len(one["pods"]) for each in step for one in each.get("kubelet", []) if one["do"] in {"fail", "delete"}
            )
            steps += step
        stops, goes = self.maybe(0.7), self.maybe(0.15)
        if stops or goes:  # what becomes of a Job that is deleted while it waits for pods is a race
            steps.append({"kubelet": [{"do": "stop", "pods": ["all"], "exit": 143}]})
        return [*steps, self._delete()] if goes else steps

    def _event(self, spec: Object, may_fail: bool) -> list[Object]:
        makers = [self._succeed, self._succeed, self._succeed, self._succeed_all, self._nap, self._grow, self._edit]
        makers += [self._tamper]
        if may_fail:
            makers += [self._fail, self._fail, self._fail, self._pluck]
        if spec.get("completionMode") != "Indexed":
            makers.append(self._shrink)
        else:
            # Which of its pods an Indexed Job gives up depends on whether they are of the same second: it only grows.
            makers[makers.index(self._grow)] = lambda: self._grow(5)
            if spec.get("parallelism") == spec.get("completions"):
                makers += [self._elastic, self._elastic]
        return self.random.choice(makers)()

    def _patch(self, spec: Object) -> Object:
        return {"patch": f"jobs/{self.name}", "body": {"spec": spec}}

    def _run(self) -> Object:
        bind = [{"do": "bind", "pods": ["all"]}] if self.maybe(0.6) else []
        pods = self.one(["all"], ["all"], [0], [0, 1])
        return {"kubelet": [*bind, {"do": self.one("run", "run", "run", "unready"), "pods": pods}]}

    def _succeed(self) -> list[Object]:
        return [{"kubelet": [{"do": "succeed", "pods": self.one([0], [0], [1], [0, 1])}]}]

    def _succeed_all(self) -> list[Object]:
        return [{"kubelet": [{"do": "succeed", "pods": ["all"]}]}]

    def _fail(self) -> list[Object]:
        one: Object = {"do": "fail", "pods": self.one([0], [0], [1], [0, 1]), "exit": self.one(1, 1, 2, 42)}
        if self.maybe(0.2):
            one["conditions"] = ["DisruptionTarget"]
        if self.maybe(0.1):
            one["container"] = "main"
        return [{"kubelet": [one]}]

    def _pluck(self) -> list[Object]:
        return [{"kubelet": [{"do": "delete", "pods": [0]}]}]

    def _nap(self) -> list[Object]:
        steps = [self._patch({"suspend": True})]
        if self.maybe(0.5):
            steps.append({"kubelet": [{"do": "stop", "pods": ["all"], "exit": 143}]})
        if self.maybe(0.7):
            steps.append(self._patch({"suspend": False}))
        return steps

    def _grow(self, least: int = 0) -> list[Object]:
        change: Object = {"parallelism": max(least, self.one(3, 4, 5))}
        if self.minor == "1.37" and self.maybe(0.3):
            change["scheduling"] = {"schedulingPolicy": {"gang": {"minCount": self.one(1, 2, 3)}}}
        return [self._patch(change)]

    def _shrink(self) -> list[Object]:
        return [self._patch({"parallelism": self.one(0, 1, 2)})]

    def _elastic(self) -> list[Object]:
        size = self.one(1, 2, 3, 4, 5)
        return [self._patch({"parallelism": size, "completions": size})]

    def _edit(self) -> list[Object]:
        changes: list[Object] = [
            {"metadata": {"labels": {"edited": "yes"}}},
            {"spec": {"backoffLimit": self.one(0, 1, 3)}},
            {"spec": {"activeDeadlineSeconds": self.one(1, 2000)}},
            {"spec": {"ttlSecondsAfterFinished": self.one(0, 2000)}},
            {"spec": {"podReplacementPolicy": self.one("Failed", "TerminatingOrFailed")}},
            {"spec": {"template": {"spec": {"nodeSelector": {"zone": "b"}}}}},
            {"spec": {"completions": self.one(1, 2, 3, 4)}},
        ]
        return [{"patch": f"jobs/{self.name}", "body": self.random.choice(changes)}]

    def _tamper(self) -> list[Object]:
        """With the Job's groups; then the Job is looked at again."""
        policy = {"schedulingPolicy": {"gang": {"minCount": self.one(1, 2, 7)}}}
        steps: list[Object] = [
            {"patch": f"podgroups/<podgroup {self.name}>", "body": {"spec": policy}},
            {"delete": f"podgroups/<podgroup {self.name}>"},
            {"delete": f"workloads/<workload {self.name}>"},
        ]
        look = {"patch": f"jobs/{self.name}", "body": {"spec": {"activeDeadlineSeconds": 3000}}}
        return [self.random.choice(steps), look]

    def _delete(self) -> Object:
        policy = self.one("Background", "Background", "Foreground", "Orphan", None)
        options = {} if policy is None else {"options": {"propagationPolicy": policy}}
        return {"delete": f"jobs/{self.name}", **options}
