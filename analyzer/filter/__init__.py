"""The display-filter language: syntax, fields, meaning, completion. Import `language`.

Filters are evaluated by `backends` only.
"""
