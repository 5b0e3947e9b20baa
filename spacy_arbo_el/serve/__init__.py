"""The workbench: a review of new entities, doubtful links and the KB in the browser."""
