"""Admission policies: rules in CEL that are evaluated in the server itself (admissionregistration.k8s.io).

`source` keeps the policies and bindings that are stored, compiled; `environment` and `evaluate` are their expressions;
`validating` and `mutating` are the plugins, `patches` what a mutation does to an object; `rules` validates policies,
`type_checking` their expressions against the schemas of what they match. Nothing of the language is loaded before the
first policy is there.
"""
