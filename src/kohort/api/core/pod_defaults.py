"""What an API server fills into a pod's spec."""

from __future__ import annotations

import re
from typing import Any, Final

Spec = dict[str, Any]

_SPEC: Final[Spec] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
}
_CONTAINER: Final[Spec] = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBE: Final[Spec] = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_MODES: Final = ("secret", "configMap", "downwardAPI", "projected")  # volume sources with file modes


def default_pod_spec(spec: Spec, *, template: bool = True) -> None:
    """Complete a pod's spec in place. Templates leave some of it to the pods made from them."""
    for name, value in _SPEC.items():
        _fill(spec, name, value)
    _fill(spec, "securityContext", {})
    if not template:
        _fill(spec, "enableServiceLinks", True)
        if spec["terminationGracePeriodSeconds"] < 0:  # accepted, and as short as can be
            spec["terminationGracePeriodSeconds"] = 1
    for member in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(member) or []:
            _container(container)
            if not template:
                _request_limits(container["resources"])
    for volume in spec.get("volumes") or []:
        _volume(volume)


def default_pod_template(template: Any) -> None:
    """The same for a PodTemplateSpec, which may lack its spec."""
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        default_pod_spec(template["spec"])


def _fill(block: Spec, name: str, value: Any) -> None:
    if block.get(name) in (None, ""):  # an empty string counts as absent
        block[name] = dict(value) if isinstance(value, dict) else value


def _container(container: Spec) -> None:
    for name, value in _CONTAINER.items():
        _fill(container, name, value)
    _fill(container, "resources", {})
    _fill(
        container, "imagePullPolicy", "Always" if tag_of(container.get("image") or "") == "latest" else "IfNotPresent"
    )
    for port in container.get("ports") or []:
        _fill(port, "protocol", "TCP")
    for variable in container.get("env") or []:
        field_ref = (variable.get("valueFrom") or {}).get("fieldRef")
        if field_ref is not None:
            _fill(field_ref, "apiVersion", "v1")
    for member in _PROBES:
        probe = container.get(member)
        if probe is not None:
            for name, value in _PROBE.items():
                _fill(probe, name, value)
            if probe.get("httpGet") is not None:
                _fill(probe["httpGet"], "path", "/")
                _fill(probe["httpGet"], "scheme", "HTTP")


def _request_limits(resources: Spec) -> None:
    """What a pod limits but does not request, it requests as limited."""
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}


def _volume(volume: Spec) -> None:
    for kind in _MODES:
        if volume.get(kind) is not None:
            _fill(volume[kind], "defaultMode", 0o644)
    if volume.get("hostPath") is not None and volume["hostPath"].get("type") is None:
        volume["hostPath"]["type"] = ""
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if claim is not None:
        claim.setdefault("metadata", {})
        _fill(claim.setdefault("spec", {}), "volumeMode", "Filesystem")
        claim["spec"].setdefault("resources", {})


_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])"
_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DIGEST: Final = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_NAME: Final = re.compile(
    rf"(?P<name>(?:{_HOST}(?::[0-9]+)?/)?{_PART}(?:/{_PART})*)"
    rf"(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?",
    re.ASCII,
)
_LONGEST_NAME: Final = 255
_LONGEST: Final = 1024  # with tag and digest
_IDENTIFIER: Final = re.compile(r"[a-f0-9]{64}")


def tag_of(image: str) -> str:
    """ "latest" where neither tag nor digest is given; empty for what is no name of an image, or has only a digest."""
    if len(image) > _LONGEST or _IDENTIFIER.fullmatch(image):
        return ""
    found = _NAME.fullmatch(image)
    if found is None or len(found["name"]) > _LONGEST_NAME:
        return ""
    return found["tag"] or ("" if found["digest"] else "latest")
