"""The Common Expression Language as Kubernetes 1.37 has it for rules of CRDs.

`syntax` makes a tree of a text, `check` finds its types from a schema (`declare`), `estimate` says what it may cost at
most, `run` evaluates it and counts what it did cost. Functions are declared once, in `functions.TABLE`, by libraries:
`lib_core` (the language), `lib_strings` (strings, regular expressions), `lib_lists` (lists, sets, optional values),
`lib_kubernetes` (quantities, versions, formats), `lib_authorizer`, `urls` (URLs, IPs, networks). Object{} and
JSONPatch{} are for mutations of admission policies only, authorizer is a variable of admission policies only. Not
there, as on a server: `cel.bind`, `math`, base64.
"""
