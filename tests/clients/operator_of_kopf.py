"""A small operator for `kopf run`: a Greeting makes a ConfigMap and says so in its status."""

from __future__ import annotations

from typing import Any

import kopf

from kubernetes import client, config


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    config.load_kube_config()
    settings.persistence.finalizer = "kopf.example.org/finalizer"
    settings.peering.standalone = True


@kopf.on.create("kopf.example.org", "v1", "greetings")
def made(spec: Any, name: str, namespace: str, body: Any, **_: Any) -> dict[str, str]:
    text = f"Hello, {spec['whom']}"
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}
    kopf.adopt(child)
    client.CoreV1Api().create_namespaced_config_map(namespace, child)
    kopf.info(body, reason="Greeted", message=text)
    return {"text": text}


@kopf.on.update("kopf.example.org", "v1", "greetings", field="spec.whom")
def changed(new: str, name: str, namespace: str, patch: Any, **_: Any) -> None:
    client.CoreV1Api().patch_namespaced_config_map(name, namespace, {"data": {"text": f"Hello, {new}"}})
    patch.status["whom"] = new


@kopf.on.delete("kopf.example.org", "v1", "greetings")
def gone(name: str, namespace: str, **_: Any) -> None:
    client.CoreV1Api().create_namespaced_config_map(namespace, {"metadata": {"name": f"{name}-was-here"}})


@kopf.on.event("", "v1", "configmaps", labels={"touch": "please"})
def touched(name: str, namespace: str, body: Any, **_: Any) -> None:
    if not (body.get("metadata", {}).get("annotations") or {}).get("touched"):
        change = {"metadata": {"annotations": {"touched": "yes"}}}
        client.CoreV1Api().patch_namespaced_config_map(name, namespace, change)
