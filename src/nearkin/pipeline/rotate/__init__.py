"""`nearkin rotate`: vectors turned for the codes of another engine, and its queries with them."""

from nearkin.pipeline.rotate.engines import ENGINES as ENGINES
from nearkin.pipeline.rotate.rotate import rotate_file as rotate_file
from nearkin.pipeline.rotate.rotate import rotate_with as rotate_with
