"""The pages that jobs end in: drawing alone, from the records that jobs leave."""

from nearkin.pipeline.pages.demo import demo_page as demo_page
from nearkin.pipeline.pages.demo import save_demo as save_demo
from nearkin.pipeline.pages.folder import comparison_page as comparison_page
from nearkin.pipeline.pages.folder import folder_page as folder_page
