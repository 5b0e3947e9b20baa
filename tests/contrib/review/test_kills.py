"""A review is killed at random times: what it has acknowledged is there, and nothing in between."""

import json
import os
import random
import shutil
import threading
from functools import partial

import pytest

from spacy_arbo_el import find_linker, load_pipeline, save_pipeline
from spacy_arbo_el.contrib.review.decisions.journal import Journal, journal_path
from spacy_arbo_el.contrib.review.review import Review
from spacy_arbo_el.pipelines import changing_pipeline

from ...kills import in_process
from .serve.world import pipeline

pytestmark = [pytest.mark.attack, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]
# Kills of one pipeline, whose journal is repeated from the beginning after each.
KILLS = 12


def act(review, rng):
    """A random decision or undo. It may be refused, like that of a person."""
    ids = list(review.queue.rows) or ["NEW-none"]
    one, other = rng.choice(ids), rng.choice(ids)
    entity = f"E{rng.randrange(20)}"
    acts = [
        lambda: review.decide("accept", "x", id=one, kb_id=rng.choice(["", entity]), title=entity),
        lambda: review.decide("link", "x", id=one, kb_id="cat"),
        lambda: review.decide("link_all", "x", ids=[one, other], kb_id="planet"),
        lambda: review.decide("reject", "x", id=one),
        lambda: review.decide("merge", "x", id=one, others=[other]),
        lambda: review.decide("split", "x", id=one, mentions=first_of(review, one)),
        lambda: review.decide("flag", "x", id=one, comment="?"),
        lambda: review.decide("kb_upsert", "x", entities=[{"id": entity, "title": f"T{one}"}]),
        lambda: review.decide("kb_update", "x", entity={"id": "cat", "title": f"cat {one}"}),
        *[lambda: review.undo("x")] * 3,
        lambda: review.undo("x", rng.choice(review.standing)["n"]),
    ]
    rng.choice(acts)()


def first_of(review, name):
    return ["{}:{}:{}".format(*member.key) for member in review.new[name].members[:1]]


def work(model, seed, say):  # pragma: no cover - killed in another process
    """Decide, and save now and then in another thread, until killed."""
    rng = random.Random(seed)
    with changing_pipeline(model) as owner:
        review = Review(load_pipeline(model), model, save=owner.save)
        say()
        saving = None
        while True:
            before = len(review.journal.log.entries)
            try:
                act(review, rng)
            except (ValueError, KeyError, IndexError):
                continue
            for entry in review.journal.log.entries[before:]:
                say(json.dumps([entry["n"], entry["action"], entry["at"]]).encode())
            if rng.random() < 0.15 and (saving is None or not saving.is_alive()):
                saving = threading.Thread(target=review.save, daemon=True)
                saving.start()


def state(path):
    """What a pipeline knows after all decisions."""
    linker = find_linker(load_pipeline(path))
    new, kb = linker.new_entities, linker.kb
    clusters = {one.id: sorted(m.key for m in one.members) for one in new}
    ids = sorted(new.clusters.ids)
    exemplars = sorted((one.key, one.kb_ids) for one in linker.exemplars.records)
    return clusters, {name: new.resolve(name) for name in ids}, {e.id: e for e in kb}, exemplars


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """A pipeline that keeps new entities."""
    place = tmp_path_factory.mktemp("reviewed")
    save_pipeline(pipeline(), place / "model")
    return place


@pytest.mark.filterwarnings("ignore:.*W910")
def test_kills_round_saves_and_undos_lose_nothing(pristine, tmp_path, attacks):
    rng, acknowledged, kills, saved = random.Random(7), 0, 0, 0
    while kills < attacks(KILLS, 1000):
        folder = tmp_path / f"round{kills}"
        shutil.copytree(pristine, folder)
        model, known = folder / "model", []
        for _ in range(KILLS):
            action = partial(work, model, rng.random())
            # While it decides, at the first time after a step, or at times while it starts.
            wait = 1 if rng.random() < 0.8 else 0
            run = in_process(action, kill_after=rng.uniform(0, 0.5), wait=wait if kills else 2)
            assert run.killed, "the review has ended before it was killed"
            known, kills = known + [json.loads(line) for line in run.said if line], kills + 1
            entries = [[e["n"], e["action"], e["at"]] for e in Journal(model).log.entries]
            assert [one for one in known if one not in entries] == []
        # All that the journal has, made on the pipeline as it was, is what is there.
        again = folder / "again"
        shutil.copytree(pristine, again)
        if journal_path(model).exists():
            shutil.copy(journal_path(model), journal_path(again / "model"))
        assert state(model) == state(again / "model")
        meta = json.loads((model / "meta.json").read_text())
        acknowledged, saved = acknowledged + len(known), saved + ("review" in meta)
        shutil.rmtree(folder)
    print(
        f"{kills} kills, {acknowledged} acknowledged steps, {saved} rounds with a save, none lost"
    )
    assert acknowledged
