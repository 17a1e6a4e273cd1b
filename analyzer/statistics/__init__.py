"""Statistics over exchanges: accumulators that merge, so that one definition serves the commands,
the screens, the report and the batch pipeline.

`add` an exchange, `merge` another part, `rows` for the table; `dump` and `load` carry the state.
"""
