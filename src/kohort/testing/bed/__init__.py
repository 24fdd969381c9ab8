"""A test bed: real etcd and real Kubernetes of one minor version, on loopback, without containers.

    with Bed(kubernetes="1.37", with_=("kcm", "scheduler")) as bed:
        bed.client().get("/version")

Where Kohort and real Kubernetes disagree, real Kubernetes is right; this package is how we ask it.
"""

from kohort.testing.bed.assets import Assets, AssetsMissingError, ensure, find
from kohort.testing.bed.bed import Bed, BedError
from kohort.testing.bed.versions import MINORS, gates_exactly

__all__ = ["MINORS", "Assets", "AssetsMissingError", "Bed", "BedError", "ensure", "find", "gates_exactly"]
