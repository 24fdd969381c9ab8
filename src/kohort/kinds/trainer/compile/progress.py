"""Progress that the training reports: where to, and what it shows there (gate TrainJobStatus, status.trainerStatus).

Whoever compiles says who listens; without a listener nothing is added. Variables, files and names are upstream's, so
that its SDK and the callbacks of frameworks find them.
"""

from __future__ import annotations

from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import namespace_or_default
from kohort.kinds.trainer.api.constants import API_VERSION, containers_of, pod_spec
from kohort.kinds.trainer.compile.draft import Draft, put, set_variables
from kohort.kinds.trainer.compile.frameworks import variable

_VOLUME: Final = "kubeflow-trainer-token"
_FOLDER: Final = "/var/run/secrets/kubeflow/trainer"
_CA: Final = "ca.crt"
_TOKEN: Final = "token"
_TOKEN_SECONDS: Final = 3600


def path(namespace: str, name: str) -> str:
    return f"/apis/{API_VERSION}/namespaces/{namespace}/trainjobs/{name}/status"


def audience(namespace: str, name: str) -> str:
    """What a token has to be made for: reports of one job are no good for another."""
    return f"{API_VERSION}/namespaces/{namespace}/trainjobs/{name}/status"


def config_name(job: str) -> str:
    return f"{job}-tls-config"


def enforce(draft: Draft) -> None:
    """All containers of the trainer."""
    listener = draft.listener
    if listener is None or draft.first is None:
        return
    job = draft.jobs[draft.first]
    variables = [
        variable("KUBEFLOW_TRAINER_SERVER_URL", listener.url + path(namespace_or_default(draft.job), draft.name)),
        variable("KUBEFLOW_TRAINER_SERVER_CA_CERT", f"{_FOLDER}/{_CA}"),
        variable("KUBEFLOW_TRAINER_SERVER_TOKEN", f"{_FOLDER}/{_TOKEN}"),
    ]
    for container in containers_of(job):
        set_variables(container, variables)
        put(container, "volumeMounts", [{"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}], "name")
    put(pod_spec(job), "volumes", [_volume(draft)], "name")


def build(draft: Draft) -> list[Object]:
    listener = draft.listener
    if listener is None:
        return []
    meta = draft.metadata(config_name(draft.name))
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {_CA: listener.ca}}]


def _volume(draft: Draft) -> dict[str, Any]:
    token = {
        "audience": audience(namespace_or_default(draft.job), draft.name),
        "expirationSeconds": _TOKEN_SECONDS,
        "path": _TOKEN,
    }
    files = {"name": config_name(draft.name), "items": [{"key": _CA, "path": _CA}]}
    return {"name": _VOLUME, "projected": {"sources": [{"serviceAccountToken": token}, {"configMap": files}]}}
