"""TCP reassembly: segments in, chunks and gaps out. State without I/O."""
