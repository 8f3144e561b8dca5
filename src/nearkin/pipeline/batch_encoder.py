"""Where `BatchEncoder` used to stand: encoders that were pickled, as Ray and Spark do, name this module."""

from nearkin.pipeline.encode.batch_encoder import BatchEncoder as BatchEncoder
