"""The package as a user gets it; ``python -m tests.packaging``."""
