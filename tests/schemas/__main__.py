from tests.schemas import BUILDERS, file_of, text_of

for kind in BUILDERS:
    file_of(kind).write_text(text_of(kind), encoding="utf-8")
