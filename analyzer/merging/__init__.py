"""What accumulators are made of: measures that merge by rule, bounded keys, bounded events.

Each has `merge`, `dump` (the state as JSON) and `load`, which takes over what `dump` gave into an
empty one. What is made of declared fields (`Measures`) has them from these.

Everything here commutes: whatever the order in which exchanges come and parts are merged, the
result is the same, limits included. A limit on keys keeps those with the smallest hashes, a limit
on events the latest ones; whatever a part has dropped, the whole would have dropped, too.
"""
