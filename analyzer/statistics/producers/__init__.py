"""Idempotent and transactional producers: sequences, epochs, transactions."""
