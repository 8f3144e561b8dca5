"""Reading signals and vectors. Names are loaded on first use."""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

if TYPE_CHECKING:
    from nearkin.data.accompanying import read_column as read_column
    from nearkin.data.accompanying import read_features as read_features
    from nearkin.data.accompanying import read_judgements as read_judgements
    from nearkin.data.accompanying import read_neighbors as read_neighbors
    from nearkin.data.comparisons import comparisons_from_array as comparisons_from_array
    from nearkin.data.comparisons import comparisons_from_names as comparisons_from_names
    from nearkin.data.comparisons import read_comparisons as read_comparisons
    from nearkin.data.comparisons.reading import describe as describe
    from nearkin.data.comparisons.votes import comparisons_from_vectors as comparisons_from_vectors
    from nearkin.data.comparisons.votes import split_comparisons as split_comparisons
    from nearkin.data.files import text_options as text_options
    from nearkin.data.formats.binary import open_array as open_array
    from nearkin.data.interactions import Parts as Parts
    from nearkin.data.interactions import planted_interactions as planted_interactions
    from nearkin.data.interactions import read_interactions as read_interactions
    from nearkin.data.interactions import split_by_time as split_by_time
    from nearkin.data.interactions import split_given as split_given
    from nearkin.data.interactions import split_leave_last_out as split_leave_last_out
    from nearkin.data.interactions import split_random as split_random
    from nearkin.data.tables import read_table as read_table
    from nearkin.data.vectors import VectorFile as VectorFile
    from nearkin.data.vectors import open_vectors as open_vectors
    from nearkin.data.vectors import read_vectors as read_vectors

lazily(__name__, __file__)
