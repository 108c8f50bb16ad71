"""Environment of the screens: terminal, driver, background jobs, external editor, switching between models.

Here: what a screen needs from its program. Not here: screens, pages and actions, which import this room.

Read first: `jobs` (work in threads), `terminal` (capabilities of the terminal), `entering` (opening another model).
"""
