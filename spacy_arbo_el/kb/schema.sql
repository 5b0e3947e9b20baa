-- Counts and identities.
CREATE TABLE manifest (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
-- So that integrity_check finds a damaged value: it compares tables with their indexes.
CREATE INDEX manifest_value ON manifest (value);
CREATE TABLE entity (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    aliases TEXT NOT NULL,
    types TEXT NOT NULL,
    frequency REAL NOT NULL,
    meta TEXT NOT NULL,
    crc INTEGER NOT NULL
);
-- Entities by type; '' for those without a type.
CREATE TABLE type (
    name TEXT NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (name, position)
) WITHOUT ROWID;
CREATE INDEX type_position ON type (position);
-- Spellings of titles and aliases, folded, with their kinds; see names/spellings.py.
CREATE TABLE name (
    number INTEGER PRIMARY KEY, position INTEGER NOT NULL, folded TEXT NOT NULL,
    kind INTEGER NOT NULL
);
CREATE INDEX name_folded ON name (folded);
CREATE INDEX name_position ON name (position);
CREATE VIRTUAL TABLE trigram USING fts5(
    folded, content='name', content_rowid='number', tokenize='trigram', detail=none
);
CREATE VIRTUAL TABLE trigram_count USING fts5vocab(trigram, row);
-- Other ids that lead to entities, such as those they had before they were merged.
CREATE TABLE redirect (old TEXT PRIMARY KEY, new TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX redirect_new ON redirect (new);
-- The number of the edit that last added, changed or removed an entity.
CREATE TABLE changed (position INTEGER PRIMARY KEY, generation INTEGER NOT NULL);
CREATE INDEX changed_generation ON changed (generation);
