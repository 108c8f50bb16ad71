"""The basis of every screen: terminal, background jobs, dialogs, the base of full screens, the workbench itself.

Here: what screens, pages and actions import, including `Workbench`, which `workbench.app` gives actions and pages. Not
here: screens for one purpose (`onnxjson_tui.screens`).

Read first: `keyed` (the base of full screens), `workbench` (the workbench, on `graph_screen`), `jobs` (threads).
"""
