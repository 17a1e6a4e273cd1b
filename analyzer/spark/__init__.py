"""Spark as a driver of `analyzer.pipeline`: the only home of pyspark. `conversion` makes tables of
inputs, on Spark or without it, `engine` runs a job, `session` starts Spark when no session is
active."""
