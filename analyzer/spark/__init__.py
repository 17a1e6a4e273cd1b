"""Spark as a driver of `analyzer.pipeline`: the only home of pyspark. `engine` is what runs a job,
`session` what starts Spark where nobody else did."""
