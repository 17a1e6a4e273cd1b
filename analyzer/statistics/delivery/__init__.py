"""The delivery audit: what each group fetched, committed, skipped and read again."""
