"""What a PodCliqueSet and its scaling groups consist of, as objects (spec grove 1.7, 1.8).

All names are computed. What has been scaled keeps its size: a template's `replicas` count only when a child is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import name_of, owner_reference
from kohort.kinds.grove.api import constants
from kohort.kinds.grove.compile import names, startup
from kohort.kinds.grove.compile.expand import Clique, Gang
from kohort.kinds.grove.compile.podgang import part_of
from kohort.kinds.grove.control import claims
from kohort.kinds.grove.control.sets import CliqueSet
from kohort.kinds.grove.control.writing import number

SCALE_METRICS: Final = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
]


def own_labels(pcs: CliqueSet, component: str, name: str = "", more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**part_of(pcs.obj, component), **({constants.NAME: name} if name else {}), **(more or {})}


def _made(pcs: CliqueSet, api_version: str, kind: str, name: str, marks: dict[str, str], **members: Any) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": pcs.namespace,
            "labels": marks,
            "ownerReferences": [owner_reference(pcs.obj)],
        },
        **members,
    }


# ---- for the set as a whole: what lets the init containers look at pods


def access(pcs: CliqueSet) -> list[Object]:
    rbac, role = "rbac.authorization.k8s.io", f"grove.io:pcs:{pcs.name}"
    written = role.replace(":", "-")
    account = _made(pcs, "v1", "ServiceAccount", pcs.name, own_labels(pcs, "pod-service-account", pcs.name))
    rules = [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}]
    binding = {
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": pcs.name, "namespace": pcs.namespace}],
    }
    token = token_secret(pcs.name)
    secret = _made(
        pcs,
        "v1",
        "Secret",
        token,
        own_labels(pcs, "pod-sa-token-secret", token),
        type="kubernetes.io/service-account-token",
    )
    secret["metadata"]["annotations"] = {"kubernetes.io/service-account.name": pcs.name}
    return [
        account,
        _made(pcs, f"{rbac}/v1", "Role", role, own_labels(pcs, "pod-role", written), rules=rules),
        _made(pcs, f"{rbac}/v1", "RoleBinding", role, own_labels(pcs, "pod-role-binding", written), **binding),
        secret,
    ]


def token_secret(pcs: str) -> str:
    return f"{pcs}-ic-sat"


# ---- for each replica of the set


def service(pcs: CliqueSet, index: int) -> Object:
    name, mark = names.service(pcs.name, index), {constants.SET_INDEX: str(index)}
    chosen = {constants.MANAGED_BY: constants.OPERATOR, constants.PART_OF: pcs.name, **mark}
    publish = (pcs.template.get("headlessServiceConfig") or {}).get("publishNotReadyAddresses", True)
    spec = {"clusterIP": "None", "selector": chosen, "publishNotReadyAddresses": publish}
    return _made(pcs, "v1", "Service", name, own_labels(pcs, "pcs-headless-service", name, mark), spec=spec)


def autoscalers(pcs: CliqueSet, index: int) -> list[Object]:
    found = []
    for clique in pcs.standalone:
        config = pcs.cliques[clique]["spec"].get("autoScalingConfig")
        if config:
            found.append(_autoscaler(pcs, "PodClique", names.clique(pcs.name, index, clique), config))
    for group, template in pcs.groups.items():
        if template.get("scaleConfig"):
            name = names.scaling_group(pcs.name, index, group)
            found.append(_autoscaler(pcs, "PodCliqueScalingGroup", name, template["scaleConfig"]))
    return found


def _autoscaler(pcs: CliqueSet, kind: str, name: str, config: Mapping[str, Any]) -> Object:
    spec = {
        "scaleTargetRef": {"apiVersion": constants.API_VERSION, "kind": kind, "name": name},
        "minReplicas": config.get("minReplicas"),
        "maxReplicas": config["maxReplicas"],
        "metrics": copied(config.get("metrics") or SCALE_METRICS),
    }
    return _made(pcs, "autoscaling/v2", "HorizontalPodAutoscaler", name, own_labels(pcs, "pcs-hpa", name), spec=spec)


def scaling_group(pcs: CliqueSet, index: int, group: str) -> Object:
    name, template = names.scaling_group(pcs.name, index, group), pcs.groups[group]
    marks = own_labels(pcs, "pcs-podcliquescalinggroup", name, {constants.SET_INDEX: str(index)})
    spec = {
        "replicas": template["replicas"],
        "minAvailable": template["minAvailable"],
        "cliqueNames": list(template["cliqueNames"]),
    }
    made = _made(pcs, constants.API_VERSION, "PodCliqueScalingGroup", name, marks, spec=spec)
    made["metadata"]["finalizers"] = [constants.SCALING_GROUP_FINALIZER]
    if template.get("annotations"):
        made["metadata"]["annotations"] = dict(template["annotations"])
    return made


# ---- PodCliques


def standalone(pcs: CliqueSet, clique: Clique, gang: Gang) -> Object:
    made = _clique(pcs, clique, gang, "pcs-podclique", {})
    made["metadata"]["ownerReferences"] = [owner_reference(pcs.obj)]
    return made


def member(pcs: CliqueSet, group: Object, clique: Clique, gang: Gang) -> Object:
    marks = {
        constants.SCALING_GROUP: clique.group_name,
        constants.SCALING_GROUP_INDEX: str(clique.group_index),
        **({constants.BASE_PODGANG: gang.base} if gang.base else {}),
    }
    made = _clique(pcs, clique, gang, "pcsg-podclique", marks)
    made["metadata"]["ownerReferences"] = [owner_reference(group)]
    pods = sum(int(pcs.cliques[name]["spec"]["replicas"]) for name in pcs.groups[clique.group]["cliqueNames"])
    env = [
        _from_label("GROVE_PCSG_NAME", constants.SCALING_GROUP),
        {"name": "GROVE_PCSG_TEMPLATE_NUM_PODS", "value": str(pods)},
        _from_label("GROVE_PCSG_INDEX", constants.SCALING_GROUP_INDEX),
    ]
    put_env(made["spec"]["podSpec"], env)
    return made


def _clique(pcs: CliqueSet, clique: Clique, gang: Gang, component: str, more: Mapping[str, str]) -> Object:
    template = clique.template
    spec = copied(template["spec"])
    spec.pop("startsAfter", None)
    parents = [name for name, _ in startup.of_gang(pcs.expansion, gang)[clique.name]]
    if parents:
        spec["startsAfter"] = parents
    marks = {
        **(template.get("labels") or {}),
        **own_labels(pcs, component, clique.name, more),
        constants.SET_INDEX: str(clique.set_index),
        constants.PODGANG: gang.name,
        constants.TEMPLATE_HASH: pcs.template_hash(str(template["name"])),
    }
    return {
        "apiVersion": constants.API_VERSION,
        "kind": "PodClique",
        "metadata": {
            "name": clique.name,
            "namespace": pcs.namespace,
            "labels": marks,
            **({"annotations": dict(template["annotations"])} if template.get("annotations") else {}),
            "finalizers": [constants.CLIQUE_FINALIZER],
        },
        "spec": spec,
    }


def put_env(pod_spec: dict[str, Any], env: list[dict[str, Any]]) -> None:
    """In front, in all containers; what a user called alike is dropped."""
    taken = {entry["name"] for entry in env}
    for kind in ("initContainers", "containers"):
        for container in pod_spec.get(kind) or ():
            kept = [entry for entry in container.get("env") or () if entry.get("name") not in taken]
            container["env"] = [*copied(env), *kept]


def _from_label(name: str, key: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{key}']"}}}


# ---- pods


def pod(pcs: CliqueSet, pclq: Object, index: int, waiter: str) -> Object:
    """The pod of an index, still without its place in a group. `waiter`: the image of the init container that waits."""
    name, set_index = name_of(pclq), number(pclq, constants.SET_INDEX)
    spec = copied(pclq["spec"]["podSpec"])
    spec["schedulingGates"] = [{"name": constants.GATE}]
    service_name = names.service(pcs.name, set_index)
    env = [
        {"name": "GROVE_PCS_NAME", "value": pcs.name},
        {"name": "GROVE_PCS_INDEX", "value": str(set_index)},
        {"name": "GROVE_PCLQ_NAME", "value": name},
        {"name": "GROVE_HEADLESS_SERVICE", "value": f"{service_name}.{pcs.namespace}.svc.cluster.local"},
        _from_label("GROVE_PCLQ_POD_INDEX", constants.POD_INDEX),
    ]
    put_env(spec, env)
    spec |= {"hostname": names.hostname(name, index), "subdomain": service_name}
    claims.put(spec, pcs, pclq, index)
    if pclq["spec"].get("startsAfter"):
        _put_waiter(spec, pcs, pclq, waiter)
    marks = {**(pclq["metadata"].get("labels") or {}), constants.PODCLIQUE: name, constants.POD_INDEX: str(index)}
    notes = pclq["metadata"].get("annotations")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{name}-",
            "namespace": pcs.namespace,
            "labels": marks,
            **({"annotations": dict(notes)} if notes else {}),
            "ownerReferences": [owner_reference(pclq)],
        },
        "spec": spec,
    }


def _put_waiter(spec: dict[str, Any], pcs: CliqueSet, pclq: Object, image: str) -> None:
    """Startup order works after scheduling: the pod is placed, and its containers wait for those of its parents."""
    mine = pcs.gangs_of(number(pclq, constants.SET_INDEX)).get(name_of(pclq))
    parents = startup.of_gang(pcs.expansion, mine[1])[name_of(pclq)] if mine is not None else []
    volumes = [
        {"name": "sa-token-secret-vol", "secret": {"secretName": token_secret(pcs.name), "defaultMode": 420}},
        {
            "name": "pod-info-vol",
            "downwardAPI": {
                "items": [
                    {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
                    {"path": "podgangname", "fieldRef": {"fieldPath": f"metadata.labels['{constants.PODGANG}']"}},
                ],
                "defaultMode": 420,
            },
        },
    ]
    spec["volumes"] = [*(spec.get("volumes") or ()), *volumes]
    waiter = {
        "name": "grove-initc",
        "image": image,
        "args": startup.arguments(parents),
        "volumeMounts": [
            {"name": "pod-info-vol", "readOnly": True, "mountPath": "/var/grove/pod-info"},
            {
                "name": "sa-token-secret-vol",
                "readOnly": True,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            },
        ],
    }
    spec["initContainers"] = [*(spec.get("initContainers") or ()), waiter]
