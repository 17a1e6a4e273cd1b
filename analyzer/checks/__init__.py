"""The output of a check: findings as blocks of text and as the reports of CI systems, and which of
them were known before. Reads no capture, and decides nothing about exit codes of other commands.

    judging.judged(causes, known, fail_on)    # each cause: is it known, does it fail the run
    baseline.read_baseline(path)              # keys of findings that are known
    blocks.blocks(causes, times, width, source)    # for people
    junit.junit(...), sarif.sarif(...), workflow.commands(...)
"""
