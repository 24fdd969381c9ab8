"""Admission policies and their bindings: what they may say, in the order and words of Kubernetes 1.37."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.api.errors import (
    ErrorKind,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_many,
)
from kohort.api.meta import check_selector
from kohort.cel.syntax import RESERVED
from kohort.server.admission.policies import environment as env

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.admission.policies.environment import CompiledExpression, Environment

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_MUTABLE: Final = ("*", "CONNECT", "CREATE", "UPDATE")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_MOST_CONDITIONS: Final = 64
_MOST_ANNOTATIONS: Final = 20
_LONGEST_ANNOTATION: Final = 5 * 1024
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED: Final = RESERVED | {"true", "false", "null", "in"}
_NEITHER: Final = "validations or auditAnnotations must contain at least one item"
Block = Mapping[str, Any]


def policy(obj: Object, old: Object | None, *, mutating: bool) -> list[FieldError]:
    spec = obj.get("spec") or {}
    before = (old or {}).get("spec") or {}
    same = old is not None and all(spec.get(one) == before.get(one) for one in ("paramKind", "matchConditions"))
    params = spec.get("paramKind") is not None
    environment = env.Environment(params, composed=mutating or bool(spec.get("variables")))
    found = [*_choice(spec, "failurePolicy", ("Fail", "Ignore"))]
    if params:
        found += _param_kind(spec["paramKind"])
    found += _constraints(spec.get("matchConstraints"), mutating)
    if not same:
        found += match_conditions(spec.get("matchConditions") or (), params, "spec.matchConditions")
    for place, one in enumerate(spec.get("variables") or ()):
        found += _variable(one, environment, f"spec.variables[{place}]")
    return [*found, *(_mutations(spec, environment) if mutating else _validations(obj, spec, environment))]


def _choice(block: Block, name: str, accepted: Sequence[str]) -> Iterator[FieldError]:
    given = block.get(name)
    if not given:
        yield required(f"spec.{name}")
    elif given not in accepted:
        yield not_supported(f"spec.{name}", given, accepted)


def _param_kind(kind: Block) -> Iterator[FieldError]:
    path, given, name = "spec.paramKind", str(kind.get("apiVersion") or ""), str(kind.get("kind") or "")
    if not given:
        yield required(f"{path}.apiVersion")
    elif given.count("/") > 1:
        yield invalid(f"{path}.apiVersion", given, f"unexpected GroupVersion string: {given}")
    else:
        group, _, version = given.rpartition("/")
        if group and formats.problems(formats.subdomain, group):
            yield invalid(f"{path}.apiVersion", group, ",".join(formats.problems(formats.subdomain, group)))
        if not version:
            yield invalid(f"{path}.apiVersion", given, "version must be specified")
        elif formats.problems(formats.label_1035, version):
            yield invalid(f"{path}.apiVersion", version, ",".join(formats.problems(formats.label_1035, version)))
    if not name:
        yield required(f"{path}.kind")
    elif formats.problems(formats.label_1035, name.lower()):
        text = ",".join(formats.problems(formats.label_1035, name.lower()))
        yield invalid(f"{path}.kind", name, f"may have mixed case, but should otherwise match: {text}")


# ---- what they match


def _constraints(match: Block | None, mutating: bool) -> Iterator[FieldError]:
    path = "spec.matchConstraints"
    if match is None:
        yield required(path)
        return
    yield from _match_resources(match, path)
    if not match.get("resourceRules"):
        yield required(f"{path}.resourceRules")
    if mutating:
        yield from _only_writes(match, path)


def _only_writes(match: Block, path: str) -> Iterator[FieldError]:
    for rule in match.get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            if operation not in _MUTABLE:
                yield not_supported(f"{path}.resourceRules.operations", operation, _MUTABLE)


def _match_resources(match: Block, path: str) -> Iterator[FieldError]:
    if match.get("matchPolicy") not in ("Equivalent", "Exact"):
        yield not_supported(f"{path}.matchPolicy", match.get("matchPolicy"), ("Equivalent", "Exact"))
    for name in ("namespaceSelector", "objectSelector"):
        yield from check_selector(match.get(name), f"{path}.{name}")
    for name in ("resourceRules", "excludeResourceRules"):
        for place, rule in enumerate(match.get(name) or ()):
            yield from _rule(rule, f"{path}.{name}[{place}]")


def _rule(rule: Block, path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for place, name in enumerate(rule.get("resourceNames") or ()):
        at = f"{path}.resourceNames[{place}]"
        yield from (invalid(at, name, text) for text in formats.problems(formats.path_segment, name))
        if name in seen:
            yield duplicate(at, name)
        seen.add(name)
    operations = rule.get("operations") or []
    if not operations:
        yield required(f"{path}.operations")
    if len(operations) > 1 and "*" in operations:
        yield invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
    for place, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield not_supported(f"{path}.operations[{place}]", operation, _OPERATIONS)
    for name, words in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        given = rule.get(name) or []
        if not given:
            yield required(f"{path}.{name}")
        if len(given) > 1 and "*" in given:
            yield invalid(f"{path}.{name}", given, f"if '*' is present, must not specify other {words}")
    versions = rule.get("apiVersions") or ()
    yield from (required(f"{path}.apiVersions[{place}]") for place, one in enumerate(versions) if not one)
    yield from _resources(rule.get("resources") or [], f"{path}.resources")
    if rule.get("scope") not in (None, "*", "Cluster", "Namespaced"):
        yield not_supported(f"{path}.scope", rule["scope"], ("*", "Cluster", "Namespaced"))


def _resources(given: list[str], path: str) -> Iterator[FieldError]:
    if not given:
        yield required(path)
    all_of: set[str] = set()  # x of x/*
    in_all: set[str] = set()  # x of */x
    plain = False
    for place, one in enumerate(given):
        if not one:
            yield required(f"{path}[{place}]")
            continue
        resource, slash, sub = one.partition("/")
        if not slash:
            plain = one != "*"
            continue
        if resource in all_of:
            yield invalid(f"{path}[{place}]", one, f"if '{resource}/*' is present, must not specify {one}")
        if sub in in_all:
            yield invalid(f"{path}[{place}]", one, f"if '*/{sub}' is present, must not specify {one}")
        if sub == "*":
            all_of.add(resource)
        if resource == "*":
            in_all.add(sub)
    if len(given) > 1 and "*/*" in given:
        yield invalid(path, given, "if '*/*' is present, must not specify other resources")
    if "*" in given and plain:
        text = "if '*' is present, must not specify other resources without subresources"
        yield invalid(path, given, text)


# ---- expressions


def _wrong(found: CompiledExpression, path: str, shown: str) -> Iterator[FieldError]:
    if found.internal:
        yield FieldError(ErrorKind.INTERNAL, path, found.wrong)
    elif found.wrong:
        yield invalid(path, shown, found.wrong)


def match_conditions(given: Sequence[Block], params: bool, at: str) -> Iterator[FieldError]:
    """Of policies and of webhooks."""
    if len(given) > _MOST_CONDITIONS:
        yield too_many(at, len(given), _MOST_CONDITIONS)
    seen: set[str] = set()
    environment = env.Environment(params)
    for place, one in enumerate(given):
        path, name, text = f"{at}[{place}]", str(one.get("name") or ""), str(one.get("expression") or "").strip()
        if not text:
            yield required(f"{path}.expression")
        else:
            yield from _wrong(environment.compiled(text, env.CONDITION), f"{path}.expression", text)
        if not name:
            yield required(f"{path}.name")
            continue
        yield from (invalid(f"{path}.name", name, why) for why in formats.problems(formats.label_key, name))
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)


def _variable(one: Block, environment: Environment, path: str) -> Iterator[FieldError]:
    name, text = str(one.get("name") or ""), str(one.get("expression") or "")
    if not name.strip():
        yield required(f"{path}.name", "name is not specified")
    elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
        yield invalid(f"{path}.name", name, "must be a valid CEL identifier")
    if not text.strip():
        yield required(f"{path}.expression", "expression is not specified")
    else:
        yield from _wrong(environment.declare(name, text), f"{path}.expression", text)


def _validations(obj: Object, spec: Block, environment: Environment) -> Iterator[FieldError]:
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        yield required("spec.validations", _NEITHER)
        yield required("spec.auditAnnotations", _NEITHER)
        return
    for place, one in enumerate(spec.get("validations") or ()):
        yield from _validation(one, environment, f"spec.validations[{place}]")
    given = spec.get("auditAnnotations") or []
    if len(given) > _MOST_ANNOTATIONS:
        text = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        yield invalid("spec.auditAnnotations", given, text)
    seen: set[str] = set()
    for place, one in enumerate(given):
        path, key = f"spec.auditAnnotations[{place}]", str(one.get("key") or "")
        yield from _annotation(one, str((obj.get("metadata") or {}).get("name") or ""), environment, path)
        if key in seen:
            yield duplicate(f"{path}.key", key)
        seen.add(key)


def _validation(one: Block, environment: Environment, path: str) -> Iterator[FieldError]:
    text, message = str(one.get("expression") or ""), str(one.get("message") or "")
    told = str(one.get("messageExpression") or "")
    if not text.strip():
        yield required(f"{path}.expression", "expression is not specified")
    else:
        yield from _wrong(environment.compiled(text, env.CONDITION), f"{path}.expression", text)
    if told and not told.strip():
        yield invalid(f"{path}.messageExpression", told, "must be non-empty if specified")
    elif told:
        found = environment.compiled(told, env.MESSAGE, authorizer=False)
        yield from _wrong(found, f"{path}.messageExpression", told)
    if message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif re.search(r"[\n\r]", message.strip()):
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    if one.get("reason") is not None and one["reason"] not in _REASONS:
        yield not_supported(f"{path}.reason", one["reason"], _REASONS)


def _annotation(one: Block, policy_name: str, environment: Environment, path: str) -> Iterator[FieldError]:
    key, text = f"{policy_name}/{one.get('key') or ''}", str(one.get("valueExpression") or "")
    if policy_name:
        yield from (invalid(f"{path}.key", key, why) for why in formats.problems(formats.label_key, key))
    else:
        yield invalid(f"{path}.key", one.get("key") or "", "requires metadata.name be non-empty")
    if not text.strip():
        yield required(f"{path}.valueExpression", "valueExpression is not specified")
    elif len(text.strip().encode()) > _LONGEST_ANNOTATION:
        yield required(f"{path}.valueExpression", f"must not exceed {_LONGEST_ANNOTATION} bytes in length")
    else:
        yield from _wrong(environment.compiled(text.strip(), env.ANNOTATION), f"{path}.valueExpression", text)


def _mutations(spec: Block, environment: Environment) -> Iterator[FieldError]:
    given = spec.get("mutations") or ()
    if not given:
        yield required("spec.mutations", "mutations must contain at least one item")
    for place, one in enumerate(given):
        yield from _mutation(one, environment, f"spec.mutations[{place}]")
    yield from _choice(spec, "reinvocationPolicy", ("IfNeeded", "Never"))


def _mutation(one: Block, environment: Environment, path: str) -> Iterator[FieldError]:
    sort = str(one.get("patchType") or "")
    members = {"JSONPatch": ("jsonPatch", env.PATCH), "ApplyConfiguration": ("applyConfiguration", env.APPLY)}
    if not sort:
        yield required(f"{path}.patchType")
        return
    if sort not in members:
        yield not_supported(f"{path}.patchType", sort, sorted(members))
        return
    member, wanted = members[sort]
    if one.get(member) is None:
        yield required(f"{path}.{member}", f"must be specified when patchType is {sort}")
    else:
        text, at = str(one[member].get("expression") or "").strip(), f"{path}.{member}.expression"
        if not text:
            yield required(at)
        else:
            yield from _wrong(environment.compiled(text, wanted, patches=True), at, text)
    other = next(name for name, _ in members.values() if name != member)
    if one.get(other) is not None:
        yield invalid(f"{path}.{other}", f"{{{other}}}", f"must not be specified when patchType is {sort}")


# ---- bindings


def binding(obj: Object, *, mutating: bool) -> list[FieldError]:
    spec = obj.get("spec") or {}
    name, found = str(spec.get("policyName") or ""), list[FieldError]()
    if not name:
        found.append(required("spec.policyName"))
    found += [invalid("spec.policyName", name, why) for why in formats.problems(formats.subdomain, name) if name]
    if spec.get("paramRef") is not None:
        found += _param_ref(spec["paramRef"], "spec.paramRef")
    match = spec.get("matchResources")
    if match is not None:
        found += _match_resources(match, "spec.matchResources")
    if mutating:
        return [*found, *_only_writes(match or {}, "spec.matchResources")]
    return [*found, *_actions(spec.get("validationActions") or [], "spec.validationActions")]


def _param_ref(reference: Block, path: str) -> Iterator[FieldError]:
    name, selector = str(reference.get("name") or ""), reference.get("selector")
    both = bool(name) and selector is not None
    if name:
        yield from (invalid(f"{path}.name", name, why) for why in formats.problems(formats.path_segment, name))
    if both:
        yield forbidden(f"{path}.name", "name and selector are mutually exclusive")
    if selector is not None:
        yield from check_selector(selector, f"{path}.selector")
    if both:
        yield forbidden(f"{path}.selector", "name and selector are mutually exclusive")
    if not name and selector is None:
        yield required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction")
    if not action:
        yield required(f"{path}.parameterNotFoundAction")
    elif action not in ("Deny", "Allow"):
        yield not_supported(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow"))


def _actions(given: list[str], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for place, action in enumerate(given):
        if action not in _ACTIONS:
            yield not_supported(f"{path}[{place}]", action, _ACTIONS)
        if action in seen:
            yield duplicate(f"{path}[{place}]", action)
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        text = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        yield invalid(path, given, text)
    if not given:
        yield required(path)
