"""A test environment: real etcd and real Kubernetes of one minor version, on loopback, without containers.

    with Environment(kubernetes="1.37", with_=("kcm", "scheduler")) as env:
        env.client().get("/version")

Where Kohort and real Kubernetes disagree, real Kubernetes is right; this package is how we ask it.
"""

from kohort.testing.environment.assets import Assets, AssetsMissingError, ensure, find
from kohort.testing.environment.environment import ControlPlaneError, Environment
from kohort.testing.environment.versions import MINORS, gates_exactly

__all__ = [
    "MINORS",
    "Assets",
    "AssetsMissingError",
    "ControlPlaneError",
    "Environment",
    "ensure",
    "find",
    "gates_exactly",
]
