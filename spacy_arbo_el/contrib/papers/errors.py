"""Messages of what the papers need, each with a code."""

from ...base.errors import Message


class PaperMessages:
    E209 = Message(
        "ClsPooling.v1 gives all mentions of a passage the same vector, so it can't be the pooling "
        "of DocumentEncoder.v1. Choose SpanMeanPooling.v1 or FirstLastPooling.v1."
    )
    E615 = Message(
        "The training corpus has mentions of {count} concepts, but a batch takes {wanted}. Set "
        "training.batcher.n_concepts to {count} or less."
    )
    E616 = Message(
        "OverDistances.v1 needs negative squared distances, but a similarity is {largest:.3f}. Set "
        "retriever.similarity to NegativeSquaredEuclidean.v1, or use the inner loss directly."
    )
    E617 = Message(
        "NegativesWithinBudget.v1 counts the word pieces of texts, but some of its negatives are "
        "mentions. Set mention_share = 0.0 in HardNegatives.v1."
    )
    E618 = Message(
        "OverDistances.v1 can't learn the scale of its loss: give it the loss without "
        "LearnedScale.v1."
    )
    E840 = Message(
        "The dictionary has no name to look for. {count} names were left out because they are "
        "single characters, numbers or stop words. Check that the entities have names."
    )
    E841 = Message(
        "None of the {names} names of the dictionary is in the {docs} documents, so there is no "
        "silver mention. Check that texts and names are in one language, and the ids to exclude."
    )
    E842 = Message(
        "No name can be hidden: no entity has two unambiguous names of different words. Omit "
        "--dev, or add synonyms to the knowledge base."
    )
    E843 = Message(
        "Give both --dev and --hidden-kb, or neither: the dev set belongs to that knowledge base."
    )
    E870 = Message(
        "CrossEncoder.v1 with as_feature = true needs FeatureRanker.v1 as its ranker, not "
        "{ranker}. Set as_feature = false to rank by its scores alone, or use that ranker."
    )
    E871 = Message(
        "The cross-encoder was trained on pairs of at most {trained} word pieces, but window and "
        "text now give pairs of {now}. Use the settings of its training, or train again: spacy "
        "arbo rerank."
    )
    E873 = Message(
        "{count} of {total} scores of the cross-encoder are not finite: its training has "
        "diverged. Train again with a lower learning rate: spacy arbo rerank."
    )
    E874 = Message(
        "A cross-encoder reads the word pieces that the linker's encoder of mentions reads, and "
        "this one is no transformer. Train a pipeline with TransformerEncoder.v1 or "
        "DocumentEncoder.v1 first."
    )
    E875 = Message(
        "{name!r} has another vocabulary than the linker's encoder of mentions, whose word pieces "
        "a cross-encoder reads. Train it again for this linker: spacy arbo rerank."
    )
    E878 = Message(
        "None of the {count} annotated training mentions has a gold entity in the knowledge base, "
        "so a cross-encoder can't be trained."
    )
    E879 = Message(
        "The section [reranker] is {found}, which is not trained by this command. It needs "
        '@misc = "spacy-arbo-el.CrossEncoder.v1".'
    )
    E883 = Message(
        "The retriever is already confident (p ≥ {sure}) in the gold entities of all {count} "
        "training mentions. To train on them nevertheless, set --training.sure 1.0."
    )
    W870 = Message(
        "The encoder changed after the cross-encoder was trained, so its candidates differ. Train "
        "the cross-encoder again: spacy arbo rerank."
    )
