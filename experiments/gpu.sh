#!/usr/bin/env bash
# What needs a GPU, meant for twelve minutes on an H100: trainings of 2,000 steps with 128 mentions each,
# the arborescence paper's own training, 2.3 million names, and the tests that a GPU can run.
#
#     bash gpu.sh RESULTS [DATA]     run from this folder; RESULTS keeps logs, scores and a junit file
#
# A step whose result is there already is left out, so the script can be started again. Each step has
# a limit of its own, and one that fails does not stop the others.
set -uo pipefail
results=$(realpath -m "${1:?the folder of the results}")
data=${2:-data}
mkdir -p "$results" training corpus kb
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PYTHONUNBUFFERED=1

step() {  # NAME SECONDS COMMAND: run it unless it has ended before
  [ -e "$results/$1.done" ] && return
  local start=$SECONDS
  # An interrupted pytest still writes which tests failed.
  if timeout --signal INT --kill-after 20 "$2" bash -c "$3" > "$results/$1.log" 2>&1; then touch "$results/$1.done"; fi
  echo "$1: $((SECONDS - start)) s, $([ -e "$results/$1.done" ] && echo done || echo not done)" | tee -a "$results/times.txt"
}

arbo="python -m spacy arbo"
concepts="--format pubtator --concepts kb/medic_half"
step data 120 "python configs.py training && $arbo init-config training/gpu.cfg --system gpu.cfg --force \
  && $arbo kb build $data/medic_half kb/medic_half --format medic_half --code readers.py --replace \
  && $arbo convert $data/ncbi_disease/NCBItrainset_corpus.txt corpus/ncbi_train.spacy $concepts --exclude $data/medic_half/test_pmids.txt \
  && $arbo convert $data/ncbi_disease/NCBIdevelopset_corpus.txt corpus/ncbi_dev.spacy $concepts \
  && $arbo convert $data/bc5cdr/CDR_TrainingSet.PubTator.txt corpus/bc5cdr_train.spacy --labels Disease $concepts --exclude $data/medic_half/test_pmids.txt \
  && $arbo convert $data/bc5cdr/CDR_DevelopmentSet.PubTator.txt corpus/bc5cdr_dev.spacy --labels Disease $concepts \
  && $arbo convert $data/nel/train.jsonl corpus/nel_train.spacy && $arbo convert $data/nel/dev.jsonl corpus/nel_dev.spacy \
  && $arbo kb build $data/nel/entities.jsonl kb/nel --replace"

train() {  # NAME KB SECONDS: train `linker` with batches of 128 mentions, then score both models
  step "train-$1" "$3" "$arbo train training/gpu.cfg --output training/gpu_$1 --resume --gpu-id 0 \
    --paths.train corpus/$1_train.spacy --paths.dev corpus/$1_dev.spacy --paths.kb kb/$2"
  step "score-$1" 120 "python held_out.py training/gpu_$1/model-best training/gpu_$1/model-last corpus/$1_dev.spacy --gpu-id 0 --output $results/$1.json"
}
train ncbi medic_half 150
train bc5cdr medic_half 150
train nel nel 120

step arborescence 240 "$arbo train training/arborescence_paper.cfg --output training/gpu_arborescence --resume --gpu-id 0 \
  --paths.train corpus/bc5cdr_train.spacy --paths.dev corpus/bc5cdr_dev.spacy --paths.kb kb/medic_half \
  && $arbo evaluate training/gpu_arborescence/model-last corpus/bc5cdr_dev.spacy --gpu-id 0 --output $results/arborescence.json"
step names 180 "python ../benchmarks/names.py --names 2300000 --gpu-id 0 --output $results/names.json"
step tests 300 "cd .. && python -m pytest -q -n 8 --dist loadfile --ignore tests/lint --gpu-id 0 --junitxml $results/tests.xml"
