"""Protobuf: the schema language, messages' bytes, and their JSON form.

Knows no registry, no topic and no framing: text of schemas and bytes of one message come in.
"""
