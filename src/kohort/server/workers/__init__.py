"""Worker processes for requests that take long: a large body, a large object, rules that cost much.

Nothing that takes a third of a second may run on the event loop that renews leases, answers probes and binds gangs. A
worker runs the same handlers as the server does; whatever they ask of the store, it asks the server, which answers
between two other things. So both ways have one result, letter by letter, and only the server ever writes.
"""
