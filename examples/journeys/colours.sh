# A map of colours by six raters. answers.csv: rater, ref, left, right, choice; -99 is no answer, one rater reversed all.
nearkin embed answers.csv --missing drop --reversed turn --dim auto --next-queries 20 --out map
nearkin similar map red -k 3
nearkin report map
