"""See an index: a map of its rows, and for each row what its codes keep and lose."""

from nearkin.web.explore.app import explore_app as explore_app
from nearkin.web.explore.explorer import Explorer as Explorer
from nearkin.web.explore.job import explore as explore
from nearkin.web.explore.job import serve as serve
from nearkin.web.explore.job import write_page as write_page
from nearkin.web.explore.measures import Measures as Measures
from nearkin.web.explore.opening import collect_rows as collect_rows
from nearkin.web.explore.opening import open_collection as open_collection
from nearkin.web.explore.swept import read_sweep as read_sweep
