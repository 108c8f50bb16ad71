"""The basis of every screen: terminal, background jobs, dialogs, the base of full screens, the workbench itself.

Here: what screens, pages and actions import, including `Bench`, to which `workbench.app` adds actions and pages. Not
here: screens for one purpose (`onnxjson_tui.screens`).

Read first: `keyed` (the base of full screens), `bench` (the workbench, on `graph_screen`), `jobs` (work in threads).
"""
