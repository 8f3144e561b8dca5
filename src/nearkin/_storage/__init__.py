"""Saved artefacts: a folder of `config.json` and data files, written whole or not at all, and never a pickle."""

from nearkin._storage.arrays import MappedRows as MappedRows
from nearkin._storage.arrays import SavedArrays as SavedArrays
from nearkin._storage.arrays import pack_ids as pack_ids
from nearkin._storage.arrays import read_arrays as read_arrays
from nearkin._storage.arrays import read_saved as read_saved
from nearkin._storage.arrays import unpack_ids as unpack_ids
from nearkin._storage.arrays import write_arrays as write_arrays
from nearkin._storage.arrays import write_rows as write_rows
from nearkin._storage.atomic import changing as changing
from nearkin._storage.atomic import is_workspace as is_workspace
from nearkin._storage.atomic import recover as recover
from nearkin._storage.atomic import replacing as replacing
from nearkin._storage.atomic import sweep as sweep
from nearkin._storage.folders import check_apart as check_apart
from nearkin._storage.folders import check_inputs as check_inputs
from nearkin._storage.folders import check_space as check_space
from nearkin._storage.folders import check_target as check_target
from nearkin._storage.folders import damage_named as damage_named
from nearkin._storage.folders import one_version as one_version
from nearkin._storage.folders import read_config as read_config
from nearkin._storage.folders import replacing_folder as replacing_folder
from nearkin._storage.folders import saving_folder as saving_folder
from nearkin._storage.manifest import open_file as open_file
from nearkin._storage.manifest import read_manifest as read_manifest
from nearkin._storage.manifest import regular_file as regular_file
from nearkin._storage.manifest import verification as verification
