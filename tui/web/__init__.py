"""The terminal UI in a browser: `open --web`. Home of aiohttp and of textual-serve's page."""
