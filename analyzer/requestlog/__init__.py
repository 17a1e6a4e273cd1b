"""Request logs of brokers: lines out of what surrounds them, completed requests out of lines.

Stateless but for parts of lines that wait for the rest. Knows neither files, exchanges nor rows.
"""
