"""The review in the browser, and the service. It covers new entities, doubtful links and the KB."""
