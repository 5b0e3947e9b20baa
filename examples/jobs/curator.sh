# A curator adds the firms that texts name and the list lacks, and takes the list home. Run it in this folder.
set -e
python -m spacy arbo init firms.csv firms_model
# news.jsonl has the mentions that a named-entity recognizer found.
python -m spacy arbo discover firms_model news.jsonl --output new.jsonl --keep firms_decided
python -m spacy arbo new list firms_decided --output decisions.csv
# Decide: in a spreadsheet, write "accept" and an id. Here a script does so for one of the new entities.
python accept.py decisions.csv "Tarnow Labs" T1
python -m spacy arbo new apply firms_decided decisions.csv
python -m spacy arbo kb export firms_decided firms_new.csv
