# Suggest films. ratings.csv.gz: user, movie, rating, time; movies.csv: movie, genre, year; later.csv: ratings of another
# month; guests.csv: ratings of people who are not in ratings.csv.gz, perhaps of films that are not.
nearkin embed ratings.csv.gz --min-weight 4 --split time --right-features movies.csv --out taste
nearkin evaluate taste later.csv
nearkin recommend taste --all -k 10 --out recs.csv
nearkin recommend taste --history guests.csv --unknown drop -k 10 --out guests_recs.csv
nearkin report taste
