"""Reading signals and vectors."""

from nearkin.data.columns import read_column as read_column
from nearkin.data.columns import read_neighbors as read_neighbors
from nearkin.data.vectors import VectorFile as VectorFile
from nearkin.data.vectors import open_vectors as open_vectors
from nearkin.data.vectors import read_vectors as read_vectors
