"""What Python programs use of kafkascope: captures, messages, proxies and brokers as objects.

`import kafkascope` gives its names, each loaded when it is first used; nothing else is promised to
others (docs/library.md). Knows nothing of commands, options and terminals.
"""
