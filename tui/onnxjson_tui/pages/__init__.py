"""What the drawer at the bottom shows: one module a page."""
