"""Bytes of one frame <-> values. Stateless; knows nothing of files, connections or time.

One declaration per message (`messages/`), one layout per version (`layout`), and from it the
reader, the writer, the reference Struct, the tree, the grammar and the JSON form.
"""
