"""Which code is the cheapest that keeps enough neighbours: diagnose the vectors, race methods and sizes, choose."""

from nearkin.pipeline.sweep.answer import Answer as Answer
from nearkin.pipeline.sweep.choose import Choice as Choice
from nearkin.pipeline.sweep.choose import choose as choose
from nearkin.pipeline.sweep.diagnose import Diagnosis as Diagnosis
from nearkin.pipeline.sweep.diagnose import diagnose as diagnose
from nearkin.pipeline.sweep.page import sweep_page as sweep_page
from nearkin.pipeline.sweep.race import METHODS as METHODS
from nearkin.pipeline.sweep.race import Race as Race
from nearkin.pipeline.sweep.sweep import Sweep as Sweep
from nearkin.pipeline.sweep.sweep import sweep as sweep
from nearkin.pipeline.sweep.trial import Bench as Bench
from nearkin.pipeline.sweep.trial import Code as Code
from nearkin.pipeline.sweep.trial import Trial as Trial
