"""Display filters, the one way in: text -> predicate over exchanges. The language is in
docs/filter.md.

filter_lexer -> filter_syntax (tree) -> filter_bind (fields, values) -> a back end: filter_exchange
answers for one exchange.
"""

from __future__ import annotations

from analyzer.filter_bind import Bound, bind, cost
from analyzer.filter_errors import FilterError
from analyzer.filter_exchange import Filter, compile_filter
from analyzer.filter_syntax import Tree, parse

__all__ = ["Bound", "Filter", "FilterError", "Tree", "bind", "compile_filter", "cost", "parse"]
