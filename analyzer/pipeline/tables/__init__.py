"""The tables: their schemas, their rows, and names and numbers that come late."""
