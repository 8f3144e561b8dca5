# A map of colours by six raters. answers.csv: rater, ref, left, right, choice; -99 is no answer, one rater reversed all.
nearkin embed answers.csv --missing drop --raters turn --dim auto --out map
nearkin similar map red -k 3
nearkin report map
