"""Files as numbered records: lines, tables, JSON, Parquet; their fields and offsets."""
