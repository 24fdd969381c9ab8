"""A subset of the Common Expression Language, as far as rules of CRDs commonly use it.

In: literals, lists, maps, member and index access, arithmetic and comparison of numbers and strings, `in`, `&&`, `||`,
`!`, `?:`, has(), all(), exists(), exists_one(), filter(), map(), size(), string(), int(), double(), bool(); of strings
startsWith, endsWith, contains, matches, lowerAscii, upperAscii, trim, split, join, replace, substring, indexOf; of
lists min, max, sum, isSorted. Optional oldSelf: hasValue(), value(), orValue().

Out: timestamps, durations, quantities, URLs, IPs, formats, protobuf. `parse` raises UnsupportedError for what it does
not know, so that nothing is half understood; a rule that does not parse is not enforced, and its author is told.
"""

from kohort.server.crd.cel.run import CelError, evaluate
from kohort.server.crd.cel.syntax import CelSyntaxError, Node, UnsupportedError, names, parse

__all__ = ["CelError", "CelSyntaxError", "Node", "UnsupportedError", "evaluate", "names", "parse"]
