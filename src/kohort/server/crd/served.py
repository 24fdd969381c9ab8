"""What stored definitions stand for: the resource of CustomResourceDefinitions itself, and those that each defines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.server import storage_codec
from kohort.server.crd import accepted_names, definition, resources, shipped

if TYPE_CHECKING:
    from kohort.api.errors import FieldError
    from kohort.api.kind import Context, Object
    from kohort.server.crd.definition import Native
    from kohort.server.crd.shipped import Shipped
    from kohort.server.resources import Resource
    from kohort.server.store.records import Item


def definitions(found: Resource, native: Native) -> Resource:
    """The resource of definitions, with all of their rules. `native`: what they may not take the place of."""

    def validate(crd: Object, ctx: Context) -> list[FieldError]:
        return [*definition.validate(crd, ctx), *native.errors(crd)]

    def validate_update(new: Object, old: Object, ctx: Context) -> list[FieldError]:
        known = {error.field for error in native.errors(old)}  # from before; it is not served
        fresh = [error for error in native.errors(new) if error.field not in known]
        return [*definition.validate_update(new, old, ctx), *fresh]

    return resources.with_rules(
        found,
        default=definition.default,
        validate=validate,
        validate_update=validate_update,
        first_status=definition.first_status,
        warn=definition.warn,
        needs_version=True,
        counts_changes=True,
    )


def shipped_in_order(item: Item) -> tuple[Object, Shipped] | None:
    """A definition of ours that is served as it is, without a look at its schemas; None: any other."""
    ours, stored = shipped.shipped().get(item.name), shipped.read(item.value)
    if ours is None or stored.spec != ours.spec:
        return None
    crd = stored.object(ours.outline)
    meta, accepted = crd["metadata"], crd["status"].get("acceptedNames") or {}
    named = definition.is_true(crd, "NamesAccepted") and definition.is_true(crd, "Established")
    if meta.get("deletionTimestamp") or accepted_names.CLEANUP not in (meta.get("finalizers") or []) or not named:
        return None
    if {name: value for name, value in ours.outline["names"].items() if value} != accepted:
        return None
    return crd, ours


def resources_of(own: Resource, item: Item, native: Native, *, own_rules: bool) -> list[Resource]:
    """The resources of a stored definition. `own`: that of definitions; `own_rules`: as of DefinitionController."""
    found = shipped_in_order(item) if own_rules else None
    if found is not None:
        made = resources.resources_of(*found)
    else:
        crd = storage_codec.load(own, item)
        made = resources.resources_of(crd, own_rules=own_rules) if definition.is_true(crd, "Established") else []
    return [one for one in made if not native.has(one)]
