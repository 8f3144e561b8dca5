"""The papers' tables and figures beside ours: one module a paper, one function a table or figure."""
