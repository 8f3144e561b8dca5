"""The finished index into engines that scale."""

from nearkin.export.batch_encoder import BatchEncoder as BatchEncoder
from nearkin.export.export import export_index as export_index
from nearkin.export.registry import TARGETS as TARGETS
from nearkin.export.registry import make_target as make_target
from nearkin.export.self_check import Check as Check
from nearkin.export.self_check import RecallTooLowError as RecallTooLowError
from nearkin.export.source import Source as Source
from nearkin.export.target import Target as Target
