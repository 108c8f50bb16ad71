"""The one kind of change: a `Patch`, exact, invertible, serialisable."""
