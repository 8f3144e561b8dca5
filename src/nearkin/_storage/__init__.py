"""Saved artefacts: a folder of `config.json` and data files, written whole or not at all, and never a pickle."""

from nearkin._storage.arrays import pack_ids as pack_ids
from nearkin._storage.arrays import read_arrays as read_arrays
from nearkin._storage.arrays import unpack_ids as unpack_ids
from nearkin._storage.arrays import write_arrays as write_arrays
from nearkin._storage.files import open_file as open_file
from nearkin._storage.files import regular_file as regular_file
from nearkin._storage.folders import FORMAT_VERSION as FORMAT_VERSION
from nearkin._storage.folders import check_apart as check_apart
from nearkin._storage.folders import check_inputs as check_inputs
from nearkin._storage.folders import check_target as check_target
from nearkin._storage.folders import read_config as read_config
from nearkin._storage.folders import replacing_folder as replacing_folder
from nearkin._storage.folders import saving_folder as saving_folder
from nearkin._storage.locks import changing as changing
from nearkin._storage.manifest import checksums_of as checksums_of
from nearkin._storage.manifest import read_manifest as read_manifest
from nearkin._storage.manifest import without_verification as without_verification
from nearkin._storage.mapped import MappedRows as MappedRows
from nearkin._storage.reading import damage_named as damage_named
from nearkin._storage.reading import one_version as one_version
from nearkin._storage.replacing import is_workspace as is_workspace
from nearkin._storage.replacing import recover as recover
from nearkin._storage.replacing import replacing as replacing
from nearkin._storage.replacing import sweep as sweep
from nearkin._storage.stored import Stored as Stored
from nearkin._storage.stored import stored as stored
