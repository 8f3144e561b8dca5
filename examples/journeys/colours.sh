# A map of colours by six raters. answers.csv: rater, ref, left, right, choice; some cells are empty, one rater reversed all.
nearkin embed answers.csv --missing drop --dim auto --out map
nearkin similar map red -k 3
nearkin report map
