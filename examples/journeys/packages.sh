# Search descriptions of packages by meaning. packages.parquet: package, description, embedding (lists of numbers).
# questions.parquet: question, embedding. Ids and questions come back as text.
nearkin sweep packages.parquet --ids packages.parquet:package --queries questions.parquet --metric cosine
nearkin compress packages.parquet --ids packages.parquet:package --metric cosine --bytes 16 --keep-vectors --out packages
nearkin evaluate packages questions.parquet --base packages.parquet -k 10 --oversample 4
nearkin search packages questions.parquet -k 10 --oversample 4 --out hits.csv
nearkin report packages
