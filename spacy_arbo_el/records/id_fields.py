"""The field of a mention that has its id, where a format leaves its name open."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Names of fields with an id, without case and marks. Earlier ones go before later ones.
_KNOWN = """
identifier kbid conceptid normalizedid entityid linkedid identity mesh meshid medic omim umls
umlscui cui snomed snomedct snomedctid ncbigene ncbigeneid geneid entrez entrezid entrezgene
ncbitaxonomy ncbitaxonomyid ncbitaxon taxonomy taxonomyid taxid taxonid chebi chebiid uniprot
uniprotid hgnc hpo hpoid doid mondo ncit icd10 icd9 cellosaurus cellontology dbsnp rsid wikidata
wikidataid wikidataqid qid wikipedia wikipediaid wikiid wiki wikititle curie termid ontologyid
accession normalization normid gndid gnd viaf geonames geonamesid entitylink uri iri nelink
nerlink id
"""
KNOWN = tuple(_KNOWN.split())
# Names of fields with something else.
_OTHER = """
type label class annotator annotators annotationtype updatedat createdat updated created date
score confidence probability valid version source origin text words comment start end offset
length tokenstart tokenend startoffset endoffset cluster rank order color hidden method section
spaceafter span spanid pattern inputhash taskhash view readonly locked
"""
OTHER = frozenset(_OTHER.split())
LONGEST = 60


@dataclass(frozen=True)
class FoundId:
    """The id that was read from the fields of a mention.

    value: The id as it is written; "" for none.
    unread: Names of fields that may have an id, where none is known to have it.
    """

    value: str
    unread: tuple[str, ...] = ()


def find_id(fields: Mapping[str, Any], id_key: str = "") -> FoundId:
    """Find the id of a mention among its fields.

    fields: By their names; case, spaces and marks of these do not count.
    id_key: The name of the field with the id; "" to know it by its name.
    """
    plain = {plain_name(name): name for name in fields}
    if id_key:
        name = plain.get(plain_name(id_key))
        return FoundId("" if name is None else written(fields[name]))
    named_ids = [plain[name] for name in KNOWN if name in plain]
    filled = [name for name in named_ids if written(fields[name])]
    if named_ids:
        return FoundId(written(fields[filled[0]]) if filled else "")
    unnamed = [name for name in plain if name and name not in OTHER]
    unread = (plain[name] for name in unnamed if written(fields[plain[name]]))
    return FoundId("", tuple(name[:LONGEST] for name in unread))


def is_known(name: str) -> bool:
    return plain_name(name) in KNOWN


def plain_name(name: str) -> str:
    """The name of a field without case and marks."""
    return re.sub(r"[\W_]", "", str(name).casefold())


def written(value: Any) -> str:
    """A value as the text of an id; "" for one that is none."""
    if isinstance(value, list):
        return "|".join(filter(None, map(written, value)))
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value).strip() if is_number or isinstance(value, str) else ""
