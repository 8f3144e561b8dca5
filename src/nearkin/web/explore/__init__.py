"""View an index: a map of its vectors, and for each vector the neighbours that its codes find and miss."""

from nearkin._lazy import lazily
from nearkin.web.explore.collection import Collection as Collection
from nearkin.web.explore.collection import open_collection as open_collection
from nearkin.web.explore.server import Columns as Columns
from nearkin.web.explore.server import Explorer as Explorer
from nearkin.web.explore.server import explore_app as explore_app
from nearkin.web.explore.server import serve as serve
from nearkin.web.explore.server import write_page as write_page

lazily(__name__, __file__)
