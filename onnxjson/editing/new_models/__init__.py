"""New models: of one operator, built from its schema, and components that are ready to use.

Here: specifications of inputs, subgraphs, example calls of operators that need more than their schema states, types of
outputs, and the components as texts in ``components``.

Not here: changes of a model that exists; those are edits.

Read first: `operator_model` (the entry, and components), `slot_types` (inputs, and types of outputs).
"""
