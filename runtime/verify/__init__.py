"""Checks of task graphs before anything runs (docs/verify.md)."""
