"""Names of a knowledge base in raw text: the component ``arbo_names``."""
