"""Request logs in, exchanges out; one exchange where a capture of the same minutes has it as well.
It does not know how lines are written (`analyzer.requestlog`)."""
