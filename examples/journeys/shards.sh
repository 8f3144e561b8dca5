# Shards of vectors in half precision. parts/*.parquet: id, vector (lists of float16); new.parquet: the next day's.
nearkin compress "parts/*.parquet" --bytes 8 --keep-vectors --out idx
nearkin evaluate idx --base "parts/*.parquet" -k 10 --oversample 4
nearkin watch idx new.parquet
nearkin add idx new.parquet --upsert
