"""All exchanges read so far as columns, for screens and for filters over a million rows."""
