"""Models and what differs between them as text, tables and data; nothing in here moves a terminal's cursor."""
