# Every night: learn from today's purchases, renew the index, write suggestions. shop and idx are of the first night:
#   nearkin embed log.jsonl --timestamp bought --split time --out shop
#   nearkin compress shop --method int8 --out idx
nearkin embed today.jsonl --start shop --out shop
nearkin add idx shop --upsert
nearkin remove idx --ids sold_out.txt --unknown drop
nearkin recommend shop --all -k 5 --candidates in_stock.txt --unknown drop --out recs.csv --overwrite
nearkin evaluate shop tomorrow.jsonl
