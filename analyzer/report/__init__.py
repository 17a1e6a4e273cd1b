"""The report: one file that answers the usual questions about a capture, for tickets and reviews.

`collect` counts with the accumulators of the commands, `sections` selects the contents, `page` and
`markdown` write them; `charts` draws.
"""
