"""Annotations that a group and its pods have, and who has them: templates of pods are where most workloads can say
something, for their groups are made by others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kohort.scheduler.model import shown
from kohort.scheduler.trees import Group


def said(group: Group, is_read: Callable[[str], bool]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Different annotations, and who has them: the group first."""
    spec = group.spec
    if spec is not None and (own := {key: text for key, text in spec.annotations.items() if is_read(key)}):
        yield f"{spec.kind} {shown(group.key)}", own
    if not group.annotated:
        return
    seen: list[Mapping[str, str]] = []
    for member in (*group.pending.values(), *group.placed.values()):
        having = member.pod.metadata.annotations
        if having and (asked := {key: having[key] for key in having if is_read(key)}) and asked not in seen:
            seen.append(asked)
            yield f"Pod {member.pod.key}", asked
