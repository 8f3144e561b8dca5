"""`nearkin compress`: a file of vectors to an index of codes, by one process or by several, restartable."""

from nearkin.pipeline.compress.compress import compress_file as compress_file
from nearkin.pipeline.compress.work_folder import WorkFolder as WorkFolder
