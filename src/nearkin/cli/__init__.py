"""The command line: parse, call, print. A command is a job, and one word in `app.py`."""

from nearkin._lazy import lazily
from nearkin.cli.app import main as main

lazily(__name__, __file__)
