"""Models with known differences, and the judging of what a diff finds in them."""
