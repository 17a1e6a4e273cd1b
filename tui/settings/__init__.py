"""What users keep: settings, colours, marks and comments."""
