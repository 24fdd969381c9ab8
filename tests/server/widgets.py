"""A server with the custom resource of the differential tests: every sort of list and map, and untyped places."""

from __future__ import annotations

import time
from typing import Any

from tests.api.apply.sequences import WIDGET
from tests.server.crd.server import Running

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/kohort.test/v1/namespaces/default/widgets"
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.kohort.test"},
    "spec": {
        "group": "kohort.test",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": WIDGET},
                "subresources": {"status": {}},
            }
        ],
    },
}


def serve(server: Running) -> None:
    assert server.request("POST", CRDS, CRD).code == 201
    deadline = time.monotonic() + 60
    while not server.request("GET", WIDGETS).ok:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "kohort.test/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
