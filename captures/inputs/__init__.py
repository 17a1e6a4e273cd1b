"""Files, pipes and spools as streams of uncompressed bytes: the only file I/O of the package."""
