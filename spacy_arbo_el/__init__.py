"""Entity linking and entity discovery for spaCy by directed minimax clustering."""

__version__ = "0.1.0"
