"""Pseudonyms for sensitive names: topics, clients, hosts, parts of paths. Callers decide which
values are names."""
