"""Captures for assistants: a Model Context Protocol server on stdin and stdout.

`toolbox` has the tools without the protocol, `server` the protocol, `command` the command.
"""
