"""The display-filter language: syntax, fields, meaning, completion. `language` is the way in.

Evaluates nothing itself: `backends` do.
"""
