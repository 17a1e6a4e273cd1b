"""Coordinators of a served capture: groups, offsets, share groups, producers."""
