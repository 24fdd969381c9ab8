"""The columns of nodes, services, events, volumes and of everything that makes pods."""

from __future__ import annotations

from typing import Any, Final

from kohort.api.kind import Column
from kohort.apimachinery.times import parse
from kohort.server import timestamps
from kohort.server.printers.cells import AGE, Cell, Object, at, labels, look, number, seen, text


def containers(path: str) -> Cell:
    return lambda obj: ",".join(one.get("name", "") for one in look(obj, f"{path}.spec.containers") or [])


def images(path: str) -> Cell:
    return lambda obj: ",".join(one.get("image", "") for one in look(obj, f"{path}.spec.containers") or [])


def selector(path: str) -> Cell:
    return lambda obj: labels(look(obj, path))


def template_labels(obj: Object) -> str:
    return labels(look(obj, "template.metadata.labels"))


def controller(obj: Object) -> str:
    for owner in look(obj, "metadata.ownerReferences") or []:
        if owner.get("controller"):
            group = str(owner.get("apiVersion", "")).rpartition("/")[0]
            kind = str(owner.get("kind", "")).lower()
            return f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"
    return "<none>"


# What wide output of every template owner ends with.
_WIDE: Final = (
    Column("Containers", cell=containers("spec.template"), priority=1),
    Column("Images", cell=images("spec.template"), priority=1),
    Column("Selector", cell=selector("spec.selector"), priority=1),
)


def replicated(ready: str) -> tuple[Column, ...]:
    return (
        Column("Desired", "integer", cell=number("spec.replicas")),
        Column("Current", "integer", cell=number("status.replicas")),
        Column("Ready", "integer", cell=number(ready)),
        AGE,
        *_WIDE,
    )


def _share(done: str, wanted: str) -> Cell:
    return lambda obj: f"{look(obj, done) or 0}/{look(obj, wanted) or 0}"


DEPLOYMENT: Final = (
    Column("Ready", cell=_share("status.readyReplicas", "spec.replicas")),
    Column("Up-to-date", cell=number("status.updatedReplicas")),
    Column("Available", cell=number("status.availableReplicas")),
    AGE,
    *_WIDE,
)
STATEFUL_SET: Final = (Column("Ready", cell=_share("status.readyReplicas", "spec.replicas")), AGE, *_WIDE[:2])
DAEMON_SET: Final = (
    Column("Desired", "integer", cell=number("status.desiredNumberScheduled")),
    Column("Current", "integer", cell=number("status.currentNumberScheduled")),
    Column("Ready", "integer", cell=number("status.numberReady")),
    Column("Up-to-date", "integer", cell=number("status.updatedNumberScheduled")),
    Column("Available", "integer", cell=number("status.numberAvailable")),
    Column("Node Selector", cell=selector("spec.template.spec.nodeSelector")),
    AGE,
    *_WIDE,
)


# ---- jobs


def _job_status(job: Object) -> str:
    true = {one.get("type") for one in look(job, "status.conditions") or [] if one.get("status") == "True"}
    for kind, word in (("Complete", "Complete"), ("Failed", "Failed")):
        if kind in true:
            return word
    if look(job, "metadata.deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if kind in true:
            return kind
    return "Running"


def _completions(job: Object) -> str:
    done, wanted = look(job, "status.succeeded") or 0, look(job, "spec.completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallelism = look(job, "spec.parallelism") or 0
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _duration(job: Object) -> str:
    start, end = parse(look(job, "status.startTime")), parse(look(job, "status.completionTime"))
    return "" if start is None else timestamps.human_duration(((end or timestamps.now()) - start).total_seconds())


JOB: Final = (
    Column("Status", cell=_job_status),
    Column("Completions", cell=_completions),
    Column("Duration", cell=_duration),
    AGE,
    *_WIDE,
)
CRON_JOB: Final = (
    Column("Schedule", cell=at("spec.schedule")),
    Column("Timezone", cell=text("spec.timeZone", "<none>")),
    Column("Suspend", "boolean", cell=lambda obj: str(bool(look(obj, "spec.suspend")))),
    Column("Active", "integer", cell=lambda obj: len(look(obj, "status.active") or [])),
    Column("Last Schedule", cell=seen("status.lastScheduleTime")),
    AGE,
    Column("Containers", cell=containers("spec.jobTemplate.spec.template"), priority=1),
    Column("Images", cell=images("spec.jobTemplate.spec.template"), priority=1),
    Column("Selector", cell=selector("spec.jobTemplate.spec.selector"), priority=1),
)


# ---- nodes


def _node_status(node: Object) -> str:
    found = {one.get("type"): one.get("status") for one in look(node, "status.conditions") or []}
    words = ["Ready" if found["Ready"] == "True" else "NotReady"] if "Ready" in found else ["Unknown"]
    if look(node, "spec.unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: Object) -> str:
    lead = "node-role.kubernetes.io/"
    found = look(node, "metadata.labels") or {}
    roles = {key[len(lead) :] for key in found if key.startswith(lead) and key != lead}
    if found.get("kubernetes.io/role"):
        roles.add(found["kubernetes.io/role"])
    return ",".join(sorted(roles)) or "<none>"


def _node_address(kind: str) -> Cell:
    def cell(node: Object) -> str:
        addresses = look(node, "status.addresses") or []
        return next((str(one["address"]) for one in addresses if one.get("type") == kind), "<none>")

    return cell


NODE: Final = (
    Column("Status", cell=_node_status),
    Column("Roles", cell=_roles),
    AGE,
    Column("Version", cell=at("status.nodeInfo.kubeletVersion")),
    Column("Internal-IP", cell=_node_address("InternalIP"), priority=1),
    Column("External-IP", cell=_node_address("ExternalIP"), priority=1),
    Column("OS-Image", cell=text("status.nodeInfo.osImage", "<unknown>"), priority=1),
    Column("Kernel-Version", cell=text("status.nodeInfo.kernelVersion", "<unknown>"), priority=1),
    Column("Container-Runtime", cell=text("status.nodeInfo.containerRuntimeVersion", "<unknown>"), priority=1),
)


# ---- services


def _external(service: Object) -> str:
    spec = look(service, "spec") or {}
    given = list(spec.get("externalIPs") or [])
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName") or "")
    if spec.get("type") == "LoadBalancer":
        entry = look(service, "status.loadBalancer.ingress") or []
        found = [one.get("ip") or one.get("hostname") for one in entry] + given
        return ",".join(str(one) for one in found) or "<pending>"
    return ",".join(given) or "<none>"


def _ports(service: Object) -> str:
    ports = look(service, "spec.ports") or []
    shown = [
        f"{port.get('port')}:{port['nodePort']}/{port.get('protocol')}"
        if port.get("nodePort")
        else f"{port.get('port')}/{port.get('protocol')}"
        for port in ports
    ]
    return ",".join(shown) or "<none>"


SERVICE: Final = (
    Column("Type", cell=at("spec.type")),
    Column("Cluster-IP", cell=text("spec.clusterIP")),
    Column("External-IP", cell=_external),
    Column("Port(s)", cell=_ports),
    AGE,
    Column("Selector", cell=selector("spec.selector"), priority=1),
)


def endpoints(obj: Object) -> str:
    found = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in obj.get("subsets") or []
        for address in subset.get("addresses") or []
        for port in subset.get("ports") or [{}]
    ]
    rest = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return (",".join(found[:3]) or "<none>") + rest


def slice_ports(obj: Object) -> str:
    return ",".join(str(port.get("port", "*")) for port in obj.get("ports") or []) or "<unset>"


def slice_addresses(obj: Object) -> str:
    found = [address for one in obj.get("endpoints") or [] for address in one.get("addresses") or []]
    rest = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return (",".join(found[:3]) or "<unset>") + rest


def _ingress_hosts(obj: Object) -> str:
    return ",".join(one.get("host") or "*" for one in look(obj, "spec.rules") or []) or "*"


INGRESS: Final = (
    Column("Class", cell=text("spec.ingressClassName")),
    Column("Hosts", cell=_ingress_hosts),
    Column(
        "Address",
        cell=lambda obj: ",".join(
            str(one.get("ip") or one.get("hostname")) for one in look(obj, "status.loadBalancer.ingress") or []
        ),
    ),
    Column("Ports", cell=lambda obj: "80, 443" if look(obj, "spec.tls") else "80"),
    AGE,
)


# ---- events, volumes, quotas, scaling


def _event_object(event: Object) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    kind = str(about.get("kind") or "").lower()
    return f"{kind}/{about.get('name')}" if about.get("name") else kind


def _last(event: Object) -> str:
    series = look(event, "series.lastObservedTime")
    last = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or event.get("eventTime")
    first = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or last
    newest = series or last or first
    return timestamps.age(newest) if newest else "<unknown>"


def _source(event: Object) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    parts = [source.get("component") or event.get("reportingComponent") or event.get("reportingController") or ""]
    return ", ".join(str(part) for part in [*parts, source.get("host")] if part)


EVENT: Final = (
    Column("Last Seen", cell=_last),
    Column("Type", cell=at("type")),
    Column("Reason", cell=at("reason")),
    Column("Object", cell=_event_object),
    Column("Subobject", cell=at("involvedObject.fieldPath"), priority=1),
    Column("Source", cell=_source, priority=1),
    Column("Message", cell=lambda event: str(event.get("message") or event.get("note") or "").strip()),
    Column("First Seen", cell=seen("firstTimestamp", "<unknown>"), priority=1),
    Column("Count", cell=lambda event: look(event, "series.count") or event.get("count") or 1, priority=1),
    Column("Name", cell=at("metadata.name"), priority=1, format="name"),
)
_SHORT_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(path: str) -> Cell:
    return lambda obj: ",".join(_SHORT_MODES.get(mode, mode) for mode in look(obj, path) or [])


def _phase(obj: Object) -> str:
    return "Terminating" if look(obj, "metadata.deletionTimestamp") else str(look(obj, "status.phase") or "")


def _claim_of(volume: Object) -> str:
    reference = look(volume, "spec.claimRef")
    return f"{reference.get('namespace')}/{reference.get('name')}" if reference else ""


VOLUME: Final = (
    Column("Capacity", cell=at("spec.capacity.storage")),
    Column("Access Modes", cell=_modes("spec.accessModes")),
    Column("Reclaim Policy", cell=at("spec.persistentVolumeReclaimPolicy")),
    Column("Status", cell=_phase),
    Column("Claim", cell=_claim_of),
    Column("StorageClass", cell=at("spec.storageClassName")),
    Column("VolumeAttributesClass", cell=text("spec.volumeAttributesClassName", "<unset>")),
    Column("Reason", cell=at("status.reason")),
    AGE,
    Column("VolumeMode", cell=text("spec.volumeMode", "<unset>"), priority=1),
)
CLAIM: Final = (
    Column("Status", cell=_phase),
    Column("Volume", cell=at("spec.volumeName")),
    Column("Capacity", cell=at("status.capacity.storage")),
    Column("Access Modes", cell=_modes("status.accessModes")),
    Column("StorageClass", cell=at("spec.storageClassName")),
    Column("VolumeAttributesClass", cell=text("spec.volumeAttributesClassName", "<unset>")),
    AGE,
    Column("VolumeMode", cell=text("spec.volumeMode", "<unset>"), priority=1),
)
STORAGE_CLASS: Final = (
    Column("Provisioner", cell=at("provisioner")),
    Column("ReclaimPolicy", cell=at("reclaimPolicy")),
    Column("VolumeBindingMode", cell=at("volumeBindingMode")),
    Column("AllowVolumeExpansion", cell=lambda obj: bool(obj.get("allowVolumeExpansion"))),
    AGE,
)


def quota(kind: str) -> Cell:
    def cell(obj: Object) -> str:
        hard, used = look(obj, "status.hard") or look(obj, "spec.hard") or {}, look(obj, "status.used") or {}
        names = [name for name in sorted(hard) if name.startswith("limits.") is (kind == "limits")]
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)

    return cell


def _target(obj: Object) -> str:
    reference = look(obj, "spec.scaleTargetRef") or {}
    return f"{reference.get('kind')}/{reference.get('name')}"


def _metrics(obj: Object) -> str:
    shown = []
    for one in look(obj, "spec.metrics") or []:
        inner: Any = one.get("resource") or {}
        target = inner.get("target") or {}
        value = f"{target['averageUtilization']}%" if target.get("averageUtilization") else target.get("averageValue")
        shown.append(f"{inner.get('name', one.get('type'))}: <unknown>/{value}")
    return ", ".join(shown) or "<none>"


AUTOSCALER: Final = (
    Column("Reference", cell=_target),
    Column("Targets", cell=_metrics),
    Column("MinPods", cell=text("spec.minReplicas", "<unset>")),
    Column("MaxPods", cell=number("spec.maxReplicas")),
    Column("Replicas", cell=number("status.currentReplicas")),
    AGE,
)


def claim_state(obj: Object) -> str:
    words = ["deleted"] if look(obj, "metadata.deletionTimestamp") else []
    if not look(obj, "status.allocation"):
        return ",".join([*words, "pending"])
    words.append("allocated")
    return ",".join([*words, "reserved"] if look(obj, "status.reservedFor") else words)
