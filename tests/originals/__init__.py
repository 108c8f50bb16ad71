"""Other tools beside onnxjson: the same jobs, their results compared, and a table of rows.

``python -m tests.originals --install`` makes environments with the tools; ``python -m tests.originals`` runs the jobs
and prints the table. No test of this folder runs one of the tools.

Read `jobs` first: what each program is given, and what must come out; `option_jobs` and `export_jobs` have more.
`judging` judges one result, `comparing` compares two, `environment` has the tools.
"""
