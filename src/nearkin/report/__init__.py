"""Self-contained HTML reports: a page is a list of sections, and a section is a title and HTML made by `page`."""

from nearkin._lazy import lazily
from nearkin.report.page import Page as Page
from nearkin.report.page import Section as Section

lazily(__name__, __file__)
