"""The core group: the Pod, and the pod template rules that every workload kind shares."""

from __future__ import annotations

from typing import Final

from kohort.api.core.pod import POD
from kohort.api.core.pod_template import check_pod_template
from kohort.api.kind import Kind

KINDS: Final[tuple[Kind, ...]] = (POD,)

__all__ = ["KINDS", "check_pod_template"]
