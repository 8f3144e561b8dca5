"""Export of a finished index to engines that scale."""

from nearkin._lazy import lazily
from nearkin.export.batch_encoder import BatchEncoder as BatchEncoder
from nearkin.export.source import Source as Source
from nearkin.export.target import TARGETS as TARGETS
from nearkin.export.target import Check as Check
from nearkin.export.target import RecallTooLowError as RecallTooLowError
from nearkin.export.target import Target as Target
from nearkin.export.target import export_index as export_index
from nearkin.export.target import make_target as make_target

lazily(__name__, __file__)
