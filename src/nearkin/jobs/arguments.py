"""Types of the jobs' arguments, each with the word for its value in the help of a command."""

from typing import Annotated, TypeAlias

from nearkin._fields import StrPath

File: TypeAlias = Annotated[StrPath, "FILE"]
"""A file to read, or one to write if it is `out`."""

Folder: TypeAlias = Annotated[StrPath, "DIR"]
"""A folder that nearkin wrote, or writes."""

Place: TypeAlias = Annotated[StrPath, "DIR|FILE"]
"""A folder or a file."""

Column: TypeAlias = Annotated[str, "COLUMN"]
"""The name of a column of a table."""

Names: TypeAlias = Annotated[list[str], "NAME"]
"""Words that are typed one after the other: ids, folders."""
