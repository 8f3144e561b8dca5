"""Whole jobs, from files to a saved index and its report; the command line is a thin layer over these."""

from nearkin._distributed import PeerError as PeerError
from nearkin._distributed import joined as joined
from nearkin.pipeline import sweep as sweep
from nearkin.pipeline.batch_encoder import BatchEncoder as BatchEncoder
from nearkin.pipeline.bulk import encode_shards as encode_shards
from nearkin.pipeline.check import check_folder as check_folder
from nearkin.pipeline.compress import compress_file as compress_file
from nearkin.pipeline.demo import run_demo as run_demo
from nearkin.pipeline.demo_page import demo_page as demo_page
from nearkin.pipeline.evaluate import search_in_batches as search_in_batches
from nearkin.pipeline.evaluate_folder import evaluate_folder as evaluate_folder
from nearkin.pipeline.export_folder import export_folder as export_folder
from nearkin.pipeline.folder_page import folder_page as folder_page
from nearkin.pipeline.hits import check_hits_path as check_hits_path
from nearkin.pipeline.hits import write_hits as write_hits
from nearkin.pipeline.left_side import search_left as search_left
from nearkin.pipeline.methods import CodeSize as CodeSize
from nearkin.pipeline.methods import choose_metric as choose_metric
from nearkin.pipeline.methods import find_method as find_method
from nearkin.pipeline.methods import methods as methods
from nearkin.pipeline.steps import Steps as Steps
from nearkin.pipeline.train import train_index as train_index
