"""Whole jobs, from files to a saved index and its report: a folder or file a command. Names are loaded on first use."""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "BatchEncoder": "nearkin.pipeline.encode",
        "CodeSize": "nearkin.pipeline.methods",
        "PeerError": "nearkin._distributed",
        "comparison_page": "nearkin.pipeline.pages",
        "search_rows": "nearkin.pipeline.evaluate",
        "SPLITS": "nearkin.pipeline.judging",
        "Steps": "nearkin.pipeline.steps",
        "add_rows": "nearkin.pipeline.change",
        "remove_rows": "nearkin.pipeline.change",
        "update_rows": "nearkin.pipeline.change",
        "check_folder": "nearkin.pipeline.check",
        "check_output": "nearkin.pipeline.outputs",
        "check_hits_path": "nearkin.pipeline.hits",
        "choose_metric": "nearkin.pipeline.methods",
        "compress_file": "nearkin.pipeline.compress",
        "demo_page": "nearkin.pipeline.pages",
        "embed_comparisons": "nearkin.pipeline.embed",
        "embed_interactions": "nearkin.pipeline.embed",
        "embed_signals": "nearkin.pipeline.embed",
        "encode_shards": "nearkin.pipeline.encode",
        "evaluate_folder": "nearkin.pipeline.evaluate",
        "export_folder": "nearkin.pipeline.export",
        "find_method": "nearkin.pipeline.methods",
        "folder_page": "nearkin.pipeline.pages",
        "held_out_in_words": "nearkin.pipeline.judging",
        "join_processes": "nearkin._distributed",
        "methods": "nearkin.pipeline.methods",
        "open_given": "nearkin.pipeline.embedding_folder",
        "open_index": "nearkin.pipeline.embedding_folder",
        "open_queries": "nearkin.pipeline.embedding_folder",
        "read_history": "nearkin.pipeline.embedding_folder",
        "read_ids": "nearkin.pipeline.embedding_folder",
        "recommend_folder": "nearkin.pipeline.recommend",
        "similar_folder": "nearkin.pipeline.recommend",
        "words_of": "nearkin.pipeline.embedding_folder",
        "rows_in": "nearkin.pipeline.folder",
        "size_in_words": "nearkin.pipeline.folder",
        "rotate_file": "nearkin.pipeline.rotate",
        "rotate_with": "nearkin.pipeline.rotate",
        "run_demo": "nearkin.pipeline.demo",
        "save_demo": "nearkin.pipeline.pages",
        "search_in_batches": "nearkin.pipeline.evaluate",
        "search_left": "nearkin.pipeline.left_side",
        "train_index": "nearkin.pipeline.train",
        "write_hits": "nearkin.pipeline.hits",
    },
)

if TYPE_CHECKING:
    from nearkin._distributed import PeerError as PeerError
    from nearkin._distributed import join_processes as join_processes
    from nearkin.pipeline.change import add_rows as add_rows
    from nearkin.pipeline.change import remove_rows as remove_rows
    from nearkin.pipeline.change import update_rows as update_rows
    from nearkin.pipeline.check import check_folder as check_folder
    from nearkin.pipeline.compress import compress_file as compress_file
    from nearkin.pipeline.demo import run_demo as run_demo
    from nearkin.pipeline.embed import embed_comparisons as embed_comparisons
    from nearkin.pipeline.embed import embed_interactions as embed_interactions
    from nearkin.pipeline.embed import embed_signals as embed_signals
    from nearkin.pipeline.embedding_folder import open_given as open_given
    from nearkin.pipeline.embedding_folder import open_index as open_index
    from nearkin.pipeline.embedding_folder import open_queries as open_queries
    from nearkin.pipeline.embedding_folder import read_history as read_history
    from nearkin.pipeline.embedding_folder import read_ids as read_ids
    from nearkin.pipeline.embedding_folder import words_of as words_of
    from nearkin.pipeline.encode import BatchEncoder as BatchEncoder
    from nearkin.pipeline.encode import encode_shards as encode_shards
    from nearkin.pipeline.evaluate import evaluate_folder as evaluate_folder
    from nearkin.pipeline.evaluate import search_in_batches as search_in_batches
    from nearkin.pipeline.evaluate import search_rows as search_rows
    from nearkin.pipeline.export import export_folder as export_folder
    from nearkin.pipeline.folder import rows_in as rows_in
    from nearkin.pipeline.folder import size_in_words as size_in_words
    from nearkin.pipeline.hits import check_hits_path as check_hits_path
    from nearkin.pipeline.hits import write_hits as write_hits
    from nearkin.pipeline.judging import SPLITS as SPLITS
    from nearkin.pipeline.judging import held_out_in_words as held_out_in_words
    from nearkin.pipeline.left_side import search_left as search_left
    from nearkin.pipeline.methods import CodeSize as CodeSize
    from nearkin.pipeline.methods import choose_metric as choose_metric
    from nearkin.pipeline.methods import find_method as find_method
    from nearkin.pipeline.methods import methods as methods
    from nearkin.pipeline.outputs import check_output as check_output
    from nearkin.pipeline.pages import comparison_page as comparison_page
    from nearkin.pipeline.pages import demo_page as demo_page
    from nearkin.pipeline.pages import folder_page as folder_page
    from nearkin.pipeline.pages import save_demo as save_demo
    from nearkin.pipeline.recommend import recommend_folder as recommend_folder
    from nearkin.pipeline.recommend import similar_folder as similar_folder
    from nearkin.pipeline.rotate import rotate_file as rotate_file
    from nearkin.pipeline.rotate import rotate_with as rotate_with
    from nearkin.pipeline.steps import Steps as Steps
    from nearkin.pipeline.train import train_index as train_index
