"""Data of users: settings, colours, marks and comments."""
