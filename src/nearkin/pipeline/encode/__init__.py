"""`nearkin encode`: many files of vectors to files of codes, and the same batch by batch for other engines."""

from nearkin.pipeline.encode.batch_encoder import BatchEncoder as BatchEncoder
from nearkin.pipeline.encode.shards import encode_shards as encode_shards
