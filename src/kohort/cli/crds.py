"""`kohort crds`: the definitions of the kinds that Kubernetes does not have, for kubectl to apply."""

from __future__ import annotations

from kohort.api.crd import crds
from kohort.cli.common import UsageError, as_json, choice, friendly, write
from kohort.manifest import dump


@friendly
def run(names: list[str], output: str) -> int:
    choice("--output", output, ("yaml", "json", "name"))
    every = {one["metadata"]["name"]: one for one in crds()}
    wanted = {name: one for name, one in every.items() if not names or _meant(one, names)}
    unknown = [name for name in names if not any(_meant(one, [name]) for one in every.values())]
    if unknown:
        accepted = ", ".join(f"{one['spec']['names']['kind']}" for one in every.values())
        raise UsageError(f"{', '.join(unknown)}: not known; accepted are {accepted} (or their groups)")
    if output == "name":
        write("\n".join(wanted))
    elif output == "json":
        write(as_json({"apiVersion": "v1", "kind": "List", "items": list(wanted.values())}))
    else:
        write("---\n".join(dump(one) for one in wanted.values()))
    return 0


def _meant(one: dict[str, object], names: list[str]) -> bool:
    spec = one["spec"]
    assert isinstance(spec, dict)
    words = {spec["group"], spec["names"]["kind"], spec["names"]["plural"], one["metadata"]["name"]}  # type: ignore[index]
    lower = {str(word).lower() for word in words}
    return any(name.lower() in lower for name in names)
