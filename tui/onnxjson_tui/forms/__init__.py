"""Forms of edits without their screen: what stands in the fields, what may stand there, what it would do."""
