"""Collect comparisons from people: a page of questions, a file with every answer, a model that chooses questions."""

from nearkin._lazy import lazily
from nearkin.web.ask.plan import Plan as Plan
from nearkin.web.ask.plan import read_study as read_study
from nearkin.web.ask.questions import Items as Items
from nearkin.web.ask.questions import read_catch as read_catch
from nearkin.web.ask.questions import read_items as read_items
from nearkin.web.ask.server import ask_app as ask_app
from nearkin.web.ask.server import collect as collect
from nearkin.web.ask.survey import Survey as Survey

lazily(__name__, __file__)
