"""JSON by schema: text with exact numbers and places, and whether a value fits its schema.

Knows no registry, no topic and no framing: text of schemas and bytes of one value come in.
"""
