"""Spark as a driver of `analyzer.pipeline`: the only home of pyspark. `engine` runs a job,
`session` starts Spark when no session is active."""
