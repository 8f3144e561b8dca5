"""Collect comparisons from people: a page that asks, a file that keeps every answer, a model that chooses questions."""

from nearkin.web.ask.app import Texts as Texts
from nearkin.web.ask.app import ask_app as ask_app
from nearkin.web.ask.items import Items as Items
from nearkin.web.ask.items import read_items as read_items
from nearkin.web.ask.job import collect as collect
from nearkin.web.ask.job import read_catch as read_catch
from nearkin.web.ask.job import read_text as read_text
from nearkin.web.ask.survey import Plan as Plan
from nearkin.web.ask.survey import Survey as Survey
