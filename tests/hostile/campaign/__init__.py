"""The campaign of hostile models and failing machines: ``python -m tests.hostile.campaign``.

Each part is a module with a function that takes a number of cases and yields one `Outcome` for each; `PARTS` in
``__main__`` lists them. ``test_campaign`` runs a small share of each.
"""
