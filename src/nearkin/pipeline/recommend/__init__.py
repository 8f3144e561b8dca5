"""`nearkin recommend` and `nearkin similar`: answers of a folder of pairs, for one or for all."""

from nearkin.pipeline.recommend.recommend import recommend_folder as recommend_folder
from nearkin.pipeline.recommend.similar import similar_folder as similar_folder
