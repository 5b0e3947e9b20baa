"""The review in the browser, and the service. Of new entities, doubtful links and the KB."""
