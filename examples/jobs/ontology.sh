# A researcher has an ontology, abstracts labelled with ids of MeSH, and others without labels. Run it in this folder.
set -e
# The cross-references into MeSH lead to the terms of the ontology.
python -m spacy arbo kb build diseases.obo diseases_kb --option xrefs=MESH
python -m spacy arbo init diseases_kb diseases_model
python -m spacy arbo convert labelled.pubtator labelled.spacy --concepts diseases.obo --option xrefs=MESH
python -m spacy arbo fit diseases_model labelled.spacy --output diseases_fitted
python -m spacy arbo link diseases_fitted abstracts/ --find names --output diseases.csv
