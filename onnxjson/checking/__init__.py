"""Judging models: cost, lint rules, policies with budgets, and the gate that decides about a change.

Here: what a model costs (`cost`, from the table of `formulas`), the rules and the walk that runs them (`catalogue`,
`linting`), policies and their budgets, and the comparison of findings with those of a base.

Not here: the structure that every model must have (`onnxjson.model.structure`), forms of findings
(`onnxjson.rendering`), revisions (`onnxjson.git`).

Read first: `cost` (one walk over a model), `catalogue` (all rules in one table), `judging` (a policy on a model).
"""
