"""Ground of all rooms: errors, arrays, settings, the log, and texts for people."""
