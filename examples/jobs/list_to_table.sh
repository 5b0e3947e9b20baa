# An analyst has firms.csv and texts in news/, and wants a table of links. Run it in this folder.
set -e
# What the list lacks; the copy has the short names of firms of type ORG as aliases.
python -m spacy arbo check firms.csv --write firms_checked.csv
python -m spacy arbo link firms_checked.csv news/ --output links.csv
